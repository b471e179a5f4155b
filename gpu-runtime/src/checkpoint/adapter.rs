//! LoRA adapters as PEFT folders: `adapter_config.json` and `adapter_model.safetensors`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use trainyard_protocol::limits::MAX_LORA_RANK;
use trainyard_protocol::{LoraSpec, OpError};

use super::variants::{plain_alpha, variant};
use super::{Elements, NamedTensor, TensorMap, io_error, malformed, read_tensors, write_json, write_tensors};
use crate::config::LoadError;

/// File that describes an adapter.
pub(crate) const CONFIG_FILE: &str = "adapter_config.json";
/// File with the tensors of an adapter.
pub(crate) const TENSORS_FILE: &str = "adapter_model.safetensors";

/// Prefix that PEFT puts before a module's name.
pub(super) const PREFIX: &str = "base_model.model.";
pub(super) const A_SUFFIX: &str = ".lora_A.weight";
pub(super) const B_SUFFIX: &str = ".lora_B.weight";

/// `peft_type` of adapters that `peft` computes.
const PEFT_TYPE: &str = "LORA";
/// `peft_type` of adapters with tensors that `peft` would leave out without a warning: it refuses a type that it does not know.
const PROTOCOL_TYPE: &str = "TINKER_LORA";

/// Whether this server computes adapters of a `peft_type`.
pub(super) fn is_lora(peft_type: &str) -> bool {
    [PEFT_TYPE, PROTOCOL_TYPE].contains(&peft_type)
}

/// A module's adapter, to be written.
#[derive(Clone, Debug)]
pub(crate) struct AdapterModule<'a, T: ?Sized = [f32]> {
    /// The module in the base model: `model.layers.0.self_attn.q_proj`, `lm_head`.
    pub name: &'a str,
    /// Shapes of A `[rank, inputs]` and B `[outputs, rank]`. On experts both are `[matrices, …]`, and one of them has
    /// one matrix per expert.
    pub shapes: [Vec<usize>; 2],
    pub a: &'a T,
    pub b: &'a T,
}

/// A module's adapter, as read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AdapterTensors {
    /// Shapes as in [`AdapterModule::shapes`].
    pub shapes: [Vec<usize>; 2],
    pub a: Vec<f32>,
    pub b: Vec<f32>,
}

/// An adapter with the tensors of all its modules.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Adapter {
    /// Rank of every module's matrices.
    pub rank: usize,
    /// `B A` is multiplied by `alpha / rank`.
    pub alpha: f32,
    /// Tensors by module name.
    pub tensors: BTreeMap<String, AdapterTensors>,
}

/// Writes an adapter into the folder `dir`. `target_modules` are the last parts of the modules' names, by which PEFT
/// finds them, if it `is_for_peft`.
pub(crate) fn write_adapter<'a, T: Elements + ?Sized + 'a>(
    dir: &Path,
    base_model_name: &str,
    spec: &LoraSpec,
    target_modules: &[String],
    is_for_peft: bool,
    modules: impl Iterator<Item = AdapterModule<'a, T>>,
) -> Result<(), OpError> {
    let mut tensors: Vec<NamedTensor<'_, T>> = Vec::new();
    for module in modules {
        let [a, b] = module.shapes;
        tensors.push((format!("{PREFIX}{}{A_SUFFIX}", module.name), a, module.a));
        tensors.push((format!("{PREFIX}{}{B_SUFFIX}", module.name), b, module.b));
    }
    write_tensors(&dir.join(TENSORS_FILE), &tensors)?;
    // Only keys that all versions of PEFT with safetensors know: some refuse a folder for one they do not.
    let config = serde_json::json!({
        "peft_type": if is_for_peft { PEFT_TYPE } else { PROTOCOL_TYPE },
        "task_type": "CAUSAL_LM",
        "auto_mapping": null,
        "base_model_name_or_path": base_model_name,
        "revision": null,
        "inference_mode": true,
        "r": spec.rank,
        "lora_alpha": alpha_key(spec.alpha),
        "lora_dropout": 0.0,
        "target_modules": target_modules,
        "fan_in_fan_out": false,
        "bias": "none",
        "modules_to_save": null,
        "init_lora_weights": true,
        "layers_to_transform": null,
        "layers_pattern": null,
    });
    write_json(&dir.join(CONFIG_FILE), &config)
}

/// Alpha as PEFT's type has it, an integer, where it is one.
fn alpha_key(alpha: f32) -> serde_json::Value {
    if alpha.fract() == 0.0 { (alpha as u64).into() } else { alpha.into() }
}

/// Reads an adapter. Variants of LoRA that compute something else, and tensors that do not form pairs of the
/// declared rank, are refused by name.
pub(crate) fn read_adapter(dir: &Path) -> Result<Adapter, LoadError> {
    let config = read_config(&dir.join(CONFIG_FILE))?;
    let path = dir.join(TENSORS_FILE);
    let mut stored = read_tensors(&path)?;
    let mut tensors = BTreeMap::new();
    while let Some(name) = stored.keys().next().cloned() {
        let module = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(A_SUFFIX).or_else(|| rest.strip_suffix(B_SUFFIX)))
            .ok_or_else(|| malformed(&path, format_args!("tensor {name} is not part of a LoRA adapter")))?;
        tensors.insert(module.to_owned(), take_pair(&mut stored, module, config.r)?);
    }
    Ok(Adapter { rank: config.r, alpha: config.lora_alpha, tensors })
}

fn take_pair(stored: &mut TensorMap, module: &str, rank: usize) -> Result<AdapterTensors, LoadError> {
    let mut take = |suffix: &str| {
        let name = format!("{PREFIX}{module}{suffix}");
        match stored.remove(&name) {
            Some((shape, values)) => Ok((name, shape, values)),
            None => Err(LoadError::MissingTensor(name)),
        }
    };
    let (a_name, a_shape, a) = take(A_SUFFIX)?;
    let (b_name, b_shape, b) = take(B_SUFFIX)?;
    let a_expected = match a_shape[..] {
        [_, inputs] => vec![rank, inputs],
        [matrices, _, inputs] => vec![matrices, rank, inputs],
        _ => vec![rank, 0],
    };
    if a_shape != a_expected {
        return Err(LoadError::WrongShape { name: a_name, found: a_shape, expected: a_expected });
    }
    let b_expected = match b_shape[..] {
        [matrices, outputs, _] if a_shape.len() == 3 => vec![matrices, outputs, rank],
        _ => vec![b_shape.first().copied().unwrap_or(0), rank],
    };
    if b_shape != b_expected {
        return Err(LoadError::WrongShape { name: b_name, found: b_shape, expected: b_expected });
    }
    Ok(AdapterTensors { shapes: [a_shape, b_shape], a, b })
}

/// The keys of `adapter_config.json` that matter.
#[derive(Deserialize)]
struct PeftConfig {
    peft_type: String,
    r: usize,
    /// That of [`plain_alpha`] once the configuration is read.
    lora_alpha: f32,
    #[serde(flatten)]
    others: serde_json::Map<String, serde_json::Value>,
}

fn read_config(path: &Path) -> Result<PeftConfig, LoadError> {
    let bytes = std::fs::read(path).map_err(|error| io_error(path, error))?;
    let mut config: PeftConfig = serde_json::from_slice(&bytes).map_err(|error| malformed(path, error))?;
    if !is_lora(&config.peft_type) {
        let reason = format!("peft_type: {:?} is not supported; expected \"LORA\"", config.peft_type);
        return Err(LoadError::Unsupported(format!("{CONFIG_FILE}: {reason}")));
    }
    if let Some(variant) = variant(&config.others) {
        return Err(LoadError::Unsupported(format!("{CONFIG_FILE}: {}", variant.reason())));
    }
    if config.r == 0 || config.r > MAX_LORA_RANK as usize {
        return Err(malformed(path, format_args!("r is {}, expected 1 to {MAX_LORA_RANK}", config.r)));
    }
    config.lora_alpha = plain_alpha(&config.others, config.lora_alpha, config.r as u64);
    if !config.lora_alpha.is_finite() {
        return Err(malformed(path, "lora_alpha is not finite"));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const Q: &str = "model.layers.0.self_attn.q_proj";

    fn spec() -> LoraSpec {
        LoraSpec { train_mlp: false, ..LoraSpec::on_all(2, 1) }
    }

    fn write(dir: &Path) {
        let (a, b) = ([0.1f32, 0.2, 0.3, 0.4, 0.5, 0.6], [1.0f32, -2.0]);
        let modules = [
            AdapterModule { name: Q, shapes: [vec![2, 3], vec![1, 2]], a: &a[..], b: &b[..] },
            AdapterModule { name: "lm_head", shapes: [vec![2, 3], vec![1, 2]], a: &a[..], b: &b[..] },
        ];
        let targets = ["q_proj".to_owned(), "lm_head".to_owned()];
        write_adapter(dir, "base", &spec(), &targets, true, modules.into_iter()).unwrap();
    }

    #[test]
    fn round_trip_in_the_format_of_peft() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path());
        let adapter = read_adapter(dir.path()).unwrap();
        assert_eq!((adapter.rank, adapter.alpha), (2, 32.0));
        assert_eq!(adapter.tensors.keys().collect::<Vec<_>>(), ["lm_head", Q]);
        let q = &adapter.tensors[Q];
        assert_eq!(q.shapes, [vec![2, 3], vec![1, 2]]);
        assert_eq!(
            (q.a.as_slice(), q.b.as_slice()),
            ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6].as_slice(), [1.0, -2.0].as_slice())
        );

        let names: Vec<String> = read_tensors(&dir.path().join(TENSORS_FILE)).unwrap().into_keys().collect();
        assert_eq!(
            names,
            [
                "base_model.model.lm_head.lora_A.weight",
                "base_model.model.lm_head.lora_B.weight",
                "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",
                "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight",
            ]
        );
        let config: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.path().join(CONFIG_FILE)).unwrap()).unwrap();
        assert_eq!((&config["peft_type"], &config["task_type"]), (&"LORA".into(), &"CAUSAL_LM".into()));
        assert_eq!((&config["r"], &config["lora_alpha"]), (&2.into(), &32.into()));
        assert_eq!(config["target_modules"], serde_json::json!(["q_proj", "lm_head"]));
    }

    #[test]
    fn adapters_of_experts_have_three_extents() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = ([0.5f32; 6], [1.5f32; 8]);
        let name = "model.layers.0.mlp.experts.w1";
        let write = |shapes: [Vec<usize>; 2]| {
            let module = AdapterModule { name, shapes, a: &a[..], b: &b[..] };
            let targets = ["w1".to_owned()];
            write_adapter(dir.path(), "base", &spec(), &targets, false, std::iter::once(module)).unwrap();
            let config = std::fs::read_to_string(dir.path().join(CONFIG_FILE)).unwrap();
            assert!(config.contains("\"peft_type\": \"TINKER_LORA\""), "{config}");
            read_adapter(dir.path())
        };
        let stored = write([vec![1, 2, 3], vec![4, 1, 2]]).unwrap().tensors.remove(name).unwrap();
        assert_eq!(stored.shapes, [vec![1, 2, 3], vec![4, 1, 2]]);
        assert_eq!((stored.a, stored.b), (a.to_vec(), b.to_vec()));
        let message = write([vec![1, 3, 2], vec![4, 1, 2]]).unwrap_err().to_string();
        assert!(message.contains("lora_A.weight has shape [1, 3, 2], expected [1, 2, 2]"), "{message}");
        let message = write([vec![1, 2, 3], vec![2, 1, 4]]).unwrap_err().to_string();
        assert!(message.contains("lora_B.weight has shape [2, 1, 4], expected [2, 1, 2]"), "{message}");
    }

    #[test]
    fn other_adapters_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |key: &str, value: serde_json::Value| {
            write(dir.path());
            let path = dir.path().join(CONFIG_FILE);
            let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            config[key] = value;
            write_json(&path, &config).unwrap();
            read_adapter(dir.path()).unwrap_err().to_string()
        };
        for (key, value) in [
            ("peft_type", "IA3".into()),
            ("init_lora_weights", "pissa".into()),
            ("init_lora_weights", "corda".into()),
            ("kasa_config", serde_json::json!({"beta": 1e-4})),
            ("use_dora", true.into()),
            ("use_rslora", "yes".into()),
            ("bias", "all".into()),
            ("rank_pattern", serde_json::json!({"q_proj": 4})),
            ("modules_to_save", serde_json::json!(["lm_head"])),
        ] {
            let message = refused(key, value);
            assert!(message.contains(&format!("adapter_config.json: {key}: ")), "{message}");
        }
        assert!(refused("r", 0.into()).contains("r is 0"));
        let message = refused("r", 3.into());
        assert!(message.contains("lora_A.weight has shape [2, 3], expected [3, 3]"), "{message}");
    }

    #[test]
    fn rank_stabilised_adapters_have_another_alpha() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path());
        let path = dir.path().join(CONFIG_FILE);
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        config["use_rslora"] = true.into();
        write_json(&path, &config).unwrap();
        assert_eq!(read_adapter(dir.path()).unwrap().alpha, 32.0 * 2f32.sqrt());
    }

    #[test]
    fn incomplete_folders_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TENSORS_FILE);
        let refused = || read_adapter(dir.path()).unwrap_err().to_string();
        assert!(refused().contains(CONFIG_FILE));
        write(dir.path());
        let lone: NamedTensor<'_> = (format!("{PREFIX}x{A_SUFFIX}"), vec![2, 1], &[0.0, 0.0]);
        write_tensors(&path, &[lone]).unwrap();
        assert!(refused().contains("tensor base_model.model.x.lora_B.weight is missing"));
        let stranger: NamedTensor<'_> = ("base_model.model.x.weight".to_owned(), vec![1], &[0.0]);
        write_tensors(&path, &[stranger]).unwrap();
        assert!(refused().contains("base_model.model.x.weight is not part"));
    }
}

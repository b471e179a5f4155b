//! Adapters on the modules of a model's own code, as `peft` and vLLM load them.
//!
//! Files of the hosted service adapt parts of a fused module one by one. With the parts' matrices `A_i` and `B_i` of
//! rank r, the module's update is that of one adapter of rank n · r: A has the rows of all `A_i`, B is zero except for
//! each `B_i` in the rows of its part. Its scale stays `alpha / r`, so its alpha is n · alpha.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use trainyard_protocol::LoraSpec;

use super::adapter::{A_SUFFIX, Adapter, B_SUFFIX, CONFIG_FILE, PREFIX, TENSORS_FILE, read_adapter};
use super::{AdapterTensors, NamedTensor, io_error, malformed, read_names, write_tensors};
use crate::config::{LoadError, ModelConfig};
use crate::load::file_tensors;
use crate::model::{AdaptedModule, ParamTable};

/// What the names of weights end with.
const WEIGHT: &str = ".weight";

/// An adapter on a module as a whole.
#[derive(Debug, PartialEq)]
struct WholeModule {
    name: String,
    /// Parts that were adapted: its rank is as many times that of the adapter.
    parts: usize,
    inputs: usize,
    outputs: usize,
    a: Vec<f32>,
    b: Vec<f32>,
}

/// Reads the adapter in the folder `from`, on a model of this configuration, and writes it into the folder `to` in the form that
/// `peft` loads.
///
/// # Errors
/// Fails if the folder contains no adapter for the model, or one that `peft` cannot represent: on experts, or on a tied
/// unembedding.
pub fn write_for_peft(from: &Path, base: &ModelConfig, to: &Path) -> Result<(), LoadError> {
    let adapter = read_adapter(from)?;
    let (rank, alpha) = (adapter.rank, adapter.alpha);
    let modules = whole_modules(base, adapter)?;
    let path = from.join(CONFIG_FILE);
    let text = std::fs::read(&path).map_err(|error| io_error(&path, error))?;
    let mut config: Map<String, Value> = serde_json::from_slice(&text).map_err(|error| malformed(&path, error))?;
    let last = |name: &str| name.rsplit('.').next().unwrap_or(name).to_owned();
    let targets: BTreeSet<String> = modules.iter().map(|module| last(&module.name)).collect();
    let stacked = || modules.iter().filter(|module| module.parts > 1);
    let ranks = stacked().map(|module| (module.name.clone(), json!(module.parts * rank)));
    let alphas = stacked().map(|module| (module.name.clone(), json!(module.parts as f32 * alpha)));
    let changes = [
        ("peft_type", json!("LORA")),
        ("target_modules", json!(targets)),
        ("rank_pattern", Value::Object(ranks.collect())),
        ("alpha_pattern", Value::Object(alphas.collect())),
    ];
    config.extend(changes.map(|(key, value)| (key.to_owned(), value)));
    let mut tensors: Vec<NamedTensor<'_, Vec<f32>>> = Vec::new();
    for module in &modules {
        let rank = module.parts * rank;
        tensors.push((format!("{PREFIX}{}{A_SUFFIX}", module.name), vec![rank, module.inputs], &module.a));
        tensors.push((format!("{PREFIX}{}{B_SUFFIX}", module.name), vec![module.outputs, rank], &module.b));
    }
    let failed =
        |path: &Path, message: String| LoadError::Malformed { path: path.display().to_string(), reason: message };
    write_tensors(&to.join(TENSORS_FILE), &tensors).map_err(|error| failed(to, error.message))?;
    let path = to.join(CONFIG_FILE);
    std::fs::write(&path, format!("{:#}\n", Value::Object(config))).map_err(|error| io_error(&path, error))
}

/// The adapter's modules, parts of fused ones joined, in parameter order.
fn whole_modules(base: &ModelConfig, mut adapter: Adapter) -> Result<Vec<WholeModule>, LoadError> {
    let every = LoraSpec { latent_up: true, ..LoraSpec::on_all(adapter.rank as u32, 0) };
    let places = places(base);
    let (mut whole, mut positions) = (Vec::<WholeModule>::new(), BTreeMap::new());
    for module in ParamTable::adapted_modules(base, &every) {
        let names = read_names(base, &module);
        let Some(pair) = names.iter().find_map(|name| adapter.tensors.remove(name)) else { continue };
        refuse_what_peft_lacks(base, &module)?;
        check_extents(&module, &pair, adapter.rank)?;
        let (outputs, inputs) = module.extents;
        let Some(Place { fused, first, rows }) = places.get(&module.name) else {
            let name = base.spelling.in_adapters(&module.name);
            whole.push(WholeModule { name, parts: 1, inputs, outputs, a: pair.a, b: pair.b });
            continue;
        };
        let at = *positions.entry(fused.clone()).or_insert_with(|| {
            let name = base.spelling.in_adapters(fused);
            whole.push(WholeModule { name, parts: 0, inputs, outputs: *rows, a: Vec::new(), b: Vec::new() });
            whole.len() - 1
        });
        whole[at].add(adapter.rank, *first, &pair);
    }
    match adapter.tensors.keys().next() {
        None => Ok(whole),
        Some(module) => Err(LoadError::Unsupported(format!("the base model has no module {module}"))),
    }
}

impl WholeModule {
    /// Adds the adapter of a part, whose first row is `first`.
    fn add(&mut self, rank: usize, first: usize, part: &AdapterTensors) {
        let (before, after) = (self.parts * rank, (self.parts + 1) * rank);
        let mut b = vec![0.0; self.outputs * after];
        for row in 0..self.outputs {
            b[row * after..][..before].copy_from_slice(&self.b[row * before..][..before]);
        }
        for (row, values) in part.b.chunks_exact(rank).enumerate() {
            b[(first + row) * after + before..][..rank].copy_from_slice(values);
        }
        self.a.extend_from_slice(&part.a);
        (self.b, self.parts) = (b, self.parts + 1);
    }
}

/// Where a module lies in one that files hold as a whole.
struct Place {
    /// The module of the files.
    fused: String,
    /// The first row of its own.
    first: usize,
    /// Rows of the module of the files.
    rows: usize,
}

/// Places of the modules that files of the model fuse.
fn places(base: &ModelConfig) -> BTreeMap<String, Place> {
    let specs = ParamTable::new(base).specs;
    let mut places = BTreeMap::new();
    for tensor in file_tensors(base, &specs).iter().filter(|tensor| tensor.parts.len() > 1) {
        let Some(fused) = tensor.name.strip_suffix(WEIGHT) else { continue };
        let rows = tensor.shape[0];
        let mut first = 0;
        for spec in tensor.parts.iter().map(|part| &specs[*part]) {
            let module = spec.name.trim_end_matches(WEIGHT).to_owned();
            places.insert(module, Place { fused: fused.to_owned(), first, rows });
            first += spec.shape[0];
        }
    }
    places
}

fn refuse_what_peft_lacks(base: &ModelConfig, module: &AdaptedModule) -> Result<(), LoadError> {
    let what = match module.slot {
        None if base.tie_word_embeddings => "a tied unembedding",
        Some(_) if module.experts.is_some() => "experts",
        _ => return Ok(()),
    };
    Err(LoadError::Unsupported(format!("{}: peft has no form for adapters on {what}; merge it instead", module.name)))
}

pub(super) fn check_extents(module: &AdaptedModule, pair: &AdapterTensors, rank: usize) -> Result<(), LoadError> {
    let expected = module.shapes(rank);
    let wrong = pair.shapes.iter().zip(expected).find(|(found, expected)| *found != expected);
    match wrong {
        None => Ok(()),
        Some((found, expected)) => {
            Err(LoadError::WrongShape { name: module.name.clone(), found: found.clone(), expected })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::load::describe;
    use crate::rng::uniform;

    fn config(family: &str) -> ModelConfig {
        describe(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)).unwrap()
    }

    fn values(stream: u64, count: usize) -> Vec<f32> {
        (0..count as u64).map(|at| uniform(7, stream, at) as f32 - 0.5).collect()
    }

    /// An adapter on all modules of a kind.
    fn adapter(base: &ModelConfig, lora: &LoraSpec) -> Adapter {
        let tensors = (0..).zip(ParamTable::adapted_modules(base, lora)).map(|(at, module)| {
            let shapes = module.shapes(lora.rank as usize);
            let [a, b] = [0, 1].map(|side| values(2 * at + side as u64, shapes[side].iter().product()));
            (super::super::written_name(base, &module), AdapterTensors { shapes, a, b })
        });
        Adapter { rank: lora.rank as usize, alpha: 32.0, tensors: tensors.collect() }
    }

    /// `B A`, `[outputs, inputs]`.
    fn product(a: &[f32], b: &[f32], rank: usize) -> Vec<f32> {
        let inputs = a.len() / rank;
        let of = |row: &[f32], column: usize| (0..rank).map(|i| row[i] * a[i * inputs + column]).sum::<f32>();
        b.chunks_exact(rank).flat_map(|row| (0..inputs).map(move |column| of(row, column))).collect()
    }

    const ATTENTION: LoraSpec = LoraSpec { train_unembed: false, train_mlp: false, ..LoraSpec::on_all(3, 0) };

    #[test]
    fn stacked_parts_update_their_rows() {
        for (family, module, parts) in [
            ("qwen3_5", "model.layers.0.linear_attn.in_proj_qkv", ["in_proj_q", "in_proj_k", "in_proj_v"].as_slice()),
            ("nemotron_h", "model.layers.0.mixer.in_proj", &["gate_proj", "x_proj"]),
            ("phi3", "model.layers.0.self_attn.qkv_proj", &["q_proj", "k_proj", "v_proj"]),
        ] {
            let base = config(family);
            let own = adapter(&base, &ATTENTION);
            let whole = whole_modules(&base, own.clone()).unwrap();
            let stacked = whole.iter().find(|whole| whole.name == module).unwrap();
            assert_eq!((stacked.parts, stacked.a.len()), (parts.len(), parts.len() * 3 * stacked.inputs), "{family}");
            let found = product(&stacked.a, &stacked.b, stacked.parts * 3);
            let folder = module.rsplit_once('.').unwrap().0;
            let mut expected: Vec<f32> = Vec::new();
            for part in parts {
                let pair = &own.tensors[&format!("{folder}.{part}")];
                expected.extend(product(&pair.a, &pair.b, 3));
            }
            // Rows of B, C and the step of Mamba-2 have no adapter.
            assert_eq!(found.len(), stacked.outputs * stacked.inputs);
            expected.resize(found.len(), 0.0);
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-6, "{family}: {worst}");
        }
    }

    #[test]
    fn plain_modules_stay_as_they_are() {
        let base = config("qwen2");
        let lora = LoraSpec { train_mlp: true, ..ATTENTION };
        let own = adapter(&base, &lora);
        let whole = whole_modules(&base, own.clone()).unwrap();
        assert_eq!(whole.len(), own.tensors.len());
        for module in whole {
            let pair = &own.tensors[&module.name];
            assert_eq!((module.parts, &module.a, &module.b), (1, &pair.a, &pair.b));
        }
    }

    #[test]
    fn what_peft_has_no_form_for_is_refused() {
        let unembedding = LoraSpec { train_unembed: true, ..ATTENTION };
        let experts = LoraSpec { train_mlp: true, ..ATTENTION };
        for (family, lora, text) in [
            ("llama_tied", unembedding, "lm_head: peft has no form for adapters on a tied unembedding"),
            ("qwen3_moe", experts, "model.layers.0.mlp.experts.w1: peft has no form for adapters on experts"),
        ] {
            let base = config(family);
            let error = whole_modules(&base, adapter(&base, &lora)).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let base = config("qwen2");
        let mut own = adapter(&base, &ATTENTION);
        let pair = own.tensors.values().next().unwrap().clone();
        own.tensors.insert("model.layers.9.self_attn.q_proj".to_owned(), pair);
        let error = whole_modules(&base, own).unwrap_err().to_string();
        assert!(error.contains("the base model has no module model.layers.9.self_attn.q_proj"), "{error}");
    }

    #[test]
    fn files_name_ranks_of_stacked_modules() {
        let base = config("qwen3_5");
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = adapter(&base, &ATTENTION);
        let modules = own.tensors.iter().map(|(name, pair)| super::super::AdapterModule {
            name,
            shapes: pair.shapes.clone(),
            a: &pair.a[..],
            b: &pair.b[..],
        });
        super::super::write_adapter(from.path(), "m", &ATTENTION, &[], false, modules).unwrap();
        write_for_peft(from.path(), &base, to.path()).unwrap();
        let text = std::fs::read(to.path().join(CONFIG_FILE)).unwrap();
        let config: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(config["peft_type"], "LORA");
        let stacked = "model.layers.0.linear_attn.in_proj_qkv";
        assert_eq!((&config["rank_pattern"][stacked], &config["alpha_pattern"][stacked]), (&json!(9), &json!(96.0)));
        assert!(config["target_modules"].as_array().unwrap().contains(&json!("in_proj_qkv")));
        let tensors = super::super::read_tensors(&to.path().join(TENSORS_FILE)).unwrap();
        assert_eq!(tensors[&format!("{PREFIX}{stacked}{A_SUFFIX}")].0, [9, base.hidden_size]);
    }
}

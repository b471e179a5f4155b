//! Contents of a training checkpoint apart from weights: the manifest and the optimizer's moments.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{OpError, RunSpec};

use super::{Elements, NamedTensor, io_error, malformed, read_tensors, unwritable, write_json, write_tensors};
use crate::config::{LoadError, ModelFiles};

/// All parameters of a run that trains them all, under their Hugging Face names.
pub(crate) const MODEL_FILE: &str = "model.safetensors";
/// Weight and bias of a scalar head.
pub(crate) const SCALAR_HEAD_FILE: &str = "value_head.safetensors";
/// File with the optimizer's moments.
pub(super) const OPTIMIZER_FILE: &str = "optimizer.safetensors";
/// File with the [`Manifest`].
pub(crate) const MANIFEST_FILE: &str = "trainyard.json";

const FORMAT: u32 = 1;
const M_SUFFIX: &str = ".m";
const V_SUFFIX: &str = ".v";

/// Spec and progress of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub spec: RunSpec,
    /// Number of optimizer steps taken.
    pub step: u64,
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    format: u32,
    #[serde(flatten)]
    content: T,
}

/// Writes the manifest into the folder `dir`.
pub(crate) fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), OpError> {
    write_json(&dir.join(MANIFEST_FILE), &Versioned { format: FORMAT, content: manifest })
}

/// Reads the manifest of the folder `dir`. A format that this version does not know is refused.
pub(crate) fn read_manifest(dir: &Path) -> Result<Manifest, LoadError> {
    let path = dir.join(MANIFEST_FILE);
    let bytes = std::fs::read(&path).map_err(|error| io_error(&path, error))?;
    let Versioned { format, content }: Versioned<serde_json::Value> =
        serde_json::from_slice(&bytes).map_err(|error| malformed(&path, error))?;
    if format != FORMAT {
        return Err(malformed(&path, format_args!("has format {format}, this version reads {FORMAT}")));
    }
    serde_json::from_value(content).map_err(|error| malformed(&path, error))
}

/// A parameter's moments, to be written.
#[derive(Clone, Debug)]
pub(crate) struct MomentsRef<'a, T: ?Sized = [f32]> {
    /// Name of the parameter.
    pub name: String,
    /// Extents of the parameter.
    pub shape: Vec<usize>,
    pub m: &'a T,
    pub v: &'a T,
}

/// A parameter's moments, as read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moments {
    pub shape: Vec<usize>,
    pub m: Vec<f32>,
    pub v: Vec<f32>,
}

/// Writes the moments into the folder `dir`, as `<parameter>.m` and `<parameter>.v`.
pub(crate) fn write_optimizer<'a, T: Elements + ?Sized + 'a>(
    dir: &Path,
    moments: impl Iterator<Item = MomentsRef<'a, T>>,
) -> Result<(), OpError> {
    let mut tensors: Vec<NamedTensor<'_, T>> = Vec::new();
    for MomentsRef { name, shape, m, v } in moments {
        tensors.push((format!("{name}{M_SUFFIX}"), shape.clone(), m));
        tensors.push((format!("{name}{V_SUFFIX}"), shape, v));
    }
    write_tensors(&dir.join(OPTIMIZER_FILE), &tensors)
}

/// Reads the moments of the folder `dir` by parameter. A moment without its sibling, or of other extents, is refused.
pub(crate) fn read_optimizer(dir: &Path) -> Result<BTreeMap<String, Moments>, LoadError> {
    let path = dir.join(OPTIMIZER_FILE);
    let mut stored = read_tensors(&path)?;
    let mut moments = BTreeMap::new();
    while let Some((name, (shape, values))) = stored.pop_first() {
        // "p.m" sorts before "p.v": a second moment that comes up here has lost its first.
        let Some(parameter) = name.strip_suffix(M_SUFFIX) else {
            return Err(malformed(&path, format_args!("tensor {name} is not one of a pair of moments")));
        };
        let sibling = format!("{parameter}{V_SUFFIX}");
        match stored.remove(&sibling) {
            None => return Err(LoadError::MissingTensor(sibling)),
            Some((found, _)) if found != shape => {
                return Err(LoadError::WrongShape { name: sibling, found, expected: shape });
            }
            Some((_, v)) => moments.insert(parameter.to_owned(), Moments { shape, m: values, v }),
        };
    }
    Ok(moments)
}

/// Writes a base model's configuration and tokenizer files into the folder `dir`.
pub(crate) fn write_model_files(dir: &Path, files: &ModelFiles) -> Result<(), OpError> {
    // A checkpoint has no folders within.
    for (name, content) in files.iter().filter(|(name, _)| !name.contains('/')) {
        let path = dir.join(name);
        let content = if name == "config.json" { unquantized(content) } else { Cow::Borrowed(&content[..]) };
        std::fs::write(&path, content).map_err(|error| unwritable(&path, &error))?;
    }
    Ok(())
}

/// A `config.json` without its keys for quantized files: weights are written in f32.
fn unquantized(config: &[u8]) -> Cow<'_, [u8]> {
    const KEY: &str = "quantization_config";
    let keys = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(config);
    let without = keys.ok().and_then(|mut keys| {
        let text = keys.get_mut("text_config").and_then(serde_json::Value::as_object_mut);
        let of_text = text.and_then(|text| text.remove(KEY));
        keys.remove(KEY).or(of_text).map(|_| keys)
    });
    match without.map(|keys| serde_json::to_vec_pretty(&keys)) {
        Some(Ok(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(config),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{LoraSpec, ModelHead, Optimizer};

    use super::*;

    #[test]
    fn configurations_of_written_models_are_not_quantized() {
        let plain = br#"{ "model_type": "gpt_oss" }"#;
        assert_eq!(*unquantized(plain), plain[..]);
        let quantized = br#"{"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}"#;
        let keys: serde_json::Value = serde_json::from_slice(&unquantized(quantized)).unwrap();
        assert_eq!(keys, serde_json::json!({"model_type": "gpt_oss"}));
        let of_text = br#"{"model_type": "kimi_k25", "text_config": {"vocab_size": 8, "quantization_config": {}}}"#;
        let keys: serde_json::Value = serde_json::from_slice(&unquantized(of_text)).unwrap();
        assert_eq!(keys, serde_json::json!({"model_type": "kimi_k25", "text_config": {"vocab_size": 8}}));
    }

    #[test]
    fn manifests_round_trip_and_have_a_format() {
        let dir = tempfile::tempdir().unwrap();
        let lora = LoraSpec { train_attn: false, ..LoraSpec::on_all(8, u64::MAX) };
        for lora in [None, Some(lora)] {
            let spec = RunSpec {
                base_model: "a/b".to_owned(),
                lora,
                optimizer: Optimizer::AdamW,
                head: ModelHead::Unembedding,
            };
            let manifest = Manifest { spec, step: 12 };
            write_manifest(dir.path(), &manifest).unwrap();
            assert_eq!(read_manifest(dir.path()).unwrap(), manifest);
        }
        let path = dir.path().join(MANIFEST_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
        assert!(read_manifest(dir.path()).unwrap_err().to_string().contains("has format 2"));
        std::fs::write(&path, &text[..20]).unwrap();
        assert!(read_manifest(dir.path()).is_err());
    }

    #[test]
    fn moments_come_in_pairs() {
        let dir = tempfile::tempdir().unwrap();
        let one = |name: &str| MomentsRef {
            name: name.to_owned(),
            shape: vec![1, 2],
            m: &[1.0, 2.0][..],
            v: &[3.0, 4.0][..],
        };
        // Parameters whose names look like moments of each other.
        write_optimizer(dir.path(), ["p", "p.m", "p.v", "q"].map(one).into_iter()).unwrap();
        let read = read_optimizer(dir.path()).unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), ["p", "p.m", "p.v", "q"]);
        assert_eq!(read["q"], Moments { shape: vec![1, 2], m: vec![1.0, 2.0], v: vec![3.0, 4.0] });

        let path = dir.path().join(OPTIMIZER_FILE);
        let refused = |tensors: &[NamedTensor<'_>]| {
            write_tensors(&path, tensors).unwrap();
            read_optimizer(dir.path()).unwrap_err().to_string()
        };
        assert_eq!(refused(&[("p.m".into(), vec![1], &[0.0])]), "tensor p.v is missing");
        assert!(refused(&[("p.v".into(), vec![1], &[0.0])]).contains("p.v is not one of a pair"));
        let uneven: [NamedTensor<'_>; 2] = [("p.m".into(), vec![1], &[0.0]), ("p.v".into(), vec![2], &[0.0; 2])];
        assert_eq!(refused(&uneven), "tensor p.v has shape [2], expected [1]");
    }
}

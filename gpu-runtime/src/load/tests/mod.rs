#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use serde_json::{Map, Value};
use tempfile::TempDir;

use super::keys::Keys;
use super::{check, hf, load};
use crate::config::{LoadError, ModelConfig, ModelSource, TensorSource};
use crate::rng::kaiming_uniform_fill;

mod deepseek_v3;
mod experts;
mod full_size;
mod gemma3;
mod gguf;
mod gguf_experts;
mod gguf_hybrid;
mod gguf_newer;
mod gguf_recurrent;
mod granitemoehybrid;
mod hf_folders;
pub(crate) mod hostile;
mod indexed;
mod kimi;
mod lfm2;
mod moonvit;
mod qwen3_vl;
mod ranges;
mod tokenizer;

pub(crate) use deepseek_v3::fp8;
pub(crate) use experts::mxfp4;
pub(crate) use gguf::{write_quantized, write_wide};
pub(crate) use gguf_experts::in_gguf;

/// Folders of golden models, sorted.
pub(crate) fn families() -> Vec<String> {
    let root = golden("");
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    let models = entries.filter(|entry| entry.path().join("config.json").is_file());
    let mut names: Vec<String> = models.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() >= 6, "{names:?}");
    names
}

/// The tensors of files in the form of a configuration that no `config.json` describes.
pub(crate) fn open(paths: &[PathBuf], config: &ModelConfig) -> Result<Box<dyn TensorSource>, LoadError> {
    let tensors = hf::open(paths, config, Keys::new("config.json", &Map::new()))?;
    check::check(config, &*tensors)?;
    Ok(tensors)
}

fn golden(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

fn config_of(family: &str) -> Map<String, Value> {
    serde_json::from_slice(&fs::read(golden(family).join("config.json")).unwrap()).unwrap()
}

/// A folder with a golden model's weights and the given configuration.
fn folder(family: &str, config: &Map<String, Value>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.json"), serde_json::to_vec(config).unwrap()).unwrap();
    fs::copy(golden(family).join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    folder
}

/// A folder with only the first block of a golden model, and its reference numbers.
pub(crate) fn first_block(family: &str) -> TempDir {
    let mut config = config_of(family);
    config.insert("num_hidden_layers".into(), 1.into());
    let folder = folder(family, &config);
    for entry in fs::read_dir(golden(family)).unwrap() {
        let path = entry.unwrap().path();
        let to = folder.path().join(path.file_name().unwrap());
        if !to.exists() {
            fs::copy(&path, to).unwrap();
        }
    }
    folder
}

/// A folder with only the first `vocab` tokens of a golden model.
pub(crate) fn with_vocabulary(family: &str, vocab: usize) -> TempDir {
    let mut config = config_of(family);
    config.insert("vocab_size".into(), vocab.into());
    let folder = folder(family, &config);
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let cut = |(name, view): (String, TensorView<'_>)| {
        let (mut shape, mut data) = (view.shape().to_vec(), view.data().to_vec());
        if ["model.embed_tokens.weight", "lm_head.weight"].contains(&name.as_str()) {
            data.truncate(data.len() / shape[0] * vocab);
            shape[0] = vocab;
        }
        (name, view.dtype(), shape, data)
    };
    let tensors: Vec<_> = file.tensors().into_iter().map(cut).collect();
    let views: BTreeMap<_, _> = tensors
        .iter()
        .map(|(name, dtype, shape, data)| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()))
        .collect();
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
    folder
}

/// A folder with the golden DeepSeek-V3 but queries projected from the residual stream, as its smaller siblings have them.
pub(crate) fn without_query_latent() -> TempDir {
    let mut config = config_of("deepseek_v3");
    config.insert("q_lora_rank".into(), Value::Null);
    let folder = folder("deepseek_v3", &config);
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut all: BTreeMap<String, TensorView<'_>> =
        file.tensors().into_iter().filter(|(name, _)| !name.contains(".self_attn.q_")).collect();
    // Four heads of 24.
    let weights: Vec<Vec<u8>> = (0..2)
        .map(|layer| {
            let mut values = vec![0.0; 96 * 64];
            kaiming_uniform_fill(3, layer, &mut values, 0.2);
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        })
        .collect();
    for (layer, weight) in weights.iter().enumerate() {
        let view = TensorView::new(safetensors::Dtype::F32, vec![96, 64], weight).unwrap();
        all.insert(format!("model.layers.{layer}.self_attn.q_proj.weight"), view);
    }
    let file = safetensors::serialize(all, None).unwrap();
    fs::write(path, file).unwrap();
    folder
}

/// The error of loading a model that must be refused.
fn refusal(path: &Path) -> String {
    match load(path) {
        Ok(_) => panic!("{} loads", path.display()),
        Err(error) => error.to_string(),
    }
}

fn assert_same_tensors(a: &ModelSource, b: &ModelSource) {
    assert_eq!(a.tensors.names(), b.tensors.names());
    for name in a.tensors.names() {
        assert_eq!(a.tensors.shape(&name), b.tensors.shape(&name), "{name}");
        assert!(a.tensors.read(&name).unwrap() == b.tensors.read(&name).unwrap(), "{name}");
    }
    [a, b].into_iter().for_each(assert_reads_parts);
}

/// Parts of a tensor are read as the same elements of all of it.
fn assert_reads_parts(source: &ModelSource) {
    for name in source.tensors.names() {
        let all = source.tensors.read(&name).unwrap();
        let len = all.len();
        for part in [0..len, 0..len / 2, len / 2..len, len / 4..len / 2, 1..len.min(3), 0..0] {
            assert!(source.tensors.read_part(&name, part.clone()).unwrap() == all[part.clone()], "{name} {part:?}");
        }
        let error = source.tensors.read_part(&name, 0..len + 1).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains("is missing"), "{error}");
    }
}

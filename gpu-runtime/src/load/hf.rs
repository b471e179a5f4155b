//! Hugging Face folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::keys::Keys;
use super::safetensors::SafetensorsSource;
use super::{check, families, io, malformed};
use crate::config::{LoadError, ModelFiles, ModelSource, WeightFiles};

/// What a client may need to tokenize and render; never weights.
const FILES: [&str; 11] = [
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
];

const INDEX: &str = "model.safetensors.index.json";

/// Bytes of a JSON file that is parsed: a parsed one takes up to fifty times as much. The index of a model with a
/// hundred thousand tensors has ten million.
const MAX_JSON: u64 = 1 << 25;

pub(super) fn load(folder: &Path) -> Result<ModelSource, LoadError> {
    let path = folder.join("config.json");
    let json = read_object(&path)?;
    let name = path.display().to_string();
    let keys = Keys::new(&name, &json);
    let mut config = families::config(keys)?;
    config.eos_token_ids = end_tokens(keys, folder)?;
    let paths = weight_files(folder)?;
    let tensors = SafetensorsSource::open(&paths)?;
    check::check(&config, &tensors)?;
    let weight_files = WeightFiles::at(&paths)?;
    Ok(ModelSource { config, files: files(folder)?, tensors: Box::new(tensors), weight_files })
}

/// `eos_token_id` of `config.json` and of `generation_config.json`, in this order, without repeats.
fn end_tokens(keys: Keys<'_>, folder: &Path) -> Result<Vec<u32>, LoadError> {
    let mut ids = keys.token_ids("eos_token_id")?;
    let path = folder.join("generation_config.json");
    if path.is_file() {
        let json = read_object(&path)?;
        ids.extend(Keys::new(&path.display().to_string(), &json).token_ids("eos_token_id")?);
    }
    let mut seen = BTreeSet::new();
    ids.retain(|&id| seen.insert(id));
    Ok(ids)
}

/// `model.safetensors`, or the shards that the index names.
fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let single = folder.join("model.safetensors");
    if single.is_file() {
        return Ok(vec![single]);
    }
    let path = folder.join(INDEX);
    if !path.is_file() {
        return Err(malformed(folder, format!("the folder has neither model.safetensors nor {INDEX}")));
    }
    let json = read_object(&path)?;
    let name = path.display().to_string();
    let map = Keys::new(&name, &json).object("weight_map")?;
    let map = map.ok_or_else(|| malformed(&path, "weight_map is missing"))?;
    let mut shards = BTreeSet::new();
    for (tensor, file) in map.members() {
        // A shard is a file of this folder, whatever the index says.
        let file = file.as_str().filter(|name| Path::new(name).file_name().is_some_and(|last| last == *name));
        let file = file.ok_or_else(|| malformed(&path, format!("weight_map of {tensor} is not a file name")))?;
        shards.insert(folder.join(file));
    }
    Ok(shards.into_iter().collect())
}

fn files(folder: &Path) -> Result<ModelFiles, LoadError> {
    let mut files = ModelFiles::new();
    for name in FILES {
        let path = folder.join(name);
        if path.is_file() {
            files.insert(name.to_owned(), std::fs::read(&path).map_err(|e| io(&path, e))?);
        }
    }
    Ok(files)
}

fn read_object(path: &Path) -> Result<Map<String, Value>, LoadError> {
    let size = std::fs::metadata(path).map_err(|e| io(path, e))?.len();
    if size > MAX_JSON {
        return Err(malformed(path, format!("{size} bytes, at most {MAX_JSON}")));
    }
    let text = std::fs::read(path).map_err(|e| io(path, e))?;
    serde_json::from_slice(&text).map_err(|e| malformed(path, e.to_string()))
}

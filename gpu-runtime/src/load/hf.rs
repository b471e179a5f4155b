//! Models in Hugging Face folders.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use serde_json::{Map, Value};

use super::block_scaled::{BlockScaled, block_size};
use super::errors::{io, malformed};
use super::fused::FusedTensors;
use super::keys::Keys;
use super::mxfp4_stacks::Mxfp4Stacks;
use super::packed_int4::{self, PackedInt4, group_size};
use super::safetensors::SafetensorsSource;
use super::storage::with_storage_of;
use super::tiktoken::tokenizer_of_ranks;
use super::{check, families, tower};
use crate::config::{ExpertStorage, LoadError, ModelConfig, ModelFiles, ModelSource, TensorSource, WeightFiles};

/// Files that a client may need to tokenize and render; never weights.
const FILES: [&str; 16] = [
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "preprocessor_config.json",
    "special_tokens_map.json",
    "tiktoken.model",
    // Code of tokenizers, which only clients execute, if they trust it.
    "tokenization_kimi.py",
    "tokenization_moonshot.py",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "tool_declaration_ts.py",
    "vocab.json",
];

/// The folder with chat templates beside the default one.
const TEMPLATES: &str = "additional_chat_templates";

/// The file that names the file of each tensor, where there are several.
pub(crate) const INDEX: &str = "model.safetensors.index.json";

/// Bytes of a JSON file that is parsed: a parsed one takes up to fifty times as much. The index of a model with a
/// hundred thousand tensors has ten million.
const MAX_JSON: u64 = 1 << 25;

/// Reads the model that a `config.json` describes without its weights: end tokens and the routers' corrections are
/// missing.
pub(super) fn config(path: &Path) -> Result<ModelConfig, LoadError> {
    families::config(Keys::new(&path.display().to_string(), &read_object(path)?))
}

pub(super) fn load(folder: &Path) -> Result<ModelSource, LoadError> {
    let path = folder.join("config.json");
    let json = read_object(&path)?;
    let name = path.display().to_string();
    let keys = Keys::new(&name, &json);
    let mut config = families::config(keys)?;
    config.eos_token_ids = end_tokens(keys, folder)?;
    let paths = weight_files(folder)?;
    let tensors = open(&paths, &config, keys)?;
    let is_untied = check::untie(&mut config, &*tensors)?;
    tower::complete(&mut config, folder, &*tensors)?;
    check::check(&config, &*tensors)?;
    check::read_corrections(&mut config, &*tensors)?;
    let weight_files = WeightFiles::at(&paths)?;
    let mut files = files(folder)?;
    match tokenizer_of_ranks(&files, config.vocab_size) {
        Ok(made) => files.extend(made.map(|json| ("tokenizer.json".to_owned(), json))),
        Err(error) => {
            let path = folder.display();
            tracing::warn!(%path, %error, "the model's tokenizer can't be read; it is served without text");
        }
    }
    if is_untied {
        files.insert("config.json".to_owned(), untied(json));
    }
    Ok(ModelSource { path: folder.to_owned(), config, files, tensors, weight_files })
}

/// The description of the model in a folder, with the storage of experts that its files have, and the files of its weights, whose
/// tensors are plain numbers.
///
/// # Errors
/// Errors of [`super::load`]; quantized weights.
pub(crate) fn plain_files(folder: &Path) -> Result<(ModelConfig, Vec<PathBuf>), LoadError> {
    let path = folder.join("config.json");
    let json = read_object(&path)?;
    let name = path.display().to_string();
    let keys = Keys::new(&name, &json);
    let mut config = families::config(keys)?;
    if families::quantization(&keys)?.is_some() {
        return Err(LoadError::Unsupported(
            "quantization_config (weights that are modified must not be quantized)".into(),
        ));
    }
    let paths = weight_files(folder)?;
    let tensors = SafetensorsSource::open(&paths, None, &config.spelling)?;
    check::untie(&mut config, &tensors)?;
    Ok((with_storage_of(&tensors, &config)?, paths))
}

/// A `config.json` that says what is loaded, for whoever reads it with these weights.
pub(crate) fn untied(mut json: Map<String, Value>) -> Vec<u8> {
    if let Some(Value::Object(text)) = json.get_mut("text_config") {
        text.insert("tie_word_embeddings".to_owned(), false.into());
    }
    json.insert("tie_word_embeddings".to_owned(), false.into());
    format!("{:#}\n", Value::Object(json)).into_bytes()
}

/// The tensors by the names of the parameter table, in f32 where the files have them in fewer bits.
pub(super) fn open(
    paths: &[PathBuf],
    config: &ModelConfig,
    keys: Keys<'_>,
) -> Result<Box<dyn TensorSource>, LoadError> {
    let of = |packed| SafetensorsSource::open(paths, packed, &config.spelling);
    let is_interleaved =
        config.blocks.iter().flat_map(|b| &b.experts).any(|experts| experts.storage == ExpertStorage::Interleaved);
    let source: Box<dyn TensorSource> = match families::quantization(&keys)? {
        _ if is_interleaved => Box::new(Mxfp4Stacks::new(of(Some(Dtype::U8))?)?),
        None => Box::new(of(None)?),
        Some(quantization) if quantization.text("quant_method")? == Some(families::PACKED) => {
            let group = group_size(&quantization)?;
            Box::new(PackedInt4::new(of(Some(packed_int4::PACKED))?, group)?)
        }
        Some(quantization) => {
            let block = block_size(&quantization)?;
            Box::new(BlockScaled::new(of(Some(Dtype::F8_E4M3))?, block)?)
        }
    };
    Ok(Box::new(FusedTensors::new(source, config)?))
}

/// `eos_token_id` of `config.json`, there of the text model too, and of `generation_config.json`, in this order, without repeats.
fn end_tokens(keys: Keys<'_>, folder: &Path) -> Result<Vec<u32>, LoadError> {
    let mut ids = keys.token_ids("eos_token_id")?;
    if let Some(text) = keys.object("text_config")? {
        ids.extend(text.token_ids("eos_token_id")?);
    }
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
    let templates = folder.join(TEMPLATES);
    if templates.is_dir() {
        for entry in std::fs::read_dir(&templates).map_err(|e| io(&templates, e))? {
            let path = entry.map_err(|e| io(&templates, e))?.path();
            let name = path.file_name().and_then(OsStr::to_str).filter(|name| name.ends_with(".jinja"));
            if let Some(name) = name.filter(|_| path.is_file()) {
                let content = std::fs::read(&path).map_err(|e| io(&path, e))?;
                files.insert(format!("{TEMPLATES}/{name}"), content);
            }
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
    super::json::read(&text).map_err(|e| malformed(path, e.to_string()))
}

//! Models on disk: a Hugging Face folder or a GGUF file becomes a checked [`ModelSource`].

use std::path::Path;

use crate::config::{LoadError, ModelConfig, ModelSource};
use errors::{io, malformed};

mod block_scaled;
mod bpe;
mod check;
mod errors;
mod families;
mod fused;
mod gguf;
mod hf;
mod hub_cache;
mod json;
mod keys;
mod layout;
mod mxfp4;
mod mxfp4_stacks;
mod packed;
mod packed_int4;
mod safetensors;
mod storage;
mod tiktoken;
mod tower;

pub(crate) use check::HEAD;
pub(crate) use hf::{INDEX, plain_files, untied};
pub use hub_cache::{location, open};
pub(crate) use layout::{Arrangement, Columns, FileTensor, file_tensors, has_own_form};
pub(crate) use packed::pack;
pub use tiktoken::tokenizer_of_ranks;

#[cfg(test)]
pub(crate) mod tests;

/// Opens the model at `path`: a Hugging Face folder (`config.json` with safetensors), a `*.gguf` file, or
/// a folder that holds exactly one. Reads headers and small files; weights are read tensor by tensor later.
///
/// # Errors
/// Whatever the runtime cannot serve is refused here, by the name of the file, key or tensor: an unknown
/// family or rope scaling, a missing tensor, a wrong shape, a truncated file.
pub fn load(path: &Path) -> Result<ModelSource, LoadError> {
    let metadata = std::fs::metadata(path).map_err(|source| io(path, source))?;
    if !metadata.is_dir() {
        return if gguf::has_extension(path) {
            gguf::load(path)
        } else {
            Err(malformed(path, "neither a folder nor a .gguf file"))
        };
    }
    if path.join("config.json").is_file() {
        return hf::load(path);
    }
    match gguf::files_in(path)?.as_slice() {
        [only] => gguf::load(only),
        [] => Err(malformed(path, "the folder has neither config.json nor a .gguf file")),
        many => Err(malformed(path, format!("the folder has {} .gguf files; name one of them", many.len()))),
    }
}

/// Reads the configuration of the model at `path`: a Hugging Face folder, with or without its weights, a `config.json`,
/// or a `*.gguf` file. Weights are not read.
///
/// # Errors
/// Errors of [`load`] that concern the configuration.
pub fn describe(path: &Path) -> Result<ModelConfig, LoadError> {
    let metadata = std::fs::metadata(path).map_err(|source| io(path, source))?;
    if path.extension().is_some_and(|extension| extension == "json") && metadata.is_file() {
        return hf::config(path);
    }
    let within = path.join("config.json");
    if metadata.is_dir() && within.is_file() { hf::config(&within) } else { load(path).map(|source| source.config) }
}

/// Reads the text of a `config.json`; `name` is for errors.
///
/// # Errors
/// Errors of [`load`] that concern the configuration.
pub fn describe_json(name: &str, text: &str) -> Result<ModelConfig, LoadError> {
    let json = json::read(text.as_bytes()).map_err(|error| malformed(Path::new(name), error.to_string()))?;
    families::config(keys::Keys::new(name, &json))
}

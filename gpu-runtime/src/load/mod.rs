//! Models on disk: a Hugging Face folder or a GGUF file becomes a checked [`ModelSource`].

use std::path::Path;

use crate::config::{LoadError, ModelConfig, ModelSource};

mod block_scaled;
mod check;
mod families;
mod gguf;
mod hf;
mod hub_cache;
mod keys;
mod mxfp4;
mod safetensors;
mod stacked;

pub use hub_cache::locate;
pub(crate) use stacked::{has_stacks, stored_tensors};

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
    let json = serde_json::from_str(text).map_err(|error| malformed(Path::new(name), error.to_string()))?;
    families::config(keys::Keys::new(name, &json))
}

fn io(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io { path: path.display().to_string(), source }
}

fn malformed(path: &Path, reason: impl Into<String>) -> LoadError {
    LoadError::Malformed { path: path.display().to_string(), reason: reason.into() }
}

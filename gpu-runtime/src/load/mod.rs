//! Models on disk: a Hugging Face folder or a GGUF file becomes a checked [`ModelSource`].

use std::path::Path;

use crate::config::{LoadError, ModelSource};

mod block_scaled;
mod check;
mod families;
mod gguf;
mod hf;
mod hub_cache;
mod keys;
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

fn io(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io { path: path.display().to_string(), source }
}

fn malformed(path: &Path, reason: impl Into<String>) -> LoadError {
    LoadError::Malformed { path: path.display().to_string(), reason: reason.into() }
}

//! GGUF files: one file with weights, configuration and tokenizer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use self::architecture::Architecture;
use self::joined::JoinedTensors;
use self::metadata::GgufFile;
use self::tensors::GgufSource;
use super::errors::io;
use super::fused::FusedTensors;
use super::keys::Keys;
use super::{check, families as folders};
use crate::config::{LoadError, ModelConfig, ModelSource, TensorSource, WeightFiles};

mod architecture;
mod config;
mod conversion;
mod dense;
mod dtype;
mod entry;
mod error;
mod extents;
mod families;
mod header;
mod hybrid;
mod joined;
mod metadata;
mod moe;
mod names;
mod own;
mod reader;
mod recurrent;
mod rope;
mod stacks;
mod tensors;
mod tokenizer;
mod value;

pub(super) fn has_extension(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("gguf"))
}

/// The `*.gguf` files of a folder, sorted.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| io(folder, e))? {
        let path = entry.map_err(|e| io(folder, e))?.path();
        if has_extension(&path) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn load(path: &Path) -> Result<ModelSource, LoadError> {
    let file = GgufFile::open(path)?;
    let family = families::of(&file)?;
    let tensors = GgufSource::open(&file, family)?;
    let json = config::config_json(&file, family, &tensors)?;
    let name = path.display().to_string();
    let mut config = folders::config(Keys::new(&name, &json))?;
    config.eos_token_ids = config::end_tokens(&file)?;
    tensors.check_experts(&config)?;
    let tensors = apart(tensors, family, &config)?;
    check::check(&config, &*tensors)?;
    check::read_corrections(&mut config, &*tensors)?;
    let files = tokenizer::files(&file, &json, &config.eos_token_ids)?;
    let weight_files = WeightFiles::at(&[path.to_owned()])?;
    Ok(ModelSource { path: path.to_owned(), config, files, tensors, weight_files })
}

/// The tensors by the names of the parameter table: files fuse what Hugging Face's folders do.
fn apart(tensors: GgufSource, family: &Architecture, config: &ModelConfig) -> Result<Box<dyn TensorSource>, LoadError> {
    let tensors: Box<dyn TensorSource> = match family.joined {
        [] => Box::new(tensors),
        joined => Box::new(JoinedTensors::new(Box::new(tensors), joined)?),
    };
    Ok(match config.spelling.fused {
        [] => tensors,
        _ => Box::new(FusedTensors::new(tensors, config)?),
    })
}

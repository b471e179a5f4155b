//! GGUF files: one file with weights, configuration and tokenizer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use self::architecture::Architecture;
use self::metadata::GgufFile;
use self::tensors::GgufSource;
use super::keys::Keys;
use super::{check, families, io};
use crate::config::{LoadError, ModelSource, WeightFiles};

mod architecture;
mod config;
mod dtype;
mod entry;
mod error;
mod header;
mod metadata;
mod moe;
mod names;
mod reader;
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
    let family = Architecture::of(&file)?;
    let tensors = GgufSource::open(&file, family)?;
    let json = config::config_json(&file, family, &tensors)?;
    let name = path.display().to_string();
    let mut config = families::config(Keys::new(&name, &json))?;
    config.eos_token_ids = config::end_tokens(&file)?;
    tensors.check_experts(&config)?;
    check::check(&config, &tensors)?;
    check::read_corrections(&mut config, &tensors)?;
    let files = tokenizer::files(&file, &json, &config.eos_token_ids)?;
    let weight_files = WeightFiles::at(&[path.to_owned()])?;
    Ok(ModelSource { path: path.to_owned(), config, files, tensors: Box::new(tensors), weight_files })
}

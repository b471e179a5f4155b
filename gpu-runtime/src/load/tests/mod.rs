#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tempfile::TempDir;

use super::load;
use crate::config::ModelSource;

mod gemma3;
mod gguf;
mod hf;
mod hostile;
mod tokenizer;

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

/// What loading says when it must refuse.
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
}

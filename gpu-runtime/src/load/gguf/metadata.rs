//! An opened GGUF file, with typed access to its metadata.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::header::Header;
use super::value::Value;
use crate::config::LoadError;
use crate::load::errors::{io, malformed};

/// An opened GGUF file, header read.
pub(super) struct GgufFile {
    pub(super) path: PathBuf,
    pub(super) header: Header,
}

impl GgufFile {
    pub(super) fn open(path: &Path) -> Result<Self, LoadError> {
        let file = File::open(path).map_err(|e| io(path, e))?;
        let size = file.metadata().map_err(|e| io(path, e))?.len();
        let header = Header::read(BufReader::with_capacity(1 << 16, file), size).map_err(|e| e.of_file(path))?;
        let file = Self { path: path.to_owned(), header };
        match file.integer("split.count")? {
            Some(count) if count > 1 => Err(LoadError::Unsupported(format!("GGUF split into {count} files"))),
            _ => Ok(file),
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.header.metadata.get(key)
    }

    pub(super) fn integer(&self, key: &str) -> Result<Option<u64>, LoadError> {
        self.read(key, "an integer", Value::integer)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, LoadError> {
        self.read(key, "a finite number", |value| value.number().filter(|number| number.is_finite()))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, LoadError> {
        self.read(key, "true or false", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, LoadError> {
        self.read(key, "a string", |value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<&str>>, LoadError> {
        self.read(key, "a list of strings", |value| match value {
            Value::Texts(texts) => Some(texts.iter().map(String::as_str).collect()),
            other => other.is_empty_array().then(Vec::new),
        })
    }

    pub(super) fn integers(&self, key: &str) -> Result<Option<Vec<u64>>, LoadError> {
        self.read(key, "a list of integers", |value| value.numbers()?.map(|value| value.integer()).collect())
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, LoadError> {
        self.read(key, "a list of numbers", |value| value.numbers()?.map(|value| value.number()).collect())
    }

    pub(super) fn malformed(&self, reason: impl Into<String>) -> LoadError {
        malformed(&self.path, reason)
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        kind: &str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, LoadError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => {
                convert(value).map(Some).ok_or_else(|| self.malformed(format!("metadata key {key} is not {kind}")))
            }
        }
    }
}

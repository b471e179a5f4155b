//! The header of a GGUF file, with typed access to its metadata.

use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{Content, Value};

use crate::config::LoadError;
use crate::load::{io, malformed};

/// An opened GGUF file, header read.
pub(super) struct GgufFile {
    pub(super) path: PathBuf,
    pub(super) content: Content,
}

impl GgufFile {
    pub(super) fn open(path: &Path) -> Result<Self, LoadError> {
        let file = File::open(path).map_err(|e| io(path, e))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        // The reader divides by `general.alignment` unseen; a zero there must not take the server down.
        let content = catch_unwind(AssertUnwindSafe(|| Content::read(&mut reader)))
            .map_err(|_| malformed(path, "damaged GGUF header"))?
            .map_err(|e| malformed(path, format!("GGUF header: {e}")))?;
        let file = Self { path: path.to_owned(), content };
        match file.integer("split.count")? {
            Some(count) if count > 1 => Err(LoadError::Unsupported(format!("GGUF split into {count} files"))),
            _ => Ok(file),
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.content.metadata.get(key)
    }

    pub(super) fn integer(&self, key: &str) -> Result<Option<u64>, LoadError> {
        self.read(key, "an integer", integer)
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, LoadError> {
        self.read(key, "a number", number)
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, LoadError> {
        self.read(key, "true or false", |value| value.to_bool().ok())
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, LoadError> {
        self.read(key, "a string", |value| value.to_string().ok().map(String::as_str))
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&[Value]>, LoadError> {
        self.read(key, "a list", |value| value.to_vec().ok().map(Vec::as_slice))
    }

    pub(super) fn integers(&self, key: &str) -> Result<Option<Vec<u64>>, LoadError> {
        self.read(key, "a list of integers", |value| value.to_vec().ok()?.iter().map(integer).collect())
    }

    pub(super) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, LoadError> {
        self.read(key, "a list of numbers", |value| value.to_vec().ok()?.iter().map(number).collect())
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

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::F32(v) => decimal(*v),
        Value::F64(v) => Some(*v),
        other => integer(other).map(|v| v as f64),
    }
}

fn integer(value: &Value) -> Option<u64> {
    match *value {
        Value::I8(v) => u64::try_from(v).ok(),
        Value::I16(v) => u64::try_from(v).ok(),
        Value::I32(v) => u64::try_from(v).ok(),
        Value::I64(v) => u64::try_from(v).ok(),
        Value::Bool(_) => None,
        ref other => other.to_u64().ok(),
    }
}

/// The number that was meant before it was stored in single precision: 1e-5, not 9.999999747378752e-6.
fn decimal(value: f32) -> Option<f64> {
    value.to_string().parse().ok()
}

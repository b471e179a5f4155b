//! Typed access to the keys of an architecture.

use serde_json::{Map, Value};

use super::metadata::GgufFile;
use crate::config::LoadError;

/// The keys of a file that begin with the name of its architecture.
pub(super) struct Own<'f> {
    pub(super) file: &'f GgufFile,
    pub(super) arch: &'static str,
}

impl Own<'_> {
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.arch)
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<u64>, LoadError> {
        self.file.integer(&self.key(name))
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, LoadError> {
        self.file.number(&self.key(name))
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, LoadError> {
        self.file.flag(&self.key(name))
    }

    pub(super) fn required(&self, name: &str) -> Result<u64, LoadError> {
        self.integer(name)?.ok_or_else(|| self.missing(name))
    }

    /// An integer that is not zero.
    pub(super) fn positive(&self, name: &str) -> Result<u64, LoadError> {
        match self.required(name)? {
            0 => Err(self.file.malformed(format!("metadata key {} is zero", self.key(name)))),
            value => Ok(value),
        }
    }

    pub(super) fn missing(&self, name: &str) -> LoadError {
        self.file.malformed(format!("metadata key {} is missing", self.key(name)))
    }

    /// A truth value for each of at least `blocks` blocks; `None` if the key is missing or an integer.
    pub(super) fn flags(&self, name: &str, blocks: u64) -> Result<Option<Vec<bool>>, LoadError> {
        let key = self.key(name);
        let Some(value) = self.file.value(&key).filter(|value| value.integer().is_none()) else { return Ok(None) };
        let flags = value
            .flags()
            .ok_or_else(|| self.file.malformed(format!("metadata key {key} is not a list of truth values")))?;
        self.check_length(name, flags.len(), blocks)?;
        Ok(Some(flags))
    }

    /// An integer for each of at least `blocks` blocks: a list, or one for all of them.
    pub(super) fn by_block(&self, name: &str, blocks: u64) -> Result<Vec<u64>, LoadError> {
        let key = self.key(name);
        let value = self.file.value(&key).ok_or_else(|| self.missing(name))?;
        let all = match value.integer() {
            // As many as a model can have; `blocks` is whatever the file says.
            Some(one) => vec![one; usize::try_from(blocks.min(MOST_BLOCKS)).unwrap_or(0)],
            None => self.file.integers(&key)?.unwrap_or_default(),
        };
        self.check_length(name, all.len(), blocks.min(MOST_BLOCKS))?;
        Ok(all)
    }

    fn check_length(&self, name: &str, found: usize, blocks: u64) -> Result<(), LoadError> {
        if (found as u64) < blocks {
            let key = self.key(name);
            return Err(self.file.malformed(format!("metadata key {key} has {found} entries for {blocks} blocks")));
        }
        Ok(())
    }

    /// Refuses a number that is present but not among these; the error names the last one as supported.
    pub(super) fn one_of(&self, name: &str, supported: &[f64]) -> Result<(), LoadError> {
        match (self.number(name)?, supported) {
            (Some(found), [.., named]) if !supported.contains(&found) => {
                Err(LoadError::Unsupported(format!("{} {found} (supported: {named})", self.key(name))))
            }
            _ => Ok(()),
        }
    }

    /// Number of experts under `count_key`, and of those that a token goes to.
    pub(super) fn experts(&self, json: &mut Map<String, Value>, count_key: &str) -> Result<(), LoadError> {
        json.insert(count_key.into(), self.required("expert_count")?.into());
        json.insert("num_experts_per_tok".into(), self.required("expert_used_count")?.into());
        Ok(())
    }
}

/// Blocks above this number are left to the configuration's check.
pub(super) const MOST_BLOCKS: u64 = 1 << 16;

/// Adds the members of an object.
pub(super) fn extend(json: &mut Map<String, Value>, settings: Value) {
    if let Value::Object(settings) = settings {
        json.extend(settings);
    }
}

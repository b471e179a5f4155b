//! Typed reading of a JSON object, with errors that name the file and the key.

use serde_json::{Map, Value};

use crate::config::LoadError;

/// The members of a JSON object and where it came from. A `null` member reads as absent.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    path: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(path: &'a str, map: &'a Map<String, Value>) -> Self {
        Self { path, map }
    }

    /// Whether the key is written at all, be it as `null`.
    pub(super) fn is_written(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// All members, in the order of the object.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.map.iter()
    }

    /// A count or an extent.
    pub(super) fn size(&self, key: &str) -> Result<Option<usize>, LoadError> {
        // Keeps the products of two extents far inside 64 bits.
        const LIMIT: u64 = 1 << 28;
        let read = |value: &Value| value.as_u64().filter(|&v| v <= LIMIT).and_then(|v| usize::try_from(v).ok());
        self.read(key, "a non-negative integer within bounds", read)
    }

    /// A count or an extent that must be given and not be zero.
    pub(super) fn required_size(&self, key: &str) -> Result<usize, LoadError> {
        match self.size(key)? {
            Some(size) if size > 0 => Ok(size),
            Some(_) => Err(self.malformed(format!("{key} is zero"))),
            None => Err(self.malformed(format!("{key} is missing"))),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, LoadError> {
        self.read(key, "a number", Value::as_f64)
    }

    pub(super) fn required_number(&self, key: &str) -> Result<f64, LoadError> {
        self.number(key)?.ok_or_else(|| self.malformed(format!("{key} is missing")))
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, LoadError> {
        self.read(key, "true or false", Value::as_bool)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, LoadError> {
        self.read(key, "a string", Value::as_str)
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, LoadError> {
        self.read(key, "a list", Value::as_array)
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Keys<'a>>, LoadError> {
        let map = self.read(key, "an object", Value::as_object)?;
        Ok(map.map(|map| Keys { path: self.path, map }))
    }

    /// Token ids given as one integer, a list of them, or nothing. Negative ids match no token and are left out.
    pub(super) fn token_ids(&self, key: &str) -> Result<Vec<u32>, LoadError> {
        let Some(value) = self.value(key) else { return Ok(Vec::new()) };
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let mut ids = Vec::with_capacity(items.len());
        for item in items {
            let id =
                item.as_i64().ok_or_else(|| self.malformed(format!("{key} is not an integer or a list of them")))?;
            ids.extend(u32::try_from(id));
        }
        Ok(ids)
    }

    pub(super) fn malformed(&self, reason: impl Into<String>) -> LoadError {
        LoadError::Malformed { path: self.path.to_owned(), reason: reason.into() }
    }

    fn read<T>(&self, key: &str, kind: &str, convert: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>, LoadError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => {
                convert(value).map(Some).ok_or_else(|| self.malformed(format!("{key} is {value}, expected {kind}")))
            }
        }
    }
}

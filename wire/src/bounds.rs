//! Bounds on what clients store as labels, names and metadata, checked where the field is read.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use trainyard_protocol::limits::{
    MAX_METADATA_BYTES, MAX_METADATA_ENTRIES, MAX_METADATA_KEY_BYTES, MAX_METADATA_VALUE_BYTES, MAX_TAG_BYTES,
    MAX_TEXT_BYTES,
};

use super::{json, lists};

/// Reads metadata, and null as an empty map; use with `#[serde(default)]`. A value counts with the length of its JSON.
pub(crate) fn metadata<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Serialize,
{
    let found: BTreeMap<String, T> = json::bounded_map(deserializer, MAX_METADATA_ENTRIES, "entries")?;
    let mut all = 0;
    for (key, value) in &found {
        check("bytes in a key", key.len(), MAX_METADATA_KEY_BYTES)?;
        let bytes = serde_json::to_vec(value).map_err(D::Error::custom)?.len();
        check(&format!("bytes under {key:?}"), bytes, MAX_METADATA_VALUE_BYTES)?;
        all += key.len() + bytes;
    }
    check("bytes in all", all, MAX_METADATA_BYTES)?;
    Ok(found)
}

/// Reads a list of labels, and null as an empty list; use with `#[serde(default)]`.
pub(crate) fn tags<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let found: Vec<String> = lists::tags(deserializer)?;
    check("bytes in all tags", found.iter().map(String::len).sum(), MAX_TAG_BYTES)?;
    Ok(found)
}

/// Reads a short text or null; use with `#[serde(default)]`.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let found: Option<String> = Option::deserialize(deserializer)?;
    check("bytes", found.as_ref().map_or(0, String::len), MAX_TEXT_BYTES)?;
    Ok(found)
}

/// Reads a short text, and null as the empty text; use with `#[serde(default)]`.
pub(crate) fn text_or_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text(deserializer).map(Option::unwrap_or_default)
}

fn check<E: Error>(what: &str, found: usize, most: usize) -> Result<(), E> {
    if found <= most { Ok(()) } else { Err(E::custom(format!("{found} {what}, at most {most} are allowed"))) }
}

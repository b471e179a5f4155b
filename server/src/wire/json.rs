//! Reading JSON bodies with errors that name the field at fault.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;
use trainyard_protocol::{OpError, RunId};

/// Free-form metadata as clients send it.
pub type Metadata = BTreeMap<String, Value>;

/// Reads a body. The error is the user's and says where: `sampling_params.temperature: invalid type …`.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, OpError> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        OpError::user(describe(&path, error.inner()))
    })?;
    deserializer.end().map_err(|error| OpError::user(describe(".", &error)))?;
    Ok(value)
}

fn describe(path: &str, error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if error.classify() != Category::Data {
        return format!("the body is not valid JSON: {text}");
    }
    // The position in the body tells a client less than the field's path.
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    if path == "." { text } else { format!("{path}: {text}") }
}

/// The run and `seq_id` of a training request whose other fields may be wrong, so that the id can be
/// consumed: the client never sends a refused one again.
pub fn training_ids(body: &[u8]) -> Option<(RunId, i64)> {
    #[derive(Deserialize)]
    struct Ids {
        model_id: String,
        seq_id: i64,
    }
    let ids: Ids = serde_json::from_slice(body).ok()?;
    Some((RunId::new(ids.model_id), ids.seq_id))
}

/// Reads `null` as the type's default; use with `#[serde(default)]`.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Metadata as text: strings as they are, anything else as compact JSON.
pub fn text_metadata(metadata: &Metadata) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// A seed as the engine takes it: any integer, folded into `[0, 2^63)`.
pub(crate) fn fold_seed(seed: i128) -> u64 {
    // The modulus is 2^63, so the remainder fits.
    seed.rem_euclid(1 << 63) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the error matters")]
    struct Outer {
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only the error matters")]
    struct Inner {
        number: u32,
        #[serde(default, deserialize_with = "or_default")]
        flag: bool,
    }

    fn message(body: &str) -> String {
        parse::<Outer>(body.as_bytes()).unwrap_err().message
    }

    #[test]
    fn errors_name_the_field() {
        assert_eq!(
            message(r#"{"inner":[{"number":1},{"number":"x"}]}"#),
            "inner[1].number: invalid type: string \"x\", expected u32"
        );
        assert_eq!(
            message(r#"{"inner":[{"number":-1}]}"#),
            "inner[0].number: invalid value: integer `-1`, expected u32"
        );
        assert_eq!(message("{}"), "missing field `inner`");
        assert!(message(r#"{"inner":[{"number":NaN}]}"#).starts_with("the body is not valid JSON"));
        assert!(message(r#"{"inner":[]} x"#).starts_with("the body is not valid JSON"));
        assert!(message("").starts_with("the body is not valid JSON"));
    }

    #[test]
    fn null_is_the_default() {
        let outer: Outer = parse(br#"{"inner":[{"number":1,"flag":null}]}"#).unwrap();
        assert!(!outer.inner[0].flag);
    }

    #[test]
    fn ids_are_read_beside_wrong_fields() {
        let ids = training_ids(br#"{"model_id":"s:train:0","seq_id":7,"adam_params":[1]}"#).unwrap();
        assert_eq!(ids, (RunId::new("s:train:0"), 7));
        assert_eq!(training_ids(br#"{"model_id":"s:train:0"}"#), None);
        assert_eq!(training_ids(b"\xff"), None);
    }

    #[test]
    fn seeds_fold_into_63_bits() {
        assert_eq!(fold_seed(5), 5);
        assert_eq!(fold_seed(-1), (1 << 63) - 1);
        assert_eq!(fold_seed(1 << 63), 0);
        assert_eq!(fold_seed(i128::from(u64::MAX)), (1 << 63) - 1);
    }

    #[test]
    fn metadata_becomes_text() {
        let metadata: Metadata = serde_json::from_str(r#"{"a":"x","b":1,"c":{"d":null}}"#).unwrap();
        let text = text_metadata(&metadata);
        assert_eq!((text["a"].as_str(), text["b"].as_str(), text["c"].as_str()), ("x", "1", "{\"d\":null}"));
    }
}

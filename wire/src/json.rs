//! Reading JSON bodies with errors that name the field at fault.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;
use trainyard_protocol::{OpError, RunId};

/// Free-form metadata as clients send it.
pub type Metadata = BTreeMap<String, Value>;

/// Most bytes of the start, and of the end, of a long text in an error.
const MAX_REPEATED: usize = 500;

/// Reads a body. The error is the user's and says where: `sampling_params.temperature: invalid type …`.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, OpError> {
    if body.trim_ascii().is_empty() {
        let missing = parse::<T>(b"{}").err().map(|error| format!(": {}", error.message)).unwrap_or_default();
        return Err(OpError::user(format!("the body is empty, a JSON object is expected{missing}")));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let Object(value) = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
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
    // The position in the body is of less use to a client than the field's path.
    if let Some(at) = text.rfind(" at line ") {
        text.truncate(at);
    }
    let text = shortened(text);
    if path == "." { text } else { format!("{}: {text}", shortened(path.to_owned())) }
}

/// Leaves out the middle of a text that repeats a long value of the body.
fn shortened(text: String) -> String {
    if text.len() <= 2 * MAX_REPEATED {
        return text;
    }
    let start = text.floor_char_boundary(MAX_REPEATED);
    let end = text.ceil_char_boundary(text.len() - MAX_REPEATED);
    format!("{}…{}", &text[..start], &text[end..])
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

/// Reads a JSON object alone. A struct by itself would take an array for its fields in their order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapOnly<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for MapOnly<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer.deserialize_map(MapOnly(PhantomData)).map(Self)
    }
}

/// Reads a field that must be an object.
pub(crate) fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Object::deserialize(deserializer).map(|Object(value)| value)
}

/// Reads a field that is an object or null; use with `#[serde(default)]`.
pub(crate) fn object_or_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.map(|Object(value)| value))
}

/// Reads a field that is an object, or null for the type's default; use with `#[serde(default)]`.
pub(crate) fn object_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(object_or_null(deserializer)?.unwrap_or_default())
}

/// Bounds of a list, checked while it is read: an empty element takes three bytes of a body and many times that in
/// memory.
pub(crate) struct Bounds<T> {
    /// Elements.
    pub(crate) most: usize,
    /// What they are called.
    pub(crate) noun: &'static str,
    /// Parts of all elements together.
    pub(crate) most_parts: usize,
    /// Parts of an element.
    pub(crate) parts: fn(&T) -> usize,
    /// What parts are called.
    pub(crate) parts_noun: &'static str,
}

impl<'de, T: Deserialize<'de>> Bounds<T> {
    /// Reads such a list.
    pub(crate) fn read<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounds<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let Self { most, noun, most_parts, parts, parts_noun } = self;
        let mut read = Vec::new();
        let mut all = 0;
        while read.len() < most
            && let Some(element) = list.next_element()?
        {
            all += parts(&element);
            if all > most_parts {
                let text = format!("more than {most_parts} {parts_noun} up to element {}; send fewer", read.len());
                return Err(A::Error::custom(text));
            }
            read.push(element);
        }
        at_most(list, read.len(), most, noun)?;
        Ok(read)
    }
}

/// Refuses a list of which `read` elements were read, when it has more than `most`.
pub(crate) fn at_most<'de, A: SeqAccess<'de>>(
    mut list: A,
    read: usize,
    most: usize,
    noun: &str,
) -> Result<(), A::Error> {
    let mut found = read;
    while found >= most && list.next_element::<IgnoredAny>()?.is_some() {
        found += 1;
    }
    if found > most { Err(A::Error::custom(format!("{found} {noun}, at most {most} are allowed"))) } else { Ok(()) }
}

/// Reads an object of at most so many entries, or null as an empty one; use with `#[serde(default)]`.
pub(crate) fn bounded_map<'de, D, T>(deserializer: D, most: usize, noun: &str) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Entries<'a, T> {
        most: usize,
        noun: &'a str,
        values: PhantomData<T>,
    }

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<'_, T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(BTreeMap::new())
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_map(self)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut read = BTreeMap::new();
            while let Some((name, value)) = map.next_entry()? {
                read.insert(name, value);
                if read.len() > self.most {
                    return Err(A::Error::custom(format!("more than {} {}", self.most, self.noun)));
                }
            }
            Ok(read)
        }
    }

    deserializer.deserialize_option(Entries { most, noun, values: PhantomData })
}

/// Reads a seed: any integer that JSON libraries keep exact.
pub(crate) fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i128>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    let integer = |number: serde_json::Number| {
        number.as_i128().ok_or_else(|| D::Error::custom(format!("{number} is no 64-bit integer")))
    };
    number.map(integer).transpose()
}

/// A seed as the engine takes it: any integer, folded into `[0, 2^63)`.
pub fn fold_seed(seed: i128) -> u64 {
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
    fn errors_repeat_only_the_ends_of_long_values() {
        let body = format!("{{\"model_id\": \"{}\"}}", "ä".repeat(1 << 20));
        let error = parse::<BTreeMap<String, u64>>(body.as_bytes()).unwrap_err();
        assert!(error.message.len() < 1_100, "{}", error.message.len());
        assert!(error.message.starts_with("model_id: invalid type: string \"ää"), "{error}");
        assert!(error.message.ends_with("expected u64"), "{error}");
        let error =
            parse::<BTreeMap<String, u64>>(format!("{{\"{}\": -1}}", "k".repeat(1 << 20)).as_bytes()).unwrap_err();
        assert!(error.message.len() < 2_200, "{}", error.message.len());
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
        assert_eq!(message(" \n"), "the body is empty, a JSON object is expected: missing field `inner`");
    }

    #[test]
    fn an_array_is_no_object() {
        assert_eq!(message("[[]]"), "invalid type: sequence, expected an object");
        #[derive(Debug, Deserialize)]
        #[allow(dead_code, reason = "only the error matters")]
        struct Holder {
            #[serde(deserialize_with = "object")]
            inner: Inner,
        }
        let error = parse::<Holder>(br#"{"inner":[1]}"#).unwrap_err();
        assert_eq!(error.message, "inner: invalid type: sequence, expected an object");
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

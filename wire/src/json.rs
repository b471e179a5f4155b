//! Reads JSON bodies with errors that name the field at fault.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::error::Category;
use trainyard_protocol::{OpError, RunId, redacted};

use crate::auth::KEY_PREFIX;

/// Free-form metadata as clients send it.
pub type Metadata = BTreeMap<String, Value>;

/// Maximum length of the start, and of the end, of a long text in an error, in bytes.
const MAX_REPEATED: usize = 500;

/// Maximum number of values in a body without tokens and tensors, names of fields included: two bytes of a body may take
/// fifty times that in memory.
pub const MAX_VALUES: usize = 1 << 20;

/// Characters of an integer that never needs more than 64 bits.
const SHORT: usize = 18;

/// Fields whose values are secrets, and starts of texts that are.
const SECRET_FIELDS: [&str; 2] = ["age_encryption_recipients", "weights_access_token"];
const SECRET_STARTS: [&str; 2] = ["AGE-SECRET-KEY-", KEY_PREFIX];

/// Refuses a body with more than `most` values, or with an integer above 64 bits, without reading them. Such an integer
/// would become the nearest float, which chat templates write otherwise.
///
/// # Errors
/// A user error with the bound or the integer.
pub fn check_values(body: &[u8], most: usize) -> Result<(), OpError> {
    // Every value and every name follows one of these, except the outermost value.
    let (mut found, mut quoted, mut escaped) = (0_usize, false, false);
    let mut number = None;
    for (at, byte) in body.iter().enumerate() {
        match byte {
            b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' if !quoted => _ = number.get_or_insert(at),
            _ => {
                if let Some(start) = number.take() {
                    check_integer(&body[start..at])?;
                }
            }
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' | b',' | b':' if !quoted => found += 1,
            _ => {}
        }
    }
    if found <= most {
        Ok(())
    } else {
        Err(OpError::user(format!("the body has {found} values, at most {most} are allowed")))
    }
}

fn check_integer(number: &[u8]) -> Result<(), OpError> {
    if number.len() <= SHORT || number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(number);
    if text.parse::<u64>().is_ok() || text.parse::<i64>().is_ok() {
        return Ok(());
    }
    let text = shortened(text.into_owned());
    Err(OpError::user(format!("the body has the integer {text}, at most 64 bits are allowed")))
}

/// Reads a body. A user error names the field: `sampling_params.temperature: invalid type …`.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, OpError> {
    if body.trim_ascii().is_empty() {
        let missing = parse::<T>(b"{}").err().map(|error| format!(": {}", error.message)).unwrap_or_default();
        return Err(OpError::user(format!("expected a JSON object, found an empty body{missing}")));
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
    let is_secret = SECRET_FIELDS.iter().any(|field| path.contains(field))
        || SECRET_STARTS.iter().any(|start| text.to_ascii_uppercase().contains(&start.to_ascii_uppercase()));
    let text = if is_secret { redacted(&text) } else { shortened(text) };
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

/// Returns the run and the `seq_id` of a training request whose other fields may be invalid. The number can then be
/// consumed: the client does not send a refused request again.
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

/// Converts metadata to text: strings stay as they are, other values become compact JSON.
pub fn text_metadata(metadata: &Metadata) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Reads only a JSON object. A struct by itself would also accept an array of its fields in order.
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

/// Bounds of a list, which are checked while it is read: an empty element takes three bytes of a body and many times
/// that in memory.
pub(crate) struct Bounds<T> {
    pub(crate) most: usize,
    /// Noun for elements in errors.
    pub(crate) noun: &'static str,
    /// Maximum number of parts of all elements together.
    pub(crate) most_parts: usize,
    /// Returns the number of parts of an element.
    pub(crate) parts: fn(&T) -> usize,
    /// Noun for parts in errors.
    pub(crate) parts_noun: &'static str,
}

impl<'de, T: Deserialize<'de>> Bounds<T> {
    /// Reads a list within these bounds.
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

/// Refuses a list that has more than `most` elements, of which `read` were read.
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

/// Reads an object of at most `most` entries, and null as an empty one; use with `#[serde(default)]`.
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
            let Self { most, noun, .. } = self;
            let (mut read, mut found) = (BTreeMap::new(), 0);
            while found < most
                && let Some((name, value)) = map.next_entry()?
            {
                read.insert(name, value);
                found += 1;
            }
            while found >= most && map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                found += 1;
            }
            if found > most {
                Err(A::Error::custom(format!("{found} {noun}, at most {most} are allowed")))
            } else {
                Ok(read)
            }
        }
    }

    deserializer.deserialize_option(Entries { most, noun, values: PhantomData })
}

/// Reads a seed: any integer of at most 64 bits, signed or unsigned.
pub(crate) fn seed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i128>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    let integer = |number: serde_json::Number| {
        number.as_i128().ok_or_else(|| D::Error::custom(format!("{number} is not a 64-bit integer")))
    };
    number.map(integer).transpose()
}

/// Folds an integer into the range of seeds that the engine takes, `[0, 2^63)`.
pub fn fold_seed(seed: i128) -> u64 {
    // The modulus is 2^63, so the remainder fits.
    seed.rem_euclid(1 << 63) as u64
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;

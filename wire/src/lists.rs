//! Bounds of the lists in request bodies, in one table. A list is checked while it is read: an element takes a few
//! bytes of a body and many times that in memory.
//!
//! Other modules bound datums, chunks, loss inputs, stop tokens and the numbers of a tensor.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Error as _, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use trainyard_age::MAX_RECIPIENTS;
use trainyard_protocol::limits::{MAX_LOSS_INPUTS, MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, MAX_TAGS, MAX_TEXT_BYTES};

use super::json;

/// Maximum length of an id, in bytes.
const MAX_ID_BYTES: usize = 64;
/// Maximum length of the name of a project or an owner, in bytes.
const MAX_NAME_BYTES: usize = 256;
/// Maximum length of a list whose elements have only a few different values.
const MAX_KINDS: usize = 16;
/// Maximum number of messages in a conversation.
pub const MAX_MESSAGES: usize = 16_384;
/// Maximum number of tools that a request may describe.
pub const MAX_TOOLS: usize = 1_024;
/// Maximum number of parts in the content of a message.
pub const MAX_CONTENT_PARTS: usize = 16_384;
/// Maximum number of a chat template's variables in a request.
const MAX_VARIABLES: usize = 256;
/// Maximum number of owners in a search.
pub const MAX_OWNERS: usize = 10;
/// Maximum number of results that a client may acknowledge at once. The official client acknowledges all those that it
/// received during one poll.
pub const MAX_RETRIEVED: usize = 16_384;

/// Defines a reader for each list: of texts with a maximum length, or of other elements.
macro_rules! lists {
    (
        texts { $($text:ident: $texts:expr, $text_noun:literal, $bytes:expr;)* }
        others { $($other:ident: $others:expr, $other_noun:literal;)* }
    ) => {
        $(pub(crate) fn $text<'de, D: Deserializer<'de>, L: ListField<String>>(deserializer: D) -> Result<L, D::Error> {
            let texts = Texts { most: $texts, noun: $text_noun, bytes: $bytes };
            deserializer.deserialize_option(OrNull(texts)).map(L::from_list)
        })*
        $(pub(crate) fn $other<'de, D, T, L>(deserializer: D) -> Result<L, D::Error>
        where
            D: Deserializer<'de>,
            T: Deserialize<'de>,
            L: ListField<T>,
        {
            let bounds = json::Bounds { most: $others, noun: $other_noun, most_parts: 0, parts: |_| 0, parts_noun: "" };
            deserializer.deserialize_option(OrNull(bounds)).map(L::from_list)
        })*

        /// Every list of texts: its field, its maximum length, the maximum length of a text in bytes.
        #[cfg(test)]
        const TEXTS: &[(&str, usize, usize)] = &[$((stringify!($text), $texts, $bytes)),*];
        /// Every other list: its field and its maximum length.
        #[cfg(test)]
        const OTHERS: &[(&str, usize)] = &[$((stringify!($other), $others)),*];
    };
}

lists! {
    texts {
        retrieved_request_ids: MAX_RETRIEVED, "ids", MAX_ID_BYTES;
        project_ids: 100, "entries", MAX_NAME_BYTES;
        base_models: 100, "entries", MAX_TEXT_BYTES;
        owner_urns: MAX_OWNERS, "entries in owner_urns", MAX_NAME_BYTES;
        age_encryption_recipients: MAX_RECIPIENTS, "recipients", MAX_NAME_BYTES;
        tags: MAX_TAGS, "tags", MAX_TEXT_BYTES;
        scopes: MAX_KINDS, "scopes", MAX_NAME_BYTES;
        modalities: MAX_KINDS, "modalities", MAX_NAME_BYTES;
        include: MAX_KINDS, "entries", MAX_NAME_BYTES;
        stop_sequences: MAX_STOP_STRINGS, "strings", MAX_STOP_STRING_BYTES;
    }
    others {
        statuses: MAX_KINDS, "statuses";
        reasons: MAX_KINDS, "reasons";
        events: 16_384, "events";
        messages: MAX_MESSAGES, "messages";
        tools: MAX_TOOLS, "tools";
        tool_calls: MAX_TOOLS, "calls";
        annotations: MAX_TOOLS, "annotations";
        mcp_servers: MAX_KINDS, "servers";
    }
}

/// Reads a map of named values, such as the inputs of a loss function, and bounds the number of its entries.
pub(crate) fn loss_fn_inputs<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    json::bounded_map(deserializer, MAX_LOSS_INPUTS, "inputs")
}

/// Reads the variables of a chat template, and null as none.
pub(crate) fn chat_template_kwargs<'de, D, T>(deserializer: D) -> Result<Option<BTreeMap<String, T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let variables = json::bounded_map(deserializer, MAX_VARIABLES, "variables")?;
    Ok(Some(variables).filter(|variables| !variables.is_empty()))
}

/// Reads the metadata of a response, and null as none.
pub(crate) fn response_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<json::Metadata, D::Error> {
    json::bounded_map(deserializer, MAX_KINDS, "entries")
}

/// A field that holds a list: null is read as `None` or as an empty list.
pub(crate) trait ListField<T> {
    fn from_list(list: Option<Vec<T>>) -> Self;
}

impl<T> ListField<T> for Vec<T> {
    fn from_list(list: Option<Self>) -> Self {
        list.unwrap_or_default()
    }
}

impl<T> ListField<T> for Option<Vec<T>> {
    fn from_list(list: Self) -> Self {
        list
    }
}

struct Texts {
    most: usize,
    noun: &'static str,
    bytes: usize,
}

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while read.len() < self.most
            && let Some(text) = list.next_element_seed(Text { bytes: self.bytes })?
        {
            read.push(text);
        }
        json::at_most(list, read.len(), self.most, self.noun)?;
        Ok(read)
    }
}

/// A text of at most `bytes` bytes.
struct Text {
    bytes: usize,
}

impl<'de> DeserializeSeed<'de> for Text {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<String, E> {
        if text.len() <= self.bytes {
            return Ok(text.to_owned());
        }
        Err(E::custom(format!("{} bytes, at most {} are allowed", text.len(), self.bytes)))
    }
}

/// Reads null, or a list with the inner visitor.
struct OrNull<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for OrNull<V> {
    type Value = Option<V::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self.0).map(Some)
    }
}

/// Content of a message: a single text, or a list of parts.
pub(crate) enum TextOrParts<T> {
    Text(String),
    Parts(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOrParts<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either { most: MAX_CONTENT_PARTS, noun: "parts", element: PhantomData })
    }
}

/// Reads the conversation of a request for a response: a text, or a list of items.
pub(crate) fn input<'de, D, T, I>(deserializer: D) -> Result<I, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    I: From<TextOrParts<T>>,
{
    deserializer.deserialize_any(Either { most: MAX_MESSAGES, noun: "items", element: PhantomData }).map(I::from)
}

/// Reads a text, or a list of at most so many elements.
struct Either<T> {
    most: usize,
    noun: &'static str,
    element: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = TextOrParts<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string or a list of {} with a type", self.noun)
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOrParts::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(TextOrParts::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        let Self { most, noun, .. } = self;
        let bounds = json::Bounds { most, noun, most_parts: 0, parts: |_| 0, parts_noun: "" };
        bounds.visit_seq(list).map(TextOrParts::Parts)
    }
}

/// Stop condition: a single text, several texts, or token ids.
pub(crate) enum StopList {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<i64>),
}

/// Reads a stop condition and refuses it at the first element too many.
pub(crate) struct StopVisitor {
    pub(crate) most_texts: usize,
    /// `None` where token ids are not accepted.
    pub(crate) most_tokens: Option<usize>,
}

impl<'de> Visitor<'de> for StopVisitor {
    type Value = StopList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.most_tokens {
            Some(_) => "a string, a list of strings or a list of token ids",
            None => "a string or a list of strings",
        })
    }

    fn visit_str<E>(self, text: &str) -> Result<StopList, E> {
        Ok(StopList::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StopList, A::Error> {
        let (mut texts, mut tokens) = (Vec::new(), Vec::new());
        let most_tokens = self.most_tokens.unwrap_or_default();
        while texts.len() < self.most_texts && (self.most_tokens.is_none() || tokens.len() < most_tokens) {
            match list.next_element()? {
                None => break,
                Some(StopElement::Token(token)) if texts.is_empty() && self.most_tokens.is_some() => tokens.push(token),
                Some(StopElement::Token(token)) => {
                    return Err(A::Error::invalid_type(Unexpected::Signed(token), &"a string"));
                }
                Some(StopElement::Text(text)) if tokens.is_empty() => texts.push(text),
                Some(StopElement::Text(text)) => {
                    return Err(A::Error::invalid_type(Unexpected::Str(&text), &"a token id"));
                }
            }
        }
        if !texts.is_empty() {
            json::at_most(list, texts.len(), self.most_texts, "strings")?;
            return Ok(StopList::Texts(texts));
        }
        json::at_most(list, tokens.len(), most_tokens, "token ids")?;
        Ok(if self.most_tokens.is_some() { StopList::Tokens(tokens) } else { StopList::Texts(texts) })
    }
}

enum StopElement {
    Token(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for StopElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = StopElement;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a token id")
            }

            fn visit_str<E>(self, text: &str) -> Result<StopElement, E> {
                Ok(StopElement::Text(text.to_owned()))
            }

            fn visit_i64<E>(self, token: i64) -> Result<StopElement, E> {
                Ok(StopElement::Token(token))
            }

            fn visit_u64<E: serde::de::Error>(self, token: u64) -> Result<StopElement, E> {
                let token = i64::try_from(token).map_err(|_| E::custom(format!("{token} is not a token id")))?;
                Ok(StopElement::Token(token))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;

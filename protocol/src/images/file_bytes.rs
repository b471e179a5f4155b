//! Files within serialized types: base64 in text formats, bytes in others.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(data: &Arc<[u8]>, to: S) -> Result<S::Ok, S::Error> {
    if to.is_human_readable() { to.serialize_str(&STANDARD.encode(data)) } else { to.serialize_bytes(data) }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
    if from.is_human_readable() {
        let text = String::deserialize(from)?;
        return STANDARD.decode(text).map(Arc::from).map_err(D::Error::custom);
    }
    from.deserialize_byte_buf(FileBytes)
}

struct FileBytes;

impl<'de> Visitor<'de> for FileBytes {
    type Value = Arc<[u8]>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the bytes of a file")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Arc::from(bytes))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
        Ok(Arc::from(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = elements.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes.into())
    }
}

//! Inputs of models in JSON, for samples and training examples.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trainyard_images::Size;
use trainyard_protocol::OpError;
use trainyard_protocol::limits::MAX_CHUNKS;
use utoipa::ToSchema;

use super::images::{InputTokens, RequestImages, SentImage};
use super::{json, proto};

/// Input of a model, as a list of pieces.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ModelInput {
    /// The pieces, in order; a piece may be empty.
    #[serde(deserialize_with = "chunks")]
    pub chunks: Vec<InputChunk>,
}

/// A piece of a model input: text as token ids, or an image.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct InputChunk {
    /// `encoded_text` (the default) or `image`; `image_asset_pointer` and `dmel` are refused.
    #[serde(rename = "type", default = "encoded_text")]
    pub kind: String,
    /// Token ids, for `encoded_text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<i64>>,
    /// File of an `image`, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub data: Option<FileData>,
    /// Format of the file: `png` or `jpeg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Number of tokens that the client expects the image to take; any other number is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_tokens: Option<i64>,
    /// Size from which tokens are counted, and to which the image is resized, instead of the file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_dimensions: Option<ImageDimensions>,
}

/// Width and height of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageDimensions {
    /// Width: the number of columns.
    pub width: u32,
    /// Height: the number of rows.
    pub height: u32,
}

/// Bytes of a file, which JSON contains as base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileData(pub Bytes);

impl Serialize for FileData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for FileData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Base64;

        impl Visitor<'_> for Base64 {
            type Value = FileData;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a file in base64")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<FileData, E> {
                read_base64(text).map(FileData).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Base64)
    }
}

/// Reads a file in base64.
///
/// # Errors
/// A text that describes the problem without repeating the input.
pub fn read_base64(text: &str) -> Result<Bytes, String> {
    STANDARD.decode(text).map(Bytes::from).map_err(|error| format!("the file is not valid base64: {error}"))
}

fn chunks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<InputChunk>, D::Error> {
    let bounds =
        json::Bounds { most: MAX_CHUNKS, noun: "chunks", most_parts: MAX_CHUNKS, parts: |_| 0, parts_noun: "parts" };
    bounds.read(deserializer)
}

fn encoded_text() -> String {
    "encoded_text".to_owned()
}

/// Reason why pointers to images are refused.
pub(crate) const NO_POINTERS: &str = "image_asset_pointer chunks are not supported, because the server fetches no files: send an image chunk with the file";
/// Reason why audio is refused.
pub(crate) const NO_AUDIO: &str = "dmel chunks are not supported, because no model takes audio";

/// Content of a piece.
enum Content {
    Text(Vec<i64>),
    Image(proto::ImageChunk),
}

impl InputChunk {
    fn content(self) -> Result<Content, String> {
        match self.kind.as_str() {
            "encoded_text" => Ok(Content::Text(self.tokens.ok_or("missing field `tokens`")?)),
            "image" => {
                let expected_tokens = self.expected_tokens.map(i32::try_from).transpose();
                Ok(Content::Image(proto::ImageChunk {
                    data: self.data.ok_or("missing field `data`")?.0,
                    format: self.format.ok_or("missing field `format`")?,
                    expected_tokens: expected_tokens.map_err(|_| "expected_tokens: outside the range of int32")?,
                    override_dimensions: self
                        .override_dimensions
                        .map(|ImageDimensions { width, height }| proto::ImageDimensions { width, height }),
                }))
            }
            "image_asset_pointer" => Err(NO_POINTERS.to_owned()),
            "dmel" => Err(NO_AUDIO.to_owned()),
            other => {
                let shown: String = other.chars().take(32).collect();
                Err(format!("unknown chunk type {shown:?}: expected encoded_text or image"))
            }
        }
    }
}

impl proto::ImageChunk {
    /// Returns the image, unchecked.
    pub(crate) fn sent(&self) -> SentImage<'_> {
        let size = |size: &proto::ImageDimensions| Size::new(size.width, size.height);
        SentImage {
            data: &self.data,
            format: &self.format,
            expected_tokens: self.expected_tokens.map(i64::from),
            override_dimensions: self.override_dimensions.as_ref().map(size),
        }
    }
}

impl ModelInput {
    /// Returns the tokens of all pieces, with the images among them. Errors name the input by `field`.
    pub fn read(self, field: &str, images: &mut RequestImages<'_>) -> Result<InputTokens, OpError> {
        let mut input = InputTokens::default();
        for (index, chunk) in self.chunks.into_iter().enumerate() {
            let at =
                |error: OpError| OpError { message: format!("{field}.chunks[{index}]: {}", error.message), ..error };
            match chunk.content().map_err(|text| at(OpError::user(text)))? {
                Content::Text(tokens) if input.tokens.is_empty() => input.tokens = tokens,
                Content::Text(tokens) => input.tokens.extend(tokens),
                Content::Image(image) => images.append(&mut input, image.sent()).map_err(at)?,
            }
        }
        Ok(input)
    }

    /// Returns the same input as protobuf. Consecutive texts become one piece. Errors name the input by `field`.
    pub(crate) fn into_chunks(self, field: &str) -> Result<Vec<proto::Chunk>, OpError> {
        let mut chunks = Vec::new();
        let mut text = Vec::new();
        let mut tokens = 0;
        for (index, chunk) in self.chunks.into_iter().enumerate() {
            let content = chunk.content().map_err(|text| OpError::user(format!("{field}.chunks[{index}]: {text}")))?;
            match content {
                Content::Text(ids) => {
                    for token in ids {
                        let id = i32::try_from(token).map_err(|_| {
                            OpError::user(format!("{field}: token {tokens} is {token}, outside the range of int32"))
                        })?;
                        text.extend_from_slice(&id.to_le_bytes());
                        tokens += 1;
                    }
                }
                Content::Image(image) => {
                    if !text.is_empty() {
                        push_text(&mut chunks, &mut text);
                    }
                    chunks.push(proto::Chunk { chunk: Some(proto::chunk::Content::Image(image)) });
                }
            }
        }
        if chunks.is_empty() || !text.is_empty() {
            push_text(&mut chunks, &mut text);
        }
        Ok(chunks)
    }
}

fn push_text(chunks: &mut Vec<proto::Chunk>, text: &mut Vec<u8>) {
    let text = proto::EncodedTextChunk { tokens: std::mem::take(text).into() };
    chunks.push(proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(text)) });
}

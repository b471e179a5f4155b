//! An image of a conversation, as its client sends it.

use bytes::Bytes;
use trainyard_wire::model_input::read_base64;

use crate::error::ChatError;

/// Longest media type or scheme that an error repeats, in characters.
const SHOWN: usize = 32;

/// An image of a conversation, unchecked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatImage {
    /// Field of the request that contains the image, for error texts.
    pub field: String,
    /// Bytes of the file.
    pub data: Bytes,
    /// Name of the format, as in image chunks.
    pub format: &'static str,
}

impl ChatImage {
    /// Reads an image from a data URI.
    ///
    /// # Errors
    /// Fails for any other URL, because the server fetches nothing, and for other formats than PNG and JPEG.
    pub(crate) fn from_url(field: &str, url: &str) -> Result<Self, ChatError> {
        let Some(content) = url.strip_prefix("data:") else {
            let scheme: String = url.split(':').next().unwrap_or_default().chars().take(SHOWN).collect();
            return Err(ChatError::invalid(format!(
                "{field}: {scheme:?} URLs are not supported, because the server fetches no files: send a data URI \
                 (data:image/png;base64,…)"
            )));
        };
        let (media_type, data) = content.split_once(";base64,").ok_or_else(|| {
            ChatError::invalid(format!("{field}: expected a data URI in base64 (data:image/png;base64,…)"))
        })?;
        Self::from_base64(field, media_type, data)
    }

    /// Reads an image in base64.
    ///
    /// # Errors
    /// Fails for other formats than PNG and JPEG, and for text that is not base64.
    pub(crate) fn from_base64(field: &str, media_type: &str, data: &str) -> Result<Self, ChatError> {
        let format = match media_type {
            "image/png" => "png",
            "image/jpeg" => "jpeg",
            other => {
                let shown: String = other.chars().take(SHOWN).collect();
                return Err(ChatError::invalid(format!("{field}: expected image/png or image/jpeg, found {shown:?}")));
            }
        };
        let data = read_base64(data).map_err(|text| ChatError::invalid(format!("{field}: {text}")))?;
        Ok(Self { field: field.to_owned(), data, format })
    }
}

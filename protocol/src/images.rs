//! Images of model inputs: files as clients send them, their places among the tokens, and their decoded form.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trainyard_images::{Format, Patches, Size};

mod file_bytes;

/// SHA-256 of everything that determines the patches of an image: file, format, counted size and the model's
/// preprocessor settings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ImageDigest(pub [u8; 32]);

impl fmt::Display for ImageDigest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
    }
}

impl fmt::Debug for ImageDigest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

/// An image as a client sends it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// File format that the client names.
    pub format: Format,
    /// The file. JSON contains it as base64.
    #[serde(with = "file_bytes")]
    pub data: Arc<[u8]>,
    /// Size from which the tokens are counted: that of the file, or the one that the client states in its place.
    pub counted: Size,
    /// Identifies the image's patches.
    pub digest: ImageDigest,
}

impl fmt::Debug for Image {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Image({} of {}, {} bytes, {})", self.format, self.counted, self.data.len(), self.digest)
    }
}

/// An image among the tokens of a model input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageSpan {
    /// Index of the image's first token.
    pub start: usize,
    /// Number of tokens, at least 1. Each of them is [`Vision::image_token`].
    pub tokens: usize,
    /// The image's file, counted size and digest.
    pub image: Image,
}

/// Decoded images of a request. Equal images are decoded once.
pub type DecodedImages = BTreeMap<ImageDigest, Arc<Patches>>;

/// A decoded image among the tokens of a checked example. The patches contain the number of tokens.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct PreparedImage {
    /// Index of the image's first token.
    pub start: usize,
    /// Digest that identifies the patches.
    pub digest: ImageDigest,
    /// Input of the vision tower.
    pub patches: Arc<Patches>,
}

impl fmt::Debug for PreparedImage {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "PreparedImage({}, {} tokens, {})", self.start, self.patches.layout().tokens(), self.digest)
    }
}

/// Settings by which the images of a model are counted and checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vision {
    /// Content of the model's `preprocessor_config.json`, which [`Preprocessor`](trainyard_images::Preprocessor) reads.
    pub preprocessor: String,
    /// Token that stands at each position of an image.
    pub image_token: u32,
    /// Tokens that clients may not send and that are never sampled, in ascending order. `image_token` is one of them.
    pub placeholders: Vec<u32>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn span() -> ImageSpan {
        let data = Arc::from(&b"\x89PNG\xff\x00"[..]);
        let digest = ImageDigest(std::array::from_fn(|at| at as u8));
        let image = Image { format: Format::Png, data, counted: Size::new(64, 48), digest };
        ImageSpan { start: 3, tokens: 6, image }
    }

    #[test]
    fn files_are_base64_in_json() {
        let text = serde_json::to_value(span()).unwrap();
        assert_eq!(text["image"]["data"], "iVBOR/8A");
        assert_eq!(text["image"]["format"], "png");
        assert_eq!(serde_json::from_value::<ImageSpan>(text.clone()).unwrap(), span());
        let mut damaged = text;
        damaged["image"]["data"] = "iVBOR/8".into();
        assert!(serde_json::from_value::<ImageSpan>(damaged).is_err());
    }

    #[test]
    fn messages_show_no_content() {
        let shown = format!("{:?}", span().image);
        assert_eq!(shown, format!("Image(PNG of 64 × 48, 6 bytes, {})", span().image.digest));
        assert!(shown.contains("000102030405"));
    }
}

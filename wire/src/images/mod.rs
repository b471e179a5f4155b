//! Images of requests: how many tokens they take, and what is refused at submission. Only headers are read.

mod digest;
mod request;
mod rules;

use std::collections::BTreeSet;

use trainyard_images::{Limits, Preprocessor, Size, dimensions};
use trainyard_protocol::{ImageSpan, OpError, Vision};

pub use request::{ImageCost, InputTokens, RequestImages, SentImage};
pub use rules::{ImageLimits, ImageRules};

/// Returns the pixels of all different images, by the headers of their files.
pub fn file_pixels<'a>(images: impl IntoIterator<Item = &'a ImageSpan>) -> u64 {
    let mut different = BTreeSet::new();
    let limits = Limits { bytes: usize::MAX, pixels: u64::MAX, side: u32::MAX, aspect_ratio: u32::MAX };
    images
        .into_iter()
        .filter(|span| different.insert(span.image.digest))
        .filter_map(|span| dimensions(&span.image.data, span.image.format, &limits).ok())
        .map(Size::pixels)
        .fold(0, u64::saturating_add)
}

/// Reads the settings of a model's preprocessor.
///
/// # Errors
/// A server error: the model was loaded with settings that can't be read.
pub fn read_settings(model: &str, vision: &Vision) -> Result<Preprocessor, OpError> {
    Preprocessor::from_json(&vision.preprocessor).map_err(|error| {
        tracing::error!(model, %error, "the settings of a model's images are unreadable");
        OpError::server(format!("the settings for images of model {model} are unreadable"))
    })
}

#[cfg(test)]
pub(crate) mod testing {
    use trainyard_protocol::BaseModel;

    use super::*;

    /// A model with a tower: an image takes a token per 32 × 32 pixels. Token 90 stands for images, token 91 for videos.
    pub(crate) fn model(vision: bool) -> BaseModel {
        let preprocessor = r#"{"image_processor_type": "Qwen2VLImageProcessorFast", "patch_size": 16, "merge_size": 2,
            "temporal_patch_size": 2, "size": {"shortest_edge": 1024, "longest_edge": 1048576}}"#;
        let vision = vision.then(|| Vision {
            preprocessor: preprocessor.to_owned(),
            image_token: 90,
            placeholders: vec![90, 91],
        });
        BaseModel {
            name: "acme/eyes".to_owned(),
            arch: "qwen3_vl".to_owned(),
            max_context_length: 64,
            vocab_size: 100,
            parameters: 1_000,
            vision,
        }
    }

    pub(crate) fn rules(limits: ImageLimits) -> ImageRules {
        ImageRules::new(&model(true), limits)
    }

    /// A grey PNG file of this size, up to where its pixels would begin.
    pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        file.extend(width.to_be_bytes());
        file.extend(height.to_be_bytes());
        file.extend([8, 0, 0, 0, 0]);
        let crc = crc32(&file[12..]);
        file.extend(crc.to_be_bytes());
        file
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
        })
    }
}

#[cfg(test)]
mod tests;

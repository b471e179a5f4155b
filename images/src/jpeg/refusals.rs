//! Errors about JPEG files.

use crate::{Format, ImageError};

pub(super) fn damaged(reason: &str) -> ImageError {
    ImageError::Damaged { format: Format::Jpeg, reason: reason.to_owned() }
}

pub(super) fn truncated() -> ImageError {
    ImageError::Truncated(Format::Jpeg)
}

pub(super) fn unsupported(feature: &str, expected: &'static str) -> ImageError {
    ImageError::Unsupported { format: Format::Jpeg, feature: feature.to_owned(), expected }
}

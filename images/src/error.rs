//! The reasons for which an image is refused.

use crate::{Format, Size};

/// The reason why an image is refused. The text does not name the request's chunk: the caller adds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The client named a format that is not accepted.
    #[error("unknown image format {0:?}: expected png or jpeg")]
    UnknownFormat(String),
    /// The first bytes are not those of the format that the client named.
    #[error("expected a {expected} file, found {}", found_text(*found))]
    WrongFormat {
        /// The format that the client named.
        expected: Format,
        /// The format that the first bytes belong to, if it is known.
        found: Option<&'static str>,
    },
    /// The file exceeds [`Limits::bytes`](crate::Limits::bytes).
    #[error("the image file has {bytes} bytes, above the limit of {limit}")]
    TooManyBytes {
        /// Size of the file.
        bytes: usize,
        /// The limit that applied.
        limit: usize,
    },
    /// Width or height is zero.
    #[error("the image has {0} pixels: width and height must be at least 1")]
    Empty(Size),
    /// A side exceeds [`Limits::side`](crate::Limits::side).
    #[error("the image has {size} pixels, with a side above the limit of {limit}")]
    TooLong {
        /// Width and height in the header.
        size: Size,
        /// The limit that applied.
        limit: u32,
    },
    /// The number of pixels exceeds [`Limits::pixels`](crate::Limits::pixels).
    #[error("the image has {size} = {} pixels, above the limit of {limit}", size.pixels())]
    TooManyPixels {
        /// Width and height in the header.
        size: Size,
        /// The limit that applied.
        limit: u64,
    },
    /// The longer side divided by the shorter one exceeds [`Limits::aspect_ratio`](crate::Limits::aspect_ratio).
    #[error("the image has {size} pixels: its sides have a ratio above the limit of {limit}")]
    TooNarrow {
        /// Width and height in the header.
        size: Size,
        /// The limit that applied.
        limit: u32,
    },
    /// The file is an animation: it has an `acTL` chunk.
    #[error("the PNG file is animated ({frames} frames): expected a still image")]
    Animated {
        /// Frames that the file declares.
        frames: u32,
    },
    /// A variant of the format that is not supported.
    #[error("{feature} is not supported in {format} images: {expected}")]
    Unsupported {
        /// Format of the file.
        format: Format,
        /// Name of the unsupported variant.
        feature: String,
        /// What is supported instead.
        expected: &'static str,
    },
    /// The file ends too early.
    #[error("the {0} file is truncated")]
    Truncated(Format),
    /// The content of the file contradicts its format.
    #[error("the {format} file is damaged: {reason}")]
    Damaged {
        /// Format of the file.
        format: Format,
        /// First contradiction that was found.
        reason: String,
    },
}

fn found_text(found: Option<&str>) -> String {
    found.map_or_else(|| "bytes of another format".to_owned(), |name| format!("a {name} file"))
}

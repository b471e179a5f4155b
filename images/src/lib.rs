//! Images of prompts: from the bytes that a client sends to the patches that a vision tower takes.
//!
//! 1. [`dimensions`] reads the size from the header of a PNG or JPEG file, and checks it against [`Limits`].
//! 2. [`Preprocessor::layout`] computes from width and height how many tokens the image takes.
//! 3. [`decode`] decodes the file to RGB.
//! 4. [`Preprocessor::patches`] resizes the image and cuts it into [`Patches`].
//!
//! Steps 1 and 2 cost microseconds and may run for every request. All steps are deterministic: the same bytes give the
//! same values on every processor.
//!
//! # Equality with the reference
//!
//! | step | result |
//! |---|---|
//! | PNG | the bits of PIL's `convert("RGB")`: alpha is dropped, palettes and grey are expanded |
//! | JPEG | the bits of libjpeg-turbo with its defaults, as PIL decodes |
//! | resizing | the bits of torchvision's bicubic resizing of 8-bit images with antialiasing |
//! | normalization | the bits of the reference's single-precision formula |
//!
//! EXIF orientation, colour profiles and gamma are ignored, as PIL does.
//!
//! # Refused
//!
//! Animated PNG files, 16-bit PNG files (PIL clips grey ones to white), CMYK, lossless, arithmetic and 12-bit JPEG files,
//! files that are truncated or damaged, and images beyond the limits. [`ImageError`] names the reason.

mod decode;
mod error;
mod format;
mod jpeg;
mod limits;
mod png;
mod preprocess;
mod resize;
mod size;

pub use decode::{RgbImage, decode, dimensions};
pub use error::ImageError;
pub use format::Format;
pub use limits::{DECODING_BYTES_PER_PIXEL, Limits};
pub use preprocess::{Layout, Patches, Place, Preprocessor, SettingsError};
pub use size::Size;

//! Decoding of a file's bytes to pixels.

use crate::{Format, ImageError, Limits, Size, format, jpeg, png};

/// An image with three channels of 8 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RgbImage {
    pub(crate) size: Size,
    pub(crate) pixels: Vec<u8>,
}

impl RgbImage {
    /// Makes an image from its rows; `None` unless there are 3 bytes per pixel.
    pub fn new(size: Size, pixels: Vec<u8>) -> Option<Self> {
        (size.pixels() > 0 && size.pixels().checked_mul(3) == Some(pixels.len() as u64))
            .then_some(Self { size, pixels })
    }

    /// Returns width and height.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns red, green and blue of each pixel, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }
}

/// Reads the size of an image from its header, and checks it and the file's length against the limits.
///
/// Reads no pixels and allocates almost nothing, so it may run for every request. Orientation in EXIF data is ignored, as
/// the reference does.
///
/// # Errors
/// Fails if the file does not have the format, a limit is exceeded, or the header is damaged or of an unsupported kind.
pub fn dimensions(data: &[u8], format: Format, limits: &Limits) -> Result<Size, ImageError> {
    limits.check_bytes(data.len())?;
    format::check(data, format)?;
    let size = match format {
        Format::Png => png::size(data)?,
        Format::Jpeg => jpeg::size(data)?,
    };
    limits.check_size(size)?;
    Ok(size)
}

/// Decodes an image to RGB. The limits are checked before pixels are allocated.
///
/// # Errors
/// Errors of [`dimensions`], and if the file is truncated, damaged, animated or of an unsupported kind.
pub fn decode(data: &[u8], format: Format, limits: &Limits) -> Result<RgbImage, ImageError> {
    let size = dimensions(data, format, limits)?;
    let pixels = match format {
        Format::Png => png::decode(data)?,
        Format::Jpeg => jpeg::decode(data)?,
    };
    RgbImage::new(size, pixels)
        .ok_or_else(|| ImageError::Damaged { format, reason: "the pixels do not fill the image".to_owned() })
}

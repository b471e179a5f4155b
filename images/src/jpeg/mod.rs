//! JPEG files, decoded with the bits of libjpeg-turbo at its defaults, which PIL uses: the accurate integer transform,
//! smooth ("fancy") upsampling and 16-bit colour conversion.
//!
//! libjpeg guesses when a file is damaged. This decoder refuses such files, so no result depends on guesses.

mod bits;
mod coefficients;
mod colour;
mod decoder;
mod frame;
mod huffman;
mod idct;
mod planes;
mod refusals;
mod scan;
mod segments;
mod tables;
mod upsample;

use crate::{ImageError, Size};

pub(crate) use decoder::decode;

/// Reads the size in the header of a file.
pub(crate) fn size(data: &[u8]) -> Result<Size, ImageError> {
    frame::Frame::find(data).map(|frame| frame.size)
}

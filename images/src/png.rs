//! PNG files, with the bits of PIL's `convert("RGB")`: alpha is dropped, palettes and grey are expanded.

use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, Decoder, DecodingError, Reader, Transformations};

use crate::{Format, ImageError, Size};

/// Maximum number of bytes that a byte of compressed data stands for.
const MOST_RATIO: usize = 1032;
/// Memory that chunks beside the pixels may take.
const CHUNKS: usize = 1 << 20;
/// Maximum number of characters of the library's text in an error.
const SHOWN: usize = 160;

fn damaged(reason: &str) -> ImageError {
    ImageError::Damaged { format: Format::Png, reason: reason.chars().take(SHOWN).collect() }
}

/// Reads the size in the header of a file.
pub(crate) fn size(data: &[u8]) -> Result<Size, ImageError> {
    let Some([header @ .., w0, w1, w2, w3, h0, h1, h2, h3]) = data.first_chunk::<24>() else {
        return Err(ImageError::Truncated(Format::Png));
    };
    if header[8..] != *b"\0\0\0\x0dIHDR" {
        return Err(damaged("expected a header (IHDR) of 13 bytes as the first chunk"));
    }
    Ok(Size::new(u32::from_be_bytes([*w0, *w1, *w2, *w3]), u32::from_be_bytes([*h0, *h1, *h2, *h3])))
}

/// Decodes a file to RGB, row by row. The caller has checked the size in its header.
pub(crate) fn decode(data: &[u8]) -> Result<Vec<u8>, ImageError> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(data), png::Limits { bytes: CHUNKS });
    decoder.set_transformations(Transformations::IDENTITY);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(refusal)?;
    check(&reader)?;
    let bytes = reader.output_buffer_size().ok_or_else(|| damaged("too many pixels"))?;
    if bytes / MOST_RATIO > data.len() {
        return Err(ImageError::Truncated(Format::Png));
    }
    let mut raw = vec![0; bytes];
    reader.next_frame(&mut raw).map_err(refusal)?;
    rgb(&reader, &raw)
}

fn refusal(error: DecodingError) -> ImageError {
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => ImageError::Truncated(Format::Png),
        DecodingError::LimitsExceeded => damaged(&format!("chunks beside the pixels need more than {CHUNKS} bytes")),
        error => damaged(&error.to_string()),
    }
}

fn check(reader: &Reader<Cursor<&[u8]>>) -> Result<(), ImageError> {
    let info = reader.info();
    if let Some(animation) = info.animation_control() {
        return Err(ImageError::Animated { frames: animation.num_frames });
    }
    if info.bit_depth == BitDepth::Sixteen {
        return Err(ImageError::Unsupported {
            format: Format::Png,
            feature: "a depth of 16 bits".to_owned(),
            expected: "convert the image to 8 bits per channel",
        });
    }
    Ok(())
}

/// Converts rows as the file stores them.
fn rgb(reader: &Reader<Cursor<&[u8]>>, raw: &[u8]) -> Result<Vec<u8>, ImageError> {
    let info = reader.info();
    let width = info.width as usize;
    let depth = info.bit_depth as usize;
    let mut pixels = Vec::with_capacity(width * info.height as usize * 3);
    let rows = raw.chunks_exact(reader.output_line_size(info.width).ok_or_else(|| damaged("a row is too long"))?);
    match info.color_type {
        ColorType::Rgb => rows.for_each(|row| pixels.extend(row)),
        ColorType::Rgba => {
            rows.for_each(|row| pixels.extend(row.as_chunks().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b])))
        }
        ColorType::GrayscaleAlpha => {
            rows.for_each(|row| pixels.extend(row.as_chunks().0.iter().flat_map(|[grey, _]| [*grey; 3])));
        }
        ColorType::Grayscale => {
            let white = (1_u16 << depth) - 1;
            let level = |value: u8| (u16::from(value) * 255 / white) as u8;
            rows.for_each(|row| pixels.extend(values(row, depth).take(width).flat_map(|value| [level(value); 3])));
        }
        ColorType::Indexed => {
            let palette = info.palette.as_deref().ok_or_else(|| damaged("the palette is missing"))?;
            let colours = palette.as_chunks::<3>().0;
            // An index without a colour is black.
            let colour = |value: u8| colours.get(usize::from(value)).copied().unwrap_or_default();
            rows.for_each(|row| pixels.extend(values(row, depth).take(width).flat_map(colour)));
        }
    }
    Ok(pixels)
}

/// Returns the values of a row with 1, 2, 4 or 8 bits each, the highest bits first.
fn values(row: &[u8], depth: usize) -> impl Iterator<Item = u8> {
    let mask = (1_u16 << depth) - 1;
    row.iter().flat_map(move |&byte| (0..8 / depth).map(move |at| byte >> (8 - depth * (at + 1)) & mask as u8))
}

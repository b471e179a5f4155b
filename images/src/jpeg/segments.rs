//! Markers and segments between the entropy-coded parts of a JPEG file.

use crate::ImageError;
use crate::jpeg::refusals::{damaged, truncated};

/// Codes of markers, without the leading `0xff`.
pub(super) mod marker {
    pub(crate) const SOF0: u8 = 0xc0;
    pub(crate) const SOF2: u8 = 0xc2;
    pub(crate) const SOF15: u8 = 0xcf;
    pub(crate) const DHT: u8 = 0xc4;
    pub(crate) const JPG: u8 = 0xc8;
    pub(crate) const DAC: u8 = 0xcc;
    pub(crate) const RST0: u8 = 0xd0;
    pub(crate) const RST7: u8 = 0xd7;
    pub(crate) const SOI: u8 = 0xd8;
    pub(crate) const EOI: u8 = 0xd9;
    pub(crate) const SOS: u8 = 0xda;
    pub(crate) const DQT: u8 = 0xdb;
    pub(crate) const DNL: u8 = 0xdc;
    pub(crate) const DRI: u8 = 0xdd;
    pub(crate) const APP0: u8 = 0xe0;
    pub(crate) const APP14: u8 = 0xee;
    pub(crate) const TEM: u8 = 0x01;
}

/// A position in a file that starts with `SOI`.
pub(super) struct Segments<'a> {
    data: &'a [u8],
    at: usize,
}

/// A marker and the content of its segment, empty where the marker has none.
pub(super) struct Segment<'a> {
    pub(super) marker: u8,
    pub(super) content: &'a [u8],
}

impl<'a> Segments<'a> {
    /// Starts after `SOI`, the first two bytes.
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 2 }
    }

    /// Reads the next marker, skipping bytes before it as libjpeg does, and its segment.
    pub(super) fn next(&mut self) -> Result<Segment<'a>, ImageError> {
        loop {
            let rest = self.rest();
            let start = rest.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff));
            let start = start.ok_or_else(truncated)?;
            let marker = rest[start + 1];
            self.at += start + 2;
            match marker {
                marker::RST0..=marker::RST7 | marker::TEM => {}
                marker::SOI => return Err(damaged("a second start of image (SOI)")),
                marker::EOI => return Ok(Segment { marker, content: &[] }),
                _ => return Ok(Segment { marker, content: self.content()? }),
            }
        }
    }

    fn content(&mut self) -> Result<&'a [u8], ImageError> {
        let (length, after) = self.rest().split_first_chunk().ok_or_else(truncated)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let length = length.checked_sub(2).ok_or_else(|| damaged("a segment of less than 2 bytes"))?;
        let content = after.get(..length).ok_or_else(truncated)?;
        self.at += 2 + length;
        Ok(content)
    }

    /// Returns the bytes from the position on.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.data[self.at..]
    }

    /// Moves the position forward over entropy-coded data.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.data.len());
    }
}

/// Values in the content of a segment, in order.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Result<&'a [u8], ImageError> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or_else(|| damaged("a segment is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ImageError> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads two numbers of four bits, the higher bits first.
    pub(super) fn nibbles(&mut self) -> Result<[u8; 2], ImageError> {
        self.byte().map(|byte| [byte >> 4, byte & 15])
    }

    pub(super) fn number(&mut self) -> Result<u16, ImageError> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }
}

//! Bits of entropy-coded data.

use crate::ImageError;
use crate::jpeg::refusals::{damaged, truncated};

/// Reads bits up to the next marker.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// Bytes moved into `bits`, and the stuffing between them.
    at: usize,
    /// The next bits, the lowest `count` of which are valid.
    bits: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0, bits: 0, count: 0 }
    }

    /// Returns the next bits, at most 16, with zeros after the end of the data.
    pub(super) fn peek(&mut self, count: u32) -> u32 {
        if self.count < count {
            self.fill();
        }
        let mask = (1 << count) - 1;
        let bits =
            if self.count < count { self.bits << (count - self.count) } else { self.bits >> (self.count - count) };
        bits as u32 & mask
    }

    /// Drops bits that `peek` returned.
    pub(super) fn consume(&mut self, count: u32) -> Result<(), ImageError> {
        self.count = self.count.checked_sub(count).ok_or_else(|| self.end())?;
        Ok(())
    }

    /// Reads at most 16 bits as a number.
    pub(super) fn take(&mut self, count: u32) -> Result<u32, ImageError> {
        let bits = self.peek(count);
        self.consume(count)?;
        Ok(bits)
    }

    /// Reads a number of `size` bits (at most 15) in the format's signed form, in which a first bit of 0 means negative.
    pub(super) fn signed(&mut self, size: u32) -> Result<i32, ImageError> {
        if size == 0 {
            return Ok(0);
        }
        let value = self.take(size)? as i32;
        Ok(if value < 1 << (size - 1) { value - (1 << size) + 1 } else { value })
    }

    /// Drops bits up to the marker `RST0 + number`, which must come next.
    pub(super) fn restart(&mut self, number: u8) -> Result<(), ImageError> {
        self.bits = 0;
        self.count = 0;
        let rest = &self.data[self.at..];
        let marker = rest.windows(2).position(|pair| pair[0] == 0xff && !matches!(pair[1], 0 | 0xff));
        let marker = marker.ok_or_else(truncated)?;
        if rest[marker + 1] != 0xd0 + number {
            return Err(damaged(&format!("expected the restart marker {number}")));
        }
        self.at += marker + 2;
        Ok(())
    }

    /// Returns the bytes that were read: the next marker is there or later.
    pub(super) fn consumed(&self) -> usize {
        self.at
    }

    fn fill(&mut self) {
        while self.count <= 56 {
            let byte = match self.data.get(self.at..) {
                Some([0xff, 0, ..]) => {
                    self.at += 2;
                    0xff
                }
                Some([0xff, 0xff, ..]) => {
                    self.at += 1;
                    continue;
                }
                None | Some([] | [0xff, ..]) => return,
                Some([byte, ..]) => {
                    self.at += 1;
                    *byte
                }
            };
            self.bits = self.bits << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    fn end(&self) -> ImageError {
        if self.data.len() <= self.at + 1 { truncated() } else { damaged("a scan ends before its last block") }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn stuffed_bytes_are_removed_and_markers_end_the_data() {
        let mut bits = Bits::new(&[0xa5, 0xff, 0x00, 0x0f, 0xff, 0xff, 0xd9, 0x77]);
        assert_eq!(bits.take(4).unwrap(), 0xa);
        assert_eq!(bits.take(12).unwrap(), 0x5ff);
        assert_eq!(bits.peek(16), 0x0f00);
        assert_eq!(bits.take(8).unwrap(), 0x0f);
        assert_eq!(
            bits.take(1).unwrap_err().to_string(),
            "the JPEG file is damaged: a scan ends before its last block"
        );
        assert_eq!(bits.consumed(), 5);
    }

    #[test]
    fn numbers_are_signed_by_their_first_bit() {
        let mut bits = Bits::new(&[0b0101_1100]);
        let values =
            [bits.signed(1).unwrap(), bits.signed(2).unwrap(), bits.signed(2).unwrap(), bits.signed(3).unwrap()];
        assert_eq!(values, [-1, 2, 3, 4]);
        assert_eq!(bits.signed(0), Ok(0));
        assert_eq!(bits.signed(1), Err(truncated()));
    }

    #[test]
    fn a_restart_drops_what_is_before_its_marker() {
        let mut bits = Bits::new(&[0x12, 0x34, 0xff, 0xd1, 0x80]);
        assert_eq!(bits.take(3).unwrap(), 0);
        bits.restart(1).unwrap();
        assert_eq!(bits.take(1).unwrap(), 1);
        assert_eq!(bits.restart(2), Err(truncated()));
        let wrong = Bits::new(&[0xff, 0xd3]).restart(2).unwrap_err();
        assert_eq!(wrong.to_string(), "the JPEG file is damaged: expected the restart marker 2");
    }
}

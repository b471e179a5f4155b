//! Huffman codes as JPEG files define them.

use crate::ImageError;
use crate::jpeg::bits::Bits;
use crate::jpeg::refusals::damaged;
use crate::jpeg::segments::Fields;

/// Bits of codes that one look-up decodes.
const SHORT: u32 = 8;
/// Maximum number of bits of a code.
const LONGEST: usize = 16;

/// A table of codes of up to 16 bits.
#[derive(Clone)]
pub(super) struct Huffman {
    /// Symbol and length of the code with which eight bits start; length 0 if it is longer.
    short: Vec<Code>,
    /// One above the largest code of each length, aligned to 16 bits.
    ends: [u32; LONGEST + 1],
    /// What to add to a code of each length for the index of its symbol.
    offsets: [i32; LONGEST + 1],
    symbols: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Code {
    symbol: u8,
    length: u8,
}

impl Huffman {
    /// Reads the 16 counts and the symbols of one table.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self, ImageError> {
        let counts = fields.take(LONGEST)?;
        let total: usize = counts.iter().copied().map(usize::from).sum();
        if total > 256 {
            return Err(damaged(&format!("a Huffman table of {total} codes")));
        }
        let symbols = fields.take(total)?.to_vec();
        let mut short = vec![Code::default(); 1 << SHORT];
        let (mut ends, mut offsets) = ([0; LONGEST + 1], [0; LONGEST + 1]);
        let (mut code, mut index) = (0_u32, 0_usize);
        for (length, &count) in (1..).zip(counts) {
            offsets[length] = index as i32 - code as i32;
            for &symbol in &symbols[index..index + usize::from(count)] {
                if code >> length != 0 {
                    return Err(damaged(&format!("a Huffman table with too many codes of {length} bits")));
                }
                if let Some(free) = SHORT.checked_sub(length as u32) {
                    let first = (code as usize) << free;
                    short[first..first + (1 << free)].fill(Code { symbol, length: length as u8 });
                }
                code += 1;
            }
            index += usize::from(count);
            ends[length] = code << (LONGEST - length);
            code <<= 1;
        }
        Ok(Self { short, ends, offsets, symbols })
    }

    /// Returns the largest symbol.
    pub(super) fn largest(&self) -> u8 {
        self.symbols.iter().copied().max().unwrap_or(0)
    }

    /// Reads the next code and returns its symbol.
    pub(super) fn decode(&self, bits: &mut Bits<'_>) -> Result<u8, ImageError> {
        let code = self.short[bits.peek(SHORT) as usize];
        if code.length > 0 {
            bits.consume(code.length.into())?;
            return Ok(code.symbol);
        }
        let next = bits.peek(LONGEST as u32);
        for length in SHORT as usize + 1..=LONGEST {
            if next < self.ends[length] {
                let code = (next >> (LONGEST - length)) as i32;
                // Shorter codes are smaller, so the index cannot be below the first symbol of this length.
                let symbol = self.symbols.get((code + self.offsets[length]) as usize);
                bits.consume(length as u32)?;
                return symbol.copied().ok_or_else(|| damaged("a code that is not in its Huffman table"));
            }
        }
        bits.consume(LONGEST as u32)?;
        Err(damaged("a code that is not in its Huffman table"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn table(counts: [u8; 16], symbols: &[u8]) -> Result<Huffman, ImageError> {
        Huffman::parse(&mut Fields(&[&counts[..], symbols].concat()))
    }

    #[test]
    fn short_and_long_codes_are_decoded() {
        let mut counts = [0; 16];
        (counts[1], counts[8], counts[15]) = (2, 1, 1);
        let table = table(counts, &[7, 8, 9, 10]).unwrap();
        assert_eq!(table.largest(), 10);
        // 01, 00, 100000000, 1000000010000000, then 11 which is not a code.
        let mut bits = Bits::new(&[0b0100_1000, 0b0000_0100, 0b0000_0100, 0b0000_0111, 0b1111_1111, 0, 0xf0]);
        let symbols: Vec<_> = (0..4).map(|_| table.decode(&mut bits).unwrap()).collect();
        assert_eq!(symbols, [8, 7, 9, 10]);
        assert!(table.decode(&mut bits).unwrap_err().to_string().ends_with("a code that is not in its Huffman table"));
    }

    #[test]
    fn tables_with_more_codes_than_bits_allow_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 3;
        let message = table(counts, &[1, 2, 3]).err().unwrap().to_string();
        assert_eq!(message, "the JPEG file is damaged: a Huffman table with too many codes of 1 bits");
        assert!(table([20; 16], &[0; 320]).err().unwrap().to_string().ends_with("a Huffman table of 320 codes"));
        assert!(table([1; 16], &[0; 3]).err().unwrap().to_string().ends_with("a segment is too short"));
    }
}

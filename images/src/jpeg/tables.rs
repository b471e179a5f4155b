//! Tables and marks that segments set for the scans after them.

use crate::ImageError;
use crate::jpeg::frame::Frame;
use crate::jpeg::huffman::Huffman;
use crate::jpeg::idct::ZIGZAG;
use crate::jpeg::refusals::damaged;
use crate::jpeg::segments::{Fields, Segment, marker};

/// Content of the segments read so far.
#[derive(Default)]
pub(super) struct Tables {
    /// Quantization tables, by rows.
    pub(super) quantization: [Option<[u16; 64]>; 4],
    pub(super) constant: [Option<Huffman>; 4],
    pub(super) alternating: [Option<Huffman>; 4],
    /// Units between two restart markers; 0 for none.
    pub(super) restart: usize,
    jfif: bool,
    /// Colour transform that an Adobe segment states.
    adobe: Option<u8>,
}

impl Tables {
    /// Reads a segment that sets a table or mark, and ignores all others.
    pub(super) fn read(&mut self, segment: &Segment<'_>) -> Result<(), ImageError> {
        let mut fields = Fields(segment.content);
        match segment.marker {
            marker::DQT => self.read_quantization(&mut fields),
            marker::DHT => self.read_codes(&mut fields),
            marker::DRI => {
                self.restart = fields.number()?.into();
                Ok(())
            }
            marker::APP0 => {
                self.jfif |= segment.content.len() >= 14 && segment.content.starts_with(b"JFIF\0");
                Ok(())
            }
            marker::APP14 => {
                if segment.content.len() >= 12 && segment.content.starts_with(b"Adobe") {
                    self.adobe = Some(segment.content[11]);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read_quantization(&mut self, fields: &mut Fields<'_>) -> Result<(), ImageError> {
        while !fields.0.is_empty() {
            let [wide, index] = fields.nibbles()?;
            let slot = self.quantization.get_mut(usize::from(index));
            let slot = slot.ok_or_else(|| damaged(&format!("a quantization table with the index {index}")))?;
            let mut table = [0; 64];
            for at in ZIGZAG {
                table[usize::from(at)] = if wide > 0 { fields.number()? } else { fields.byte()?.into() };
            }
            *slot = Some(table);
        }
        Ok(())
    }

    fn read_codes(&mut self, fields: &mut Fields<'_>) -> Result<(), ImageError> {
        while !fields.0.is_empty() {
            let [class, index] = fields.nibbles()?;
            let tables = match class {
                0 => &mut self.constant,
                1 => &mut self.alternating,
                _ => return Err(damaged(&format!("a Huffman table of the class {class}"))),
            };
            let slot = tables.get_mut(usize::from(index));
            let slot = slot.ok_or_else(|| damaged(&format!("a Huffman table with the index {index}")))?;
            let table = Huffman::parse(fields)?;
            if class == 0 && table.largest() > 15 {
                return Err(damaged(&format!("a constant term of {} bits", table.largest())));
            }
            *slot = Some(table);
        }
        Ok(())
    }

    /// Whether three components are luminance and two colour differences, decided as libjpeg does.
    pub(super) fn has_luminance(&self, frame: &Frame) -> bool {
        let ids: Vec<u8> = frame.components.iter().map(|component| component.id).collect();
        match self.adobe {
            _ if self.jfif => true,
            Some(transform) => transform != 0,
            None => ids != *b"RGB",
        }
    }
}

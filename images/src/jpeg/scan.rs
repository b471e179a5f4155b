//! Scans: which components and coefficients they send, and the order of their blocks.

use crate::ImageError;
use crate::jpeg::bits::Bits;
use crate::jpeg::coefficients::{Band, Memory};
use crate::jpeg::frame::{Blocks, Frame, MOST_BLOCKS};
use crate::jpeg::refusals::damaged;
use crate::jpeg::segments::Fields;

/// Header of a scan.
pub(super) struct Scan {
    pub(super) parts: Vec<Part>,
    pub(super) band: Band,
}

/// A component of a scan: its index in the frame and its Huffman tables.
pub(super) struct Part {
    pub(super) component: usize,
    pub(super) constant: usize,
    pub(super) alternating: usize,
}

/// A block of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Index among the scan's parts.
    pub(super) part: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Scan {
    /// Reads the content of an `SOS` segment.
    pub(super) fn parse(content: &[u8], frame: &Frame) -> Result<Self, ImageError> {
        let mut fields = Fields(content);
        let count = fields.byte()?;
        let mut parts = Vec::new();
        for _ in 0..count {
            let id = fields.byte()?;
            let component = frame.components.iter().position(|component| component.id == id);
            let component = component.ok_or_else(|| damaged(&format!("a scan of a component {id} that is missing")))?;
            if parts.iter().any(|part: &Part| part.component == component) {
                return Err(damaged(&format!("a scan with the component {id} twice")));
            }
            let [constant, alternating] = fields.nibbles()?.map(usize::from);
            if constant > 3 || alternating > 3 {
                return Err(damaged("a scan with the index of a Huffman table above 3"));
            }
            parts.push(Part { component, constant, alternating });
        }
        if parts.is_empty() {
            return Err(damaged("a scan without components"));
        }
        let [first, last] = [fields.byte()?, fields.byte()?].map(usize::from);
        let [before, low] = fields.nibbles()?.map(u32::from);
        let scan = Self { parts, band: Band { first, last, before, low } };
        scan.check(frame)?;
        Ok(scan)
    }

    fn check(&self, frame: &Frame) -> Result<(), ImageError> {
        let blocks = |part: &Part| frame.components[part.component].across * frame.components[part.component].down;
        let blocks: usize = self.parts.iter().map(blocks).sum();
        if self.parts.len() > 1 && blocks > MOST_BLOCKS {
            return Err(damaged(&format!("a scan with {blocks} blocks per unit")));
        }
        let Band { first, last, before, low } = self.band;
        let coefficients = if first == 0 { last == 0 } else { first <= last && last < 64 && self.parts.len() == 1 };
        let precision = low < 14 && (before == 0 || before == low + 1);
        if frame.progressive && !(coefficients && precision) {
            return Err(damaged(&format!("a scan of coefficients {first} to {last}, bits {before} to {low}")));
        }
        Ok(())
    }

    /// Calls `decode` with each block in the order of the data, and returns the bytes that were read.
    pub(super) fn walk(
        &self,
        frame: &Frame,
        restart: usize,
        data: &[u8],
        mut decode: impl FnMut(&mut Bits<'_>, &mut Memory, Place) -> Result<(), ImageError>,
    ) -> Result<usize, ImageError> {
        let mut bits = Bits::new(data);
        let mut memory = Memory::default();
        let units = self.units(frame);
        let places = self.places(frame);
        for unit in 0..units.across * units.down {
            if restart > 0 && unit > 0 && unit % restart == 0 {
                bits.restart(((unit / restart - 1) % 8) as u8)?;
                memory = Memory::default();
            }
            let (row, column) = (unit / units.across, unit % units.across);
            for place in &places {
                let (down, across) = self.step(frame, place.part);
                let place =
                    Place { part: place.part, row: row * down + place.row, column: column * across + place.column };
                decode(&mut bits, &mut memory, place)?;
            }
        }
        Ok(bits.consumed())
    }

    /// Returns how many units the scan has. A unit of a single component is one block.
    fn units(&self, frame: &Frame) -> Blocks {
        match &self.parts[..] {
            [part] => frame.components[part.component].own_blocks(),
            _ => Blocks {
                across: (frame.size.width as usize).div_ceil(8 * frame.across()),
                down: (frame.size.height as usize).div_ceil(8 * frame.down()),
            },
        }
    }

    /// Returns the rows and columns of blocks that a part has in a unit.
    fn step(&self, frame: &Frame, part: usize) -> (usize, usize) {
        let component = &frame.components[self.parts[part].component];
        if self.parts.len() == 1 { (1, 1) } else { (component.down, component.across) }
    }

    /// Returns the blocks of the first unit.
    fn places(&self, frame: &Frame) -> Vec<Place> {
        let blocks = |part| {
            let (down, across) = self.step(frame, part);
            (0..down * across).map(move |at| Place { part, row: at / across, column: at % across })
        };
        (0..self.parts.len()).flat_map(blocks).collect()
    }
}

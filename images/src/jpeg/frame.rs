//! The frame header: size, components, and what kind of JPEG file it is.

use crate::jpeg::refusals::{damaged, unsupported};
use crate::jpeg::segments::{Fields, Segments, marker};
use crate::{ImageError, Size};

/// Maximum number of blocks of an interleaved unit, by the format.
pub(super) const MOST_BLOCKS: usize = 10;

/// Header of the only frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) size: Size,
    pub(super) progressive: bool,
    pub(super) components: Vec<Component>,
}

/// One colour component: how densely it is sampled.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Samples of a unit of the image, across and down (1 to 4).
    pub(super) across: usize,
    pub(super) down: usize,
    /// Index of the quantization table.
    pub(super) table: usize,
    /// Samples that show the image, across and down.
    pub(super) width: usize,
    pub(super) height: usize,
    /// Blocks of 8 × 8 samples that are stored: whole units.
    pub(super) blocks_across: usize,
    pub(super) blocks_down: usize,
}

impl Component {
    /// Returns the blocks that a scan of this component alone has.
    pub(super) fn own_blocks(&self) -> Blocks {
        Blocks { across: self.width.div_ceil(8), down: self.height.div_ceil(8) }
    }
}

/// A rectangle of blocks.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) across: usize,
    pub(super) down: usize,
}

impl Frame {
    /// Finds the frame header of a file. Allocates only the list of components.
    pub(super) fn find(data: &[u8]) -> Result<Self, ImageError> {
        let mut segments = Segments::new(data);
        loop {
            let segment = segments.next()?;
            match segment.marker {
                marker::DHT | marker::JPG | marker::DAC => {}
                marker::SOF0..=marker::SOF15 => return Self::parse(segment.marker, segment.content),
                marker::SOS | marker::EOI => {
                    return Err(damaged("expected a frame header (SOF) before the first scan"));
                }
                _ => {}
            }
        }
    }

    /// Reads a frame header, the content of a `SOF` segment.
    pub(super) fn parse(code: u8, content: &[u8]) -> Result<Self, ImageError> {
        let process = code - marker::SOF0;
        match process {
            0..=2 => {}
            3 => return Err(unsupported("lossless coding", "expected baseline or progressive")),
            9..=11 => return Err(unsupported("arithmetic coding", "expected Huffman codes")),
            _ => return Err(unsupported("hierarchical coding", "expected one frame")),
        }
        let mut fields = Fields(content);
        let precision = fields.byte()?;
        if precision != 8 {
            return Err(unsupported(&format!("a precision of {precision} bits"), "expected 8 bits per channel"));
        }
        let (height, width) = (fields.number()?, fields.number()?);
        if height == 0 {
            return Err(unsupported(
                "a height of 0, which a later segment (DNL) sets",
                "expected the height in the header",
            ));
        }
        if width == 0 {
            return Err(damaged("a width of 0"));
        }
        let size = Size::new(width.into(), height.into());
        let count = fields.byte()?;
        match count {
            1 | 3 => {}
            4 => return Err(unsupported("CMYK", "convert the image to RGB")),
            _ => {
                return Err(unsupported(
                    &format!("a colour space of {count} channels"),
                    "expected grey or three channels",
                ));
            }
        }
        let mut components: Vec<_> = (0..count).map(|_| component(&mut fields)).collect::<Result<_, _>>()?;
        place(&mut components, size)?;
        Ok(Self { size, progressive: code == marker::SOF2, components })
    }

    /// Returns the densest sampling of all components, across.
    pub(super) fn across(&self) -> usize {
        self.components.iter().map(|component| component.across).max().unwrap_or(1)
    }

    /// Returns the densest sampling of all components, down.
    pub(super) fn down(&self) -> usize {
        self.components.iter().map(|component| component.down).max().unwrap_or(1)
    }

    /// Returns the fewest bytes of entropy-coded data that a whole file of this frame can have.
    pub(super) fn least_bytes(&self) -> usize {
        let blocks: usize = self.components.iter().map(Component::own_blocks).map(|own| own.across * own.down).sum();
        // A code has at least one bit: for a block's constant term, and for the end of a block.
        blocks * if self.progressive { 1 } else { 2 } / 8
    }
}

fn component(fields: &mut Fields<'_>) -> Result<Component, ImageError> {
    let id = fields.byte()?;
    let [across, down] = fields.nibbles()?.map(usize::from);
    let table = usize::from(fields.byte()?);
    if !(1..=4).contains(&across) || !(1..=4).contains(&down) {
        return Err(damaged(&format!("sampling factors of {across} × {down}")));
    }
    if table > 3 {
        return Err(damaged(&format!("the index {table} of a quantization table")));
    }
    Ok(Component { id, across, down, table, width: 0, height: 0, blocks_across: 0, blocks_down: 0 })
}

/// Computes how many samples and blocks each component has.
fn place(components: &mut [Component], size: Size) -> Result<(), ImageError> {
    let most_across = components.iter().map(|component| component.across).max().unwrap_or(1);
    let most_down = components.iter().map(|component| component.down).max().unwrap_or(1);
    let (width, height) = (size.width as usize, size.height as usize);
    for at in 0..components.len() {
        let (before, rest) = components.split_at_mut(at);
        let component = &mut rest[0];
        if before.iter().any(|other| other.id == component.id) {
            return Err(damaged(&format!("two components with the id {}", component.id)));
        }
        if most_across % component.across != 0 || most_down % component.down != 0 {
            return Err(unsupported(
                &format!("a sampling of {} × {} beside {most_across} × {most_down}", component.across, component.down),
                "expected factors that divide each other",
            ));
        }
        component.width = (width * component.across).div_ceil(most_across);
        component.height = (height * component.down).div_ceil(most_down);
        component.blocks_across = width.div_ceil(8 * most_across) * component.across;
        component.blocks_down = height.div_ceil(8 * most_down) * component.down;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn header(count: u8, sampling: &[u8]) -> Vec<u8> {
        let mut content = vec![8, 0, 53, 0, 37, count];
        for (id, &sampling) in (1..).zip(sampling) {
            content.extend([id, sampling, 0]);
        }
        content
    }

    #[test]
    fn components_are_placed_by_their_sampling() {
        let frame = Frame::parse(marker::SOF0, &header(3, &[0x22, 0x11, 0x11])).unwrap();
        assert_eq!(frame.size, Size::new(37, 53));
        let shape = |at: usize| {
            let c = &frame.components[at];
            [c.width, c.height, c.blocks_across, c.blocks_down]
        };
        assert_eq!(shape(0), [37, 53, 6, 8]);
        assert_eq!(shape(1), [19, 27, 3, 4]);
        assert_eq!(frame.least_bytes(), (5 * 7 + 2 * 3 * 4) * 2 / 8);
    }

    #[test]
    fn other_kinds_of_files_are_refused_by_name() {
        let message = |code, content: &[u8]| Frame::parse(code, content).unwrap_err().to_string();
        let grey = header(1, &[0x11]);
        let unsupported = |code, content: &[u8]| message(code, content).split(" is not").next().unwrap().to_owned();
        assert_eq!(
            message(0xc0, &header(4, &[0x11; 4])),
            "CMYK is not supported in JPEG images: convert the image to RGB"
        );
        assert_eq!(unsupported(0xc3, &grey), "lossless coding");
        assert_eq!(unsupported(0xc5, &grey), "hierarchical coding");
        assert_eq!(unsupported(0xc9, &grey), "arithmetic coding");
        assert_eq!(unsupported(0xc0, &header(2, &[0x11; 2])), "a colour space of 2 channels");
        assert_eq!(unsupported(0xc0, &header(3, &[0x31, 0x21, 0x11])), "a sampling of 2 × 1 beside 3 × 1");
        assert_eq!(unsupported(0xc1, &[12, 0, 1, 0, 1, 1, 1, 0x11, 0]), "a precision of 12 bits");
        assert!(message(0xc0, &[8, 0, 0, 0, 1, 1, 1, 0x11, 0]).starts_with("a height of 0"));
        assert_eq!(message(0xc0, &header(1, &[0x15])), "the JPEG file is damaged: sampling factors of 1 × 5");
        assert_eq!(message(0xc0, &header(3, &[0x11])), "the JPEG file is damaged: a segment is too short");
    }
}

//! Samples and coefficients of each component.

use crate::ImageError;
use crate::jpeg::coefficients::Band;
use crate::jpeg::frame::Component;
use crate::jpeg::idct::{Block, transform};
use crate::jpeg::refusals::damaged;

/// Samples of a component, whole blocks.
pub(super) struct Plane {
    samples: Vec<u8>,
    stride: usize,
    /// Samples of a row that show the image, and rows that do.
    width: usize,
    height: usize,
}

impl Plane {
    pub(super) fn new(component: &Component) -> Self {
        let stride = component.blocks_across * 8;
        let samples = vec![0; stride * component.blocks_down * 8];
        Self { samples, stride, width: component.width, height: component.height }
    }

    /// Transforms a block to its samples.
    pub(super) fn set(&mut self, row: usize, column: usize, block: &Block, table: &[u16; 64]) {
        transform(block, table, &mut self.samples[row * 8 * self.stride + column * 8..], self.stride);
    }

    /// Returns a row of samples. A row below the image is its last one.
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let start = row.min(self.height - 1) * self.stride;
        &self.samples[start..start + self.width]
    }
}

/// Coefficients of a component of a progressive file, and how far they are known.
pub(super) struct Coefficients {
    blocks: Vec<Block>,
    across: usize,
    /// Lowest bit that was sent of each coefficient, in the order of the file.
    sent: [Option<u32>; 64],
}

/// Coefficients from which libjpeg estimates the ones that are not known.
const ESTIMATED: usize = 10;

impl Coefficients {
    pub(super) fn new(component: &Component) -> Self {
        let blocks = vec![[0; 64]; component.blocks_across * component.blocks_down];
        Self { blocks, across: component.blocks_across, sent: [None; 64] }
    }

    /// Checks that a scan continues those before it.
    pub(super) fn begin(&mut self, band: Band) -> Result<(), ImageError> {
        for sent in &mut self.sent[band.first..=band.last] {
            let before = sent.unwrap_or(0);
            let again = sent.is_some() && band.before == 0;
            if again || band.before != before {
                return Err(damaged("a scan that repeats or skips bits of coefficients"));
            }
            *sent = Some(band.low);
        }
        Ok(())
    }

    pub(super) fn block(&mut self, row: usize, column: usize) -> &mut Block {
        &mut self.blocks[row * self.across + column]
    }

    /// Transforms all blocks to their samples.
    pub(super) fn plane(self, component: &Component, table: &[u16; 64]) -> Result<Plane, ImageError> {
        if self.sent[..ESTIMATED].iter().any(|sent| *sent != Some(0)) {
            return Err(damaged("the last scans are missing"));
        }
        let mut plane = Plane::new(component);
        for (at, block) in self.blocks.iter().enumerate() {
            plane.set(at / self.across, at % self.across, block, table);
        }
        Ok(plane)
    }
}

//! An image cut into patches.

use serde::{Deserialize, Serialize};

use crate::preprocess::layout::Layout;
use crate::preprocess::normalization::Normalization;
use crate::resize::resize;
use crate::{RgbImage, Size};

/// A resized image whose patches are computed on demand. Holds three bytes per pixel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patches {
    /// Pixels after resizing and padding, row by row.
    pixels: Vec<u8>,
    layout: Layout,
    normalization: Normalization,
}

impl Patches {
    pub(super) fn new(image: &RgbImage, layout: Layout, normalization: &Normalization) -> Self {
        let resized = resize(image.pixels(), image.size(), layout.resized);
        let pixels = pad(resized, layout.resized, layout.padded);
        Self { pixels, layout, normalization: normalization.clone() }
    }

    /// Returns the grid and the number of tokens.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns all values, `[patches, patch_dim]` by rows.
    pub fn values(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.layout.patches() * self.layout.patch_dim()];
        self.fill(0, &mut values);
        values
    }

    /// Writes the patches from `first` on, as many as `values` holds in rows of `patch_dim`.
    ///
    /// The values of a patch are ordered by channel, frame, row and column. Rows beyond the last patch are left as they
    /// are.
    pub fn fill(&self, first: usize, values: &mut [f32]) {
        let patches = first..self.layout.patches();
        for (patch, values) in patches.zip(values.chunks_exact_mut(self.layout.patch_dim())) {
            self.fill_patch(patch, values);
        }
    }

    fn fill_patch(&self, patch: usize, values: &mut [f32]) {
        let place = self.layout.place(patch);
        let side = self.layout.patch as usize;
        let width = self.layout.padded.width as usize;
        let start = (place.row * side * width + place.column * side) * 3;
        let frame = side * side;
        for (channel, values) in values.chunks_exact_mut(frame * self.layout.frames as usize).enumerate() {
            let floats = self.normalization.channel(channel);
            for (row, values) in values[..frame].chunks_exact_mut(side).enumerate() {
                let pixels = &self.pixels[start + row * width * 3..];
                for (pixel, value) in pixels.chunks_exact(3).zip(values) {
                    *value = floats[usize::from(pixel[channel])];
                }
            }
            for at in 1..self.layout.frames as usize {
                values.copy_within(..frame, at * frame);
            }
        }
    }
}

/// Appends zeros at the right and the bottom.
fn pad(pixels: Vec<u8>, from: Size, to: Size) -> Vec<u8> {
    if from == to {
        return pixels;
    }
    let stride = to.width as usize * 3;
    let mut padded = Vec::with_capacity(stride * to.height as usize);
    for row in pixels.chunks_exact(from.width as usize * 3) {
        padded.extend(row);
        padded.resize(padded.len().next_multiple_of(stride), 0);
    }
    padded.resize(stride * to.height as usize, 0);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preprocess::layout::Order;

    fn image(size: Size) -> RgbImage {
        let pixels = (0..size.pixels() as usize * 3).map(|at| at as u8).collect();
        RgbImage { size, pixels }
    }

    fn patches(size: Size, padded: Size, frames: u32) -> Patches {
        let layout = Layout { resized: size, padded, patch: 2, merge: 1, frames, order: Order::Raster };
        // Values stay what they are.
        Patches::new(&image(size), layout, &Normalization::new([0.0; 3], [1.0; 3], 1.0))
    }

    #[test]
    fn values_are_ordered_by_channel_frame_row_and_column() {
        let size = Size::new(4, 2);
        let values = patches(size, size, 2).values();
        let red = [0.0, 3.0, 12.0, 15.0];
        assert_eq!(values[..8], [red, red].concat());
        assert_eq!(values[8..12], red.map(|value| value + 1.0));
        assert_eq!(values[24..28], red.map(|value| value + 6.0));
    }

    #[test]
    fn padding_is_at_the_right_and_the_bottom() {
        let values = patches(Size::new(3, 1), Size::new(4, 2), 1).values();
        assert_eq!(
            values,
            [0., 3., 0., 0., 1., 4., 0., 0., 2., 5., 0., 0., 6., 0., 0., 0., 7., 0., 0., 0., 8., 0., 0., 0.]
        );
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let patches = patches(Size::new(6, 4), Size::new(6, 4), 2);
        let (whole, dim) = (patches.values(), patches.layout().patch_dim());
        let mut part = vec![-1.0; 3 * dim];
        patches.fill(4, &mut part);
        assert_eq!(part[..2 * dim], whole[4 * dim..]);
        assert!(part[2 * dim..].iter().all(|&value| value == -1.0));
    }
}

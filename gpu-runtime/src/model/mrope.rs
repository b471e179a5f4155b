//! Rotary positions with three coordinates: time, row and column (Wang et al. 2024, arXiv:2409.12191).
//!
//! Text advances all three coordinates by one. An image stands at one time; its rows and columns count from there, and the next
//! token follows the longer side. Positions therefore differ from indices behind an image. Causality and windows go by index.

use trainyard_protocol::PreparedImage;

use super::weights::Model;
use crate::backend::Backend;
use crate::backend::rope::Angles;
use crate::config::{RopeConfig, RopeSections};

/// Time, row and column.
pub(crate) type Coordinates = [u32; 3];

/// Place of an image in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageGrid {
    /// Index of its first token.
    pub(crate) start: usize,
    /// Number of rows of tokens.
    pub(crate) rows: usize,
    /// Number of columns of tokens.
    pub(crate) columns: usize,
}

impl ImageGrid {
    /// The place of a decoded image.
    pub(crate) fn of(image: &PreparedImage) -> Self {
        let layout = image.patches.layout();
        let tokens = |patches: u32| (patches / layout.merge()) as usize;
        Self { start: image.start, rows: tokens(layout.grid_height()), columns: tokens(layout.grid_width()) }
    }

    /// Number of tokens of the image.
    pub(crate) fn tokens(&self) -> usize {
        self.rows * self.columns
    }
}

/// Coordinates of the token at an index of a sequence with these images, which are in order.
pub(crate) fn coordinates(images: &[ImageGrid], index: usize) -> Coordinates {
    // Indices of images that are not positions.
    let mut skipped = 0;
    for image in images.iter().take_while(|image| image.start <= index) {
        let (within, first) = (index - image.start, (image.start - skipped) as u32);
        if within < image.tokens() {
            let (row, column) = (within / image.columns, within % image.columns);
            return [first, first + row as u32, first + column as u32];
        }
        skipped += image.tokens() - image.rows.max(image.columns);
    }
    [(index - skipped) as u32; 3]
}

/// Rotary tables of the rows of one pass, and each row's place in them.
pub(super) struct PassRotation<B: Backend> {
    /// Tables by the model's rotary embeddings.
    pub(super) ropes: Vec<B::Rope>,
    pub(super) rows: Vec<u32>,
}

impl<B: Backend> PassRotation<B> {
    /// Tables for rows at `coordinates`; `None` in models whose positions are indices, behind images too. A row whose coordinates
    /// are equal has the bits of ordinary positions.
    pub(super) fn new(backend: &B, model: &Model<B>, coordinates: &[Coordinates]) -> Option<Self> {
        let (rotated, sections) = (model.config.rope_dim(), model.config.rope_sections?);
        let rope = |config: &RopeConfig| backend.rope(rotated / 2, table(config, rotated, sections, coordinates));
        let ropes = model.config.ropes.iter().map(rope).collect();
        Some(Self { ropes, rows: (0..coordinates.len() as u32).collect() })
    }
}

/// (cos, sin) of `[row][half a head]`.
fn table(config: &RopeConfig, rotated: usize, sections: RopeSections, coordinates: &[Coordinates]) -> Vec<(f32, f32)> {
    let angles = Angles::new(config, rotated);
    let row = |at: &Coordinates| {
        let at = *at;
        let pair = move |j: usize| (at[sections.axis(j)] as usize, j);
        (0..rotated / 2).map(pair)
    };
    coordinates.iter().flat_map(row).map(|(position, j)| angles.pair(position, j)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RopeScaling;
    use crate::model::rope_table;

    #[test]
    fn tokens_behind_an_image_follow_its_longer_side() {
        let images = [ImageGrid { start: 2, rows: 2, columns: 3 }, ImageGrid { start: 9, rows: 3, columns: 1 }];
        let found: Vec<_> = (0..14).map(|index| coordinates(&images, index)).collect();
        let text = |position| [position; 3];
        let expected = [
            text(0),
            text(1),
            [2, 2, 2],
            [2, 2, 3],
            [2, 2, 4],
            [2, 3, 2],
            [2, 3, 3],
            [2, 3, 4],
            text(5),
            [6, 6, 6],
            [6, 7, 6],
            [6, 8, 6],
            text(9),
            text(10),
        ];
        assert_eq!(found, expected);
        assert_eq!(coordinates(&[], 7), text(7));
    }

    #[test]
    fn equal_coordinates_have_the_bits_of_ordinary_positions() {
        let scaling = RopeScaling::Yarn {
            factor: 4.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            truncate: true,
            attention_factor: 1.1,
            original_max_position_embeddings: 64,
        };
        for scaling in [RopeScaling::None, scaling] {
            let config = RopeConfig { theta: 10_000.0, scaling };
            let coordinates: Vec<Coordinates> = (0..50).map(|position| [position; 3]).collect();
            let own = table(&config, 24, RopeSections([4, 4, 4]), &coordinates);
            assert_eq!(own, rope_table(&config, 24, 50));
            let apart = table(&config, 24, RopeSections([4, 4, 4]), &[[1, 2, 3]]);
            let of = |position: usize, j: usize| rope_table(&config, 24, 50)[position * 12 + j];
            assert_eq!(apart[..4], [of(1, 0), of(2, 1), of(3, 2), of(1, 3)]);
        }
    }
}

//! The arrangement of an image's patches.

use serde::{Deserialize, Serialize};

use crate::Size;

/// Resizing, padding and division into patches of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Size in pixels after resizing.
    pub(super) resized: Size,
    /// Size in pixels after padding at the right and the bottom.
    pub(super) padded: Size,
    /// Pixels of a patch's side.
    pub(super) patch: u32,
    /// Patches of a token's side.
    pub(super) merge: u32,
    /// Times that each value is repeated, as frames of a still video.
    pub(super) frames: u32,
    pub(super) order: Order,
}

/// The order of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Patches come row by row.
    Raster,
    /// Patches come token by token, and row by row within a token.
    Blocks,
}

/// Place of a patch in the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Row of the grid, from the top.
    pub row: usize,
    /// Column of the grid, from the left.
    pub column: usize,
}

impl Layout {
    /// Returns the size in pixels to which the image is resized, before padding.
    pub fn resized(&self) -> Size {
        self.resized
    }

    /// Returns the number of columns of patches.
    pub fn grid_width(&self) -> u32 {
        self.padded.width / self.patch
    }

    /// Returns the number of rows of patches.
    pub fn grid_height(&self) -> u32 {
        self.padded.height / self.patch
    }

    /// Returns the number of patches.
    pub fn patches(&self) -> usize {
        self.grid_width() as usize * self.grid_height() as usize
    }

    /// Returns the number of values of a patch: 3 channels × frames × rows × columns.
    pub fn patch_dim(&self) -> usize {
        3 * self.frames as usize * (self.patch as usize).pow(2)
    }

    /// Returns the number of positions that the image takes in the model's context.
    pub fn tokens(&self) -> usize {
        self.patches() / (self.merge as usize).pow(2)
    }

    /// Returns the side of the square of patches that form a token.
    pub fn merge(&self) -> u32 {
        self.merge
    }

    /// Returns the place of a patch, by its index in the order of rows.
    pub fn place(&self, patch: usize) -> Place {
        let width = self.grid_width() as usize;
        match self.order {
            Order::Raster => Place { row: patch / width, column: patch % width },
            Order::Blocks => {
                let merge = self.merge as usize;
                let (token, within) = (patch / (merge * merge), patch % (merge * merge));
                let across = width / merge;
                Place { row: token / across * merge + within / merge, column: token % across * merge + within % merge }
            }
        }
    }

    /// Returns the index of a patch in the order by tokens, in which the patches of a token are consecutive: row by row of
    /// tokens, and row by row within a token. The patch is given by its index in the order of rows of values.
    pub fn index_by_token(&self, patch: usize) -> usize {
        let Place { row, column } = self.place(patch);
        let merge = self.merge as usize;
        let token = row / merge * (self.grid_width() as usize / merge) + column / merge;
        token * merge * merge + row % merge * merge + column % merge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(order: Order) -> Layout {
        let size = Size::new(24, 16);
        Layout { resized: size, padded: size, patch: 4, merge: 2, frames: 2, order }
    }

    #[test]
    fn blocks_come_token_by_token() {
        let place = |patch| {
            let place = layout(Order::Blocks).place(patch);
            [place.row, place.column]
        };
        let first: Vec<_> = (0..6).map(place).collect();
        assert_eq!(first, [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [0, 3]]);
        assert_eq!(place(12), [2, 0]);
        assert_eq!(place(23), [3, 5]);
    }

    #[test]
    fn patches_of_a_token_are_consecutive_in_the_order_by_tokens() {
        let index = |order, patch| layout(order).index_by_token(patch);
        assert_eq!((0..8).map(|patch| index(Order::Raster, patch)).collect::<Vec<_>>(), [0, 1, 4, 5, 8, 9, 2, 3]);
        assert!((0..24).all(|patch| index(Order::Blocks, patch) == patch));
    }

    #[test]
    fn both_orders_have_every_patch_once() {
        for order in [Order::Raster, Order::Blocks] {
            let layout = layout(order);
            let mut seen: Vec<_> =
                (0..layout.patches()).map(|at| layout.place(at)).map(|p| p.row * 6 + p.column).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..24).collect::<Vec<_>>());
            assert_eq!([layout.tokens(), layout.patch_dim()], [6, 96]);
        }
    }
}

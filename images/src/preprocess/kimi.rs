//! The rule of MoonViT, the tower of Kimi-K2.5 and K2.6.

use crate::Size;
use crate::preprocess::layout::{Layout, Order};

/// Settings of the rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kimi {
    pub(super) patch: u32,
    pub(super) merge: u32,
    /// Maximum number of patches of an image, and of a side.
    pub(super) max_patches: u32,
    pub(super) max_side: u32,
}

impl Kimi {
    /// Shrinks the image until it has few enough patches, then pads both sides to whole tokens.
    pub(super) fn layout(&self, size: Size) -> Layout {
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let patches = |side: u32| f64::from((side / self.patch).max(1));
        let longest = f64::from(self.max_side * self.patch);
        let scale = (f64::from(self.max_patches) / (patches(size.height) * patches(size.width))).sqrt();
        let scale = scale.min(1.0).min(longest / height).min(longest / width);
        let side = |side: f64| (side * scale).max(1.0).min(longest) as u32;
        let resized = Size::new(side(width), side(height));
        let unit = self.patch * self.merge;
        Layout {
            resized,
            padded: Size::new(resized.width.next_multiple_of(unit), resized.height.next_multiple_of(unit)),
            patch: self.patch,
            merge: self.merge,
            frames: 1,
            order: Order::Raster,
        }
    }

    /// Returns a number of patches that no image exceeds.
    ///
    /// A grid of α × β patches is counted with at most `max_patches` and `max_side`, but sides keep a part of a patch, which adds
    /// less than one, and are then padded to whole tokens.
    pub(super) fn most_patches(&self) -> usize {
        let (merge, longest) = (self.merge, self.max_side.next_multiple_of(self.merge));
        let added = f64::from(merge + 1);
        let rows = |columns: u32| {
            let counted = (f64::from(columns) - added).max(1.0);
            // Whole tokens below the bound.
            let bound = f64::from(self.max_patches) / counted + added;
            ((bound / f64::from(merge)) as u32 * merge).min(longest)
        };
        let grids = (merge..=longest).step_by(merge as usize).map(|columns| columns as usize * rows(columns) as usize);
        grids.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Settings of the released files.
    const RELEASED: Kimi = Kimi { patch: 14, merge: 2, max_patches: 16_384, max_side: 512 };

    /// Sizes, what the reference resizes them to, and what it pads that to.
    const NAVIT_RESIZE: &[([u32; 2], [u32; 2], [u32; 2])] = &[
        ([1, 1], [1, 1], [28, 28]),
        ([1, 200], [1, 200], [28, 224]),
        ([48, 80], [48, 80], [56, 84]),
        ([400, 300], [400, 300], [420, 308]),
        ([1000, 240], [1000, 240], [1008, 252]),
        ([240, 1000], [240, 1000], [252, 1008]),
        ([1920, 1080], [1920, 1080], [1932, 1092]),
        ([4000, 3000], [2073, 1554], [2100, 1568]),
        ([4096, 4096], [1795, 1795], [1820, 1820]),
        ([4097, 4096], [1795, 1795], [1820, 1820]),
        ([8000, 4000], [2538, 1269], [2548, 1288]),
        ([33, 65], [33, 65], [56, 84]),
        ([16, 1616], [16, 1616], [28, 1624]),
        ([12032, 90], [7168, 53], [7168, 56]),
        ([6000, 5000], [1964, 1637], [1988, 1652]),
        ([271, 255], [271, 255], [280, 280]),
        ([784, 784], [784, 784], [784, 784]),
        ([40, 10000], [28, 7168], [28, 7168]),
        ([30000, 20], [7168, 4], [7168, 28]),
        ([7168, 7168], [1792, 1792], [1792, 1792]),
        ([13, 2000], [13, 2000], [28, 2016]),
    ];

    #[test]
    fn sizes_are_those_of_the_reference() {
        // Computed with `navit_resize` of transformers.
        for (from, resized, padded) in NAVIT_RESIZE {
            let layout = RELEASED.layout(Size::new(from[0], from[1]));
            assert_eq!([layout.resized.width, layout.resized.height], *resized, "{from:?}");
            assert_eq!([layout.padded.width, layout.padded.height], *padded, "{from:?}");
        }
    }

    #[test]
    fn the_bound_on_patches_is_close_to_the_largest_image() {
        // Counted as 34 × 506 patches, scaled to a part more than 34 × 494, padded to 36 × 496.
        assert_eq!(RELEASED.layout(Size::new(489, 7083)).patches(), 36 * 496);
        assert_eq!(RELEASED.most_patches(), 36 * 498);
    }

    proptest! {
        #[test]
        fn images_are_never_enlarged_and_patches_stay_few(
            width in 1..30_000_u32, height in 1..30_000_u32, max_patches in 1..20_000_u32, max_side in 1..600_u32,
        ) {
            let rule = Kimi { max_patches, max_side, ..RELEASED };
            let layout = rule.layout(Size::new(width, height));
            prop_assert!(layout.resized.width <= width && layout.resized.height <= height);
            prop_assert!(layout.resized.width >= 1 && layout.resized.height >= 1);
            prop_assert!(layout.grid_width().max(layout.grid_height()) <= max_side + 2);
            prop_assert_eq!([layout.padded.width % 28, layout.padded.height % 28], [0, 0]);
            prop_assert!(layout.tokens() > 0);
            prop_assert!(layout.patches() <= rule.most_patches(), "{} of {}", layout.patches(), rule.most_patches());
        }
    }
}

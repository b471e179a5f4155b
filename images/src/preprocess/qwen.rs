//! Qwen2-VL's rule, which Qwen3-VL and Qwen3.5 use.

use crate::preprocess::layout::{Layout, Order};
use crate::{ImageError, Size};

/// Largest aspect ratio, by the reference.
const ASPECT_RATIO: u32 = 200;

/// Settings of the rule.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Qwen {
    pub(super) patch: u32,
    pub(super) merge: u32,
    pub(super) frames: u32,
    /// Fewest and most pixels of a resized image.
    pub(super) min_pixels: u64,
    pub(super) max_pixels: u64,
}

impl Qwen {
    /// Rounds both sides to whole tokens, then scales into the range of pixels.
    pub(super) fn layout(&self, size: Size) -> Result<Layout, ImageError> {
        let (longer, shorter) = (size.width.max(size.height), size.width.min(size.height));
        if u64::from(longer) > u64::from(shorter) * u64::from(ASPECT_RATIO) {
            return Err(ImageError::TooNarrow { size, limit: ASPECT_RATIO });
        }
        let unit = f64::from(self.patch * self.merge);
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let pixels = size.pixels() as f64;
        let (min, max) = (self.min_pixels as f64, self.max_pixels as f64);
        let rounded = |side: f64| (side / unit).round_ties_even() * unit;
        let area = rounded(width) * rounded(height);
        let side = |side: f64| {
            if area > max {
                let scale = (pixels / max).sqrt();
                ((side / scale / unit).floor() * unit).max(unit)
            } else if area < min {
                let scale = (min / pixels).sqrt();
                (side * scale / unit).ceil() * unit
            } else {
                rounded(side)
            }
        };
        let resized = Size::new(side(width) as u32, side(height) as u32);
        Ok(Layout {
            resized,
            padded: resized,
            patch: self.patch,
            merge: self.merge,
            frames: self.frames,
            order: Order::Blocks,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    /// Settings of the released files.
    const RELEASED: Qwen = Qwen { patch: 16, merge: 2, frames: 2, min_pixels: 65_536, max_pixels: 16_777_216 };

    /// Sizes and what the reference makes of them.
    const SMART_RESIZE: &[([u32; 2], [u32; 2])] = &[
        ([1, 1], [256, 256]),
        ([1, 200], [32, 3648]),
        ([48, 80], [224, 352]),
        ([400, 300], [384, 288]),
        ([1000, 240], [992, 256]),
        ([240, 1000], [256, 992]),
        ([1920, 1080], [1920, 1088]),
        ([4000, 3000], [4000, 3008]),
        ([4096, 4096], [4096, 4096]),
        ([4097, 4096], [4096, 4096]),
        ([8000, 4000], [5792, 2880]),
        ([33, 65], [192, 384]),
        ([16, 1616], [32, 2592]),
        ([12032, 90], [12032, 96]),
        ([6000, 5000], [4480, 3712]),
        ([271, 255], [256, 256]),
        ([784, 784], [768, 768]),
    ];

    #[test]
    fn sizes_are_those_of_the_reference() {
        let resized = |width, height| {
            let size = RELEASED.layout(Size::new(width, height)).unwrap().resized();
            [size.width, size.height]
        };
        // Computed with `smart_resize` of transformers.
        for (from, to) in SMART_RESIZE {
            assert_eq!(resized(from[0], from[1]), *to, "{from:?}");
        }
    }

    #[test]
    fn narrow_images_are_refused() {
        assert!(RELEASED.layout(Size::new(200, 1)).is_ok());
        let refused = RELEASED.layout(Size::new(40, 10_000)).unwrap_err();
        assert_eq!(refused, ImageError::TooNarrow { size: Size::new(40, 10_000), limit: 200 });
    }

    proptest! {
        #[test]
        fn sides_are_whole_tokens_and_pixels_within_the_range(
            width in 1..20_000_u32, height in 1..20_000_u32, patch in 1..20_u32, merge in 1..4_u32,
        ) {
            prop_assume!(width.max(height) <= 200 * width.min(height));
            let rule = Qwen { patch, merge, ..RELEASED };
            let layout = rule.layout(Size::new(width, height)).unwrap();
            let unit = patch * merge;
            prop_assert_eq!([layout.resized.width % unit, layout.resized.height % unit], [0, 0]);
            prop_assert!(layout.tokens() > 0);
            prop_assert_eq!(layout.tokens() * (unit as usize).pow(2), layout.resized.pixels() as usize);
            // A side of at least one token may exceed the range for narrow images.
            prop_assert!(layout.resized.pixels() >= rule.min_pixels.min(1));
            prop_assert!(layout.resized.pixels() <= rule.max_pixels + u64::from(unit) * 20_000);
        }
    }
}

//! Limits on images, checked on headers before pixels are allocated.

use crate::{ImageError, Size};

/// Maximum number of bytes per pixel that decoding holds.
pub const DECODING_BYTES_PER_PIXEL: u64 = 9;

/// Limits on one image. Decoding holds at most [`DECODING_BYTES_PER_PIXEL`], and a megabyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes of the file.
    pub bytes: usize,
    /// Maximum number of pixels of the image.
    pub pixels: u64,
    /// Maximum number of pixels of the longer side.
    pub side: u32,
    /// Largest ratio of the longer side to the shorter one.
    pub aspect_ratio: u32,
}

impl Default for Limits {
    /// 32 MiB, 2²⁵ pixels, sides of 16,384 pixels and the aspect ratio of the reference, 200.
    fn default() -> Self {
        Self { bytes: 32 << 20, pixels: 1 << 25, side: 16_384, aspect_ratio: 200 }
    }
}

impl Limits {
    /// Checks the length of a file.
    ///
    /// # Errors
    /// [`ImageError::TooManyBytes`].
    pub fn check_bytes(&self, bytes: usize) -> Result<(), ImageError> {
        if bytes > self.bytes {
            return Err(ImageError::TooManyBytes { bytes, limit: self.bytes });
        }
        Ok(())
    }

    /// Checks the size that a header, or a client, states.
    ///
    /// # Errors
    /// [`ImageError::Empty`], [`ImageError::TooLong`], [`ImageError::TooManyPixels`] or [`ImageError::TooNarrow`].
    pub fn check_size(&self, size: Size) -> Result<(), ImageError> {
        let longer = size.width.max(size.height);
        let shorter = size.width.min(size.height);
        if shorter == 0 {
            return Err(ImageError::Empty(size));
        }
        if longer > self.side {
            return Err(ImageError::TooLong { size, limit: self.side });
        }
        if size.pixels() > self.pixels {
            return Err(ImageError::TooManyPixels { size, limit: self.pixels });
        }
        if u64::from(longer) > u64::from(shorter) * u64::from(self.aspect_ratio) {
            return Err(ImageError::TooNarrow { size, limit: self.aspect_ratio });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_limit_is_named_with_its_numbers() {
        let limits = Limits::default();
        let text = |width, height| limits.check_size(Size::new(width, height)).unwrap_err().to_string();
        assert_eq!(text(0, 7), "the image has 0 × 7 pixels: width and height must be at least 1");
        assert_eq!(text(16_385, 100), "the image has 16385 × 100 pixels, with a side above the limit of 16384");
        assert_eq!(text(8192, 8192), "the image has 8192 × 8192 = 67108864 pixels, above the limit of 33554432");
        assert_eq!(text(10_000, 40), "the image has 10000 × 40 pixels: its sides have a ratio above the limit of 200");
        assert_eq!(
            limits.check_bytes((32 << 20) + 1).unwrap_err().to_string(),
            "the image file has 33554433 bytes, above the limit of 33554432"
        );
    }

    #[test]
    fn sizes_at_the_limits_pass() {
        let limits = Limits::default();
        for size in [Size::new(1, 1), Size::new(1, 200), Size::new(16_384, 2048), Size::new(8000, 40)] {
            assert_eq!(limits.check_size(size), Ok(()));
        }
        assert_eq!(limits.check_bytes(32 << 20), Ok(()));
    }

    proptest! {
        #[test]
        fn a_size_passes_exactly_if_it_is_within_every_limit(
            width in 0..50_u32, height in 0..50_u32, side in 1..50_u32, pixels in 1..2500_u64, aspect_ratio in 1..50_u32,
        ) {
            let limits = Limits { bytes: 0, pixels, side, aspect_ratio };
            let (longer, shorter) = (width.max(height), width.min(height));
            let fits = shorter > 0 && longer <= side && u64::from(width * height) <= pixels && longer <= shorter * aspect_ratio;
            prop_assert_eq!(limits.check_size(Size::new(width, height)).is_ok(), fits);
        }
    }
}

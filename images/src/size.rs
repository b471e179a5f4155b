//! Width and height of images.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Pixels of a row.
    pub width: u32,
    /// Number of rows of pixels.
    pub height: u32,
}

impl Size {
    /// Makes a size from width and height.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Returns the number of pixels.
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

impl fmt::Display for Size {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} × {}", self.width, self.height)
    }
}

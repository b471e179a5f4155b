//! Types that device slices may contain.

use half::bf16;

/// A number, or a plain struct of them without padding, that has the same layout on the host and on the device. Other crates can't name
/// it: bytes of its values are copied as they are.
pub trait Element: Copy + Default + Send + Sync + 'static {}

impl Element for f32 {}
impl Element for f64 {}
impl Element for u32 {}
impl Element for u64 {}
impl Element for bf16 {}

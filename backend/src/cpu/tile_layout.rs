//! How the operands of products of bf16 tiles lie in memory. A left side has tiles of [`TILE`] rows, each with [`TILE_K`] bf16 of
//! a step along `k` in 64 bytes. A right side has rows of words, a word holding two consecutive positions of `k` of a column, the
//! lower one in the low half.

/// Rows of a tile of sums, and its columns.
pub(super) const TILE: usize = 16;
/// Positions of `k` of a step.
pub(super) const TILE_K: usize = 32;
/// Bytes of a tile.
pub(super) const TILE_BYTES: usize = 1024;
/// Bytes that a step with two row tiles prefetches.
pub(super) const PREFETCH: usize = 256;

/// A row of a tile: 32 bf16.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(super) struct TileRow(pub(super) [u16; TILE_K]);

/// The left side of a product of tiles: row tiles of 16 rows, each row with [`TILE_K`] bf16 of a step in 64 bytes.
#[derive(Clone, Copy)]
pub(crate) struct TileLhs {
    pub at: *const u8,
    /// Bytes from a row to the next one.
    pub row_stride: usize,
    /// Bytes from a step along `k` to the next one.
    pub step: usize,
    /// Bytes from the first row tile to the second one.
    pub second: usize,
}

/// The right side: rows of 16 words for each column tile. A second column tile follows the first one at once.
#[derive(Clone, Copy)]
pub(crate) struct TileRhs {
    pub at: *const u8,
    /// Bytes from a row, two positions, to the next one.
    pub row_stride: usize,
    /// Bytes from a step along `k` to the next one.
    pub step: usize,
}

/// Terms of sums over packed tiles: a part of `k`, or the low-rank update of an adapter.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Segment {
    /// The first row tile of the left side: tiles of [`TILE_BYTES`], one for each step.
    pub a: *const u8,
    /// The second row tile, where there is one.
    pub second: *const u8,
    /// The right side: rows of 32 words, [`TILE_K`] / 2 of them for each step.
    pub b: *const u8,
    /// Number of steps along `k`.
    pub steps: usize,
    /// Memory that is prefetched meanwhile into the second-level cache, with two row tiles: [`PREFETCH`] bytes in each
    /// step.
    pub ahead: *const u8,
}

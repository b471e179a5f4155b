//! The sequences of a pass, cut into tiles for attention on tensor cores.

use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::{AttentionShape, KV_BLOCK, Span};

/// Queries, or keys of the backward pass, of a block of threads, as in `kernels/tensor_attention_prelude.cu`.
pub(crate) const ROWS: usize = 64;

/// Keys of a split, as in `kernels/tensor_attention_prelude.cu`.
const SPLIT_KEYS: usize = 4 * KV_BLOCK;

/// Splits of keys get blocks of their own in launches of fewer blocks than this: two per multiprocessor of an H100.
const FEW_BLOCKS: usize = 264;

/// Maximum number of partial output elements that splits of keys may write.
const MOST_PARTS: usize = 2 << 20;

pub(super) const MOST_HEAD_DIM: usize = 128;

/// Whether [`tensor_attention`](super::tensor_attention::tensor_attention()) computes heads of these extents: a multiple of 8 elements up to 128, and
/// at most 64 query heads for a key head.
pub(crate) fn has_tensor_attention(shape: &AttentionShape) -> bool {
    let width = shape.head_dim > 0 && shape.head_dim.is_multiple_of(8) && shape.head_dim <= MOST_HEAD_DIM;
    width && shape.kv_heads > 0 && shape.heads / shape.kv_heads <= ROWS
}

/// Rows of a sequence that follow each other, as kernels read them.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Tile {
    /// Address of the addresses of the sequence's blocks.
    blocks: u64,
    /// The first row's number in the batch.
    row: u32,
    position: u32,
    count: u32,
    /// Behind the sequence's last position.
    end: u32,
}

impl Element for Tile {}

/// The sequences of a pass, cut into tiles of queries and of keys.
pub(crate) struct Tiles {
    pub(crate) queries: Slice<Tile>,
    pub(crate) keys: Slice<Tile>,
    /// Whether every row of the batch is of a sequence.
    pub(crate) covered: bool,
    longest: usize,
}

/// Tiles while they are made.
pub(crate) struct PlannedTiles {
    /// Rows of a tile of queries.
    rows: usize,
    queries: Vec<Tile>,
    keys: Vec<Tile>,
    covered: usize,
    longest: usize,
}

impl Tiles {
    /// No tiles yet, for attention of this shape.
    pub(crate) fn planned(shape: &AttentionShape) -> PlannedTiles {
        let shared = shape.heads.checked_div(shape.kv_heads).unwrap_or(1).max(1);
        PlannedTiles { rows: (ROWS / shared).max(1), queries: Vec::new(), keys: Vec::new(), covered: 0, longest: 0 }
    }

    /// Splits of the longest sequence's keys, where splits are computed apart from each other: where tiles are too few for a device, as
    /// in decoding. No bits depend on it.
    pub(super) fn splits(&self, shape: &AttentionShape, rows: usize) -> Option<usize> {
        let splits = self.longest.div_ceil(SPLIT_KEYS);
        let few = self.queries.len() * shape.kv_heads < FEW_BLOCKS;
        let fits = rows.saturating_mul(shape.q_width()).saturating_mul(splits) <= MOST_PARTS;
        (few && fits && splits > 1).then_some(splits)
    }
}

impl PlannedTiles {
    /// Appends the tiles of a sequence; the addresses of its blocks are at `blocks`.
    pub(crate) fn push(&mut self, blocks: u64, span: &Span) -> Result {
        let extents = Extents("the tiles of a pass");
        let end = extents.index("a position", span.start + span.rows.len())?;
        let tile = |first: usize, count: usize| -> Result<Tile> {
            let row = extents.index("a row", span.rows.start + first)?;
            let position = extents.index("a position", span.start + first)?;
            Ok(Tile { blocks, row, position, count: count.min(span.rows.len() - first) as u32, end })
        };
        for first in (0..span.rows.len()).step_by(self.rows) {
            self.queries.push(tile(first, self.rows)?);
        }
        for first in (0..span.rows.len()).step_by(ROWS) {
            self.keys.push(tile(first, ROWS)?);
        }
        self.covered += span.rows.len();
        self.longest = self.longest.max(span.start + span.rows.len());
        Ok(())
    }

    /// All tiles on the device, of a batch of `rows` rows.
    pub(crate) fn upload(self, device: &CudaDevice, rows: usize) -> Result<Tiles> {
        let Self { queries, keys, covered, longest, .. } = self;
        Ok(Tiles { queries: device.upload(&queries)?, keys: device.upload(&keys)?, covered: covered == rows, longest })
    }
}

const _: () = assert!(ROWS.is_multiple_of(KV_BLOCK), "tiles of keys are whole blocks");

//! Paged keys and values: blocks of [`KV_BLOCK`] tokens, all layers and heads, in the order in which the attention of the
//! kernel class reads them.

mod float;
mod index;
mod layout;
mod paged;
#[cfg(target_arch = "x86_64")]
mod tile;

pub(super) use float::FloatPool;
pub(super) use index::IndexPool;
#[cfg(target_arch = "x86_64")]
pub(super) use tile::TilePool;

use super::Cpu;
use super::parallel::{SharedPtr, for_each};
#[cfg(target_arch = "x86_64")]
use super::tile_unit::TileUnit;
#[cfg(target_arch = "x86_64")]
use crate::Dtype;
use crate::{AttentionShape, BlockId, KV_BLOCK, Span};
use layout::{HeadToken, Layout};

/// The blocks of a model's sequences. A released block frees its memory; its id is reused.
pub struct KvPool {
    shape: AttentionShape,
    storage: Storage,
    /// Keys of indexers, in blocks of the same ids.
    index: IndexPool,
}

/// Keys and values; the layout determines the kernels that read them.
pub(super) enum Storage {
    Floats(FloatPool),
    /// Tiles of bf16, for kernels in tiles.
    #[cfg(target_arch = "x86_64")]
    Tiles(TilePool),
}

/// The unit that computes attention on bf16 tiles; `None` if the processor does not multiply bf16 or the type is f32.
#[cfg(target_arch = "x86_64")]
pub(super) fn tile_unit(cpu: &Cpu) -> Option<TileUnit> {
    TileUnit::of(cpu.isa()).filter(|_| cpu.input_type(cpu.dtype) == Dtype::Bf16)
}

/// Bytes of a block.
pub(super) fn block_bytes(cpu: &Cpu, shape: &AttentionShape) -> usize {
    let index = shape.index.block_bytes();
    #[cfg(target_arch = "x86_64")]
    if tile_unit(cpu).is_some() {
        return TilePool::block_bytes(shape) + index;
    }
    let _ = cpu;
    FloatPool::block_bytes(shape) + index
}

/// Calls a method of a pool's blocks.
macro_rules! with_pages {
    ($storage:expr, $pages:ident => $call:expr) => {
        match $storage {
            Storage::Floats(FloatPool { pages: $pages, .. }) => $call,
            #[cfg(target_arch = "x86_64")]
            Storage::Tiles(TilePool { pages: $pages, .. }) => $call,
        }
    };
}

impl KvPool {
    /// A pool without blocks.
    pub(super) fn new(cpu: &Cpu, shape: &AttentionShape) -> Self {
        let index = IndexPool::new(shape.index);
        #[cfg(target_arch = "x86_64")]
        if let Some(unit) = tile_unit(cpu) {
            return Self { shape: *shape, storage: Storage::Tiles(TilePool::new(unit, shape)), index };
        }
        let _ = cpu;
        Self { shape: *shape, storage: Storage::Floats(FloatPool::new(shape)), index }
    }

    /// The pool of the keys of indexers.
    pub(super) fn index(&self) -> &IndexPool {
        &self.index
    }

    /// Mutable variant of [`KvPool::index`].
    pub(super) fn index_mut(&mut self) -> &mut IndexPool {
        &mut self.index
    }

    pub(super) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Allocates a block of zeros.
    pub(super) fn alloc(&mut self) -> BlockId {
        let block = with_pages!(&mut self.storage, pages => pages.alloc());
        let index = self.index.pages.alloc();
        assert!(index == block, "blocks are allocated and freed together");
        block
    }

    pub(super) fn release(&mut self, block: BlockId) {
        with_pages!(&mut self.storage, pages => pages.release(block));
        self.index.pages.release(block);
    }

    /// Copies a block over another one.
    pub(super) fn copy(&mut self, from: BlockId, to: BlockId) {
        with_pages!(&mut self.storage, pages => pages.copy(from, to));
        self.index.pages.copy(from, to);
    }
}

/// A sequence whose rows are written.
struct SpanWriter<'a, T> {
    span: &'a Span,
    /// Index of the first block that is written.
    first: usize,
    /// The blocks from there on.
    blocks: Vec<SharedPtr<T>>,
}

/// Implementation of [`kv_write`](crate::Backend::kv_write) on the processor.
pub(super) fn write(cpu: &Cpu, pool: &mut KvPool, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &[f32]) {
    assert!(pool.shape == *shape, "keys and values belong to another model");
    match &mut pool.storage {
        Storage::Floats(pool) => write_to(cpu, pool, shape, layer, spans, qkv),
        #[cfg(target_arch = "x86_64")]
        Storage::Tiles(pool) => write_to(cpu, pool, shape, layer, spans, qkv),
    }
}

fn write_to<L: Layout>(cpu: &Cpu, pool: &mut L, shape: &AttentionShape, layer: usize, spans: &[Span], qkv: &[f32])
where
    L::Element: Send,
{
    let pages = pool.pages();
    let mut written = Vec::new();
    let mut writers: Vec<SpanWriter<'_, L::Element>> = spans
        .iter()
        .map(|span| {
            let (start, end) = (span.start.max(span.held), span.start + span.rows.len());
            let blocks = if start < end { start / KV_BLOCK..end.div_ceil(KV_BLOCK) } else { 0..0 };
            let ids = &span.blocks[blocks.clone()];
            written.extend_from_slice(ids);
            SpanWriter { span, first: blocks.start, blocks: ids.iter().map(|id| pages.address(*id)).collect() }
        })
        .collect();
    written.sort_unstable();
    assert!(written.is_sorted_by(|a, b| a < b), "two sequences write to one block");
    let (hd, width, q, kv) = (shape.head_dim, shape.qkv_width(), shape.q_width(), shape.kv_width());
    let (block_len, head_len) = (pages.block_len(), L::head_len(shape));
    for_each(cpu, &mut writers, |_, SpanWriter { span, first, blocks }| {
        for (i, row) in span.rows.clone().enumerate() {
            let position = span.start + i;
            if position < span.held {
                continue;
            }
            let (keys, values) = qkv[row * width + q..(row + 1) * width].split_at(kv);
            let block = blocks[position / KV_BLOCK - *first];
            // SAFETY: the block exists and has this length; blocks of distinct writers differ, as checked above.
            let block = unsafe { std::slice::from_raw_parts_mut(block.ptr(), block_len) };
            let heads = block[layer * shape.kv_heads * head_len..].chunks_exact_mut(head_len);
            for (head, (key, value)) in heads.zip(keys.chunks_exact(hd).zip(values.chunks_exact(hd))) {
                L::put(HeadToken { slot: position % KV_BLOCK, key, value }, head);
            }
        }
    });
}

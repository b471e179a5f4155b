//! Attention's forward pass on tiles.

use std::arch::x86_64::*;

use super::super::inputs::{Reach, chosen as chosen_keys, group};
use super::pack::columns;
use super::softmax::{Keys, Softmax, rescale};
use super::vector::{HeadRows, load_floats, prefetch_to_write, store_floats, store_some, transpose_floats};
use super::{BLOCK, CHOSEN_BLOCKS, ChosenKeys, QUERIES, ROW, Sight, aligned, padded, with_margin};
use crate::cpu::Cpu;
use crate::cpu::buffer::Buffer;
use crate::cpu::kv::TilePool;
use crate::cpu::parallel::SharedPtr;
use crate::cpu::tile_layout::{TileLhs, TileRhs, TileRow};
use crate::cpu::tile_unit::TileUnit;
use crate::{AttentionCall, AttentionShape, BlockId, Span};

/// Keys and values in blocks of tiles.
pub(in super::super) trait KeyTiles: Sync {
    /// The unit that multiplies the tiles.
    fn unit(&self) -> TileUnit;

    /// One head's keys, `[KV_BLOCK][width]`, and transposed values, `[width][KV_BLOCK]`, in a block.
    fn tile(&self, layer: usize, head: usize, id: BlockId) -> (&[TileRow], &[TileRow]);
}

impl KeyTiles for TilePool {
    fn unit(&self) -> TileUnit {
        Self::unit(self)
    }

    fn tile(&self, layer: usize, head: usize, id: BlockId) -> (&[TileRow], &[TileRow]) {
        Self::tile(self, layer, head, id)
    }
}

/// Blocks of keys between two updates of the maximum. Such tiles begin at the sequence's first token.
const BLOCKS: usize = CHOSEN_BLOCKS;
/// Maximum number of tiles of a task.
const TASK: usize = 6;

/// Queries that share a key head: positions of one query head in prefill and training, the heads of one position in
/// decoding.
struct QueryTile {
    span: usize,
    kv_head: usize,
    /// Index of the first query's first element in `qkv`, and distance of queries.
    at: usize,
    stride: usize,
    count: usize,
    /// Position of query i is `position + i * step`.
    position: usize,
    step: usize,
}

/// Tiles in an order in which those of one key head follow each other.
fn query_tiles(shape: &AttentionShape, spans: &[Span], width: usize) -> Vec<QueryTile> {
    let (hd, group) = (shape.head_dim, group(shape));
    let mut tiles = Vec::new();
    for (span, Span { rows, start, .. }) in spans.iter().enumerate() {
        for kv_head in 0..shape.kv_heads {
            let at = rows.start * width + kv_head * group * hd;
            if rows.len() == 1 {
                tiles.extend((0..group).step_by(QUERIES).map(|first| QueryTile {
                    span,
                    kv_head,
                    at: at + first * hd,
                    stride: hd,
                    count: (group - first).min(QUERIES),
                    position: *start,
                    step: 0,
                }));
                continue;
            }
            for first in (0..rows.len()).step_by(QUERIES) {
                tiles.extend((0..group).map(|member| QueryTile {
                    span,
                    kv_head,
                    at: at + first * width + member * hd,
                    stride: width,
                    count: (rows.len() - first).min(QUERIES),
                    position: start + first,
                    step: 1,
                }));
            }
        }
    }
    tiles
}

/// Inputs and outputs that all tiles share.
struct Pass<'a, K> {
    cpu: &'a Cpu,
    call: AttentionCall<'a>,
    reach: Reach,
    kv: &'a K,
    qkv: &'a [f32],
    out: SharedPtr<f32>,
    out_len: usize,
    lse: SharedPtr<f32>,
    lse_len: usize,
}

/// Computes [`attention`](super::super::attention) in tiles.
pub(in super::super) fn attention(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    reach: Reach,
    kv: &impl KeyTiles,
    qkv: &[f32],
    out: &mut [f32],
    lse: &mut [f32],
) {
    let tiles = query_tiles(call.shape, call.spans, call.shape.qkv_width());
    let (out_len, lse_len) = (out.len(), lse.len());
    let (out, lse) = (SharedPtr(out.as_mut_ptr()), SharedPtr(lse.as_mut_ptr()));
    let pass = Pass { cpu, call, reach, kv, qkv, out, out_len, lse, lse_len };
    let per_task = (tiles.len() / (8 * cpu.pool.threads())).clamp(1, TASK);
    cpu.pool.run(tiles.len().div_ceil(per_task), |i| {
        let part = i * per_task..tiles.len().min((i + 1) * per_task);
        let (mut floats, mut words) = pass.scratch();
        for tile in part {
            if let Some(next) = tiles.get(tile + 1) {
                pass.queries(next).prefetch();
            }
            let (tile, floats, words) = (&tiles[tile], &mut floats, &mut words);
            // SAFETY: the processor has the unit of the pool, and AVX-512; tiles have (row, head) pairs of their own.
            unsafe {
                if tile.count <= 16 {
                    pass.attend::<1>(tile, floats, words)
                } else {
                    pass.attend::<2>(tile, floats, words)
                }
            }
        }
    });
}

impl<K: KeyTiles> Pass<'_, K> {
    /// Elements of outputs and scores of a tile, and words of its queries and probabilities.
    fn scratch_len(&self) -> [usize; 2] {
        let rows = padded(self.call.shape.head_dim) + BLOCKS * BLOCK;
        [rows * QUERIES, rows / 2 * QUERIES]
    }

    fn scratch(&self) -> (Buffer<f32>, Buffer<u32>) {
        let [floats, words] = self.scratch_len().map(with_margin);
        (self.cpu.buffer(floats), self.cpu.word_buffer(words))
    }

    fn queries(&self, tile: &QueryTile) -> HeadRows<'_> {
        HeadRows::new(self.qkv, tile.at, tile.stride, tile.count, self.call.shape.head_dim)
    }

    /// Attends with the queries of one tile.
    ///
    /// # Safety
    /// The processor has the unit and the features; concurrent calls are for different queries. A tile has up to 16 C
    /// queries.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn attend<const C: usize>(&self, tile: &QueryTile, floats: &mut Buffer<f32>, words: &mut Buffer<u32>) {
        let AttentionCall { shape, layer, window, spans, chosen } = self.call;
        let (wide, line) = (padded(shape.head_dim), 16 * C);
        // SAFETY: as the caller ensures.
        unsafe { self.kv.unit().configure() };
        let [floats_len, words_len] = self.scratch_len();
        let (o, s) = aligned(floats, floats_len).split_at_mut(wide * line);
        let (q, p) = aligned(words, words_len).split_at_mut(wide / 2 * line);
        columns::<C>(self.queries(tile), wide, q);
        self.prefetch_output(tile);

        let span = &spans[tile.span];
        let sees = |position: usize| self.reach.keys(span, position, window);
        // Lanes without a query see what the last query sees.
        let position = |i: usize| tile.position + i.min(tile.count - 1) * tile.step;
        let mut sight: [Sight; C] = std::array::from_fn(|c| Sight::new(|i| sees(position(16 * c + i))));
        let last = position(tile.count - 1);
        let seen_by_all = if chosen.is_some() { 0..0 } else { sees(last).start..sees(tile.position).end };
        // In decoding all queries are of one row.
        let word = |i: usize, block| chosen_keys(&self.call, span.rows.start + position(i) - span.start, block);
        let mut softmax = Softmax::<C>::new();
        let (first, end) = (sees(tile.position).start / BLOCK, sees(last).end.div_ceil(BLOCK));
        let mut from = first;
        while from < end {
            let to = (from / BLOCKS * BLOCKS + BLOCKS).min(end);
            if chosen.is_some() {
                for (c, sight) in sight.iter_mut().enumerate() {
                    sight.chosen = Some(ChosenKeys::new(from..to, |i, block| word(16 * c + i, block)));
                }
            }
            let blocks = span.blocks[from..to].iter().map(|id| self.kv.tile(layer, tile.kv_head, *id));
            for (i, (keys, _)) in blocks.clone().enumerate() {
                let lhs = TileLhs { at: keys.as_ptr().cast(), row_stride: 2 * wide, step: ROW, second: 32 * wide };
                let rhs = TileRhs { at: q.as_ptr().cast(), row_stride: 4 * line, step: 64 * line };
                let s = s[i * BLOCK * line..][..BLOCK * line].as_mut_ptr();
                // SAFETY: `keys` is `[32][wide]`, `q` `[wide / 2][line]`, and `s` has 32 rows of `line`.
                unsafe { self.kv.unit().multiply::<2, C>(wide / 32, lhs, rhs, s, line, false) };
            }
            let keys = Keys { first: from * BLOCK, blocks: to - from, seen_by_all: seen_by_all.clone() };
            let factors = softmax.add(&keys, s, shape.scale * std::f32::consts::LOG2_E, &sight, p);
            if from > first {
                rescale(o, &factors);
            }
            let mut values = [std::ptr::null(); BLOCKS];
            for (at, (_, tiles)) in values.iter_mut().zip(blocks) {
                *at = tiles.as_ptr().cast();
            }
            for d in (0..wide).step_by(32) {
                let (p, o) = (p[..(to - from) * 16 * line].as_ptr(), o[d * line..][..32 * line].as_mut_ptr());
                // SAFETY: values are `[wide][32]`, `p` has 16 rows for each block, and `o` 32 rows of `line`.
                unsafe { self.kv.unit().multiply_blocks::<C>(&values[..to - from], d * ROW, p, o, from > first) };
            }
            from = to;
        }
        // SAFETY: the caller ensures that the tile's queries are its own.
        unsafe { self.store(tile, o, &softmax) };
    }

    /// Prefetches the elements that [`Pass::store`] writes.
    fn prefetch_output(&self, tile: &QueryTile) {
        let shape = self.call.shape;
        let (row, head) = (tile.at / shape.qkv_width(), tile.at % shape.qkv_width());
        // In decoding, heads follow each other.
        let stride = if tile.step == 0 { shape.head_dim } else { shape.q_width() };
        let first = self.out.ptr().wrapping_add(row * shape.q_width() + head);
        prefetch_to_write(first, stride, tile.count, shape.head_dim);
    }

    /// Divides the output, `o[head_dim][16 C]`, by the sums, and writes it and the log-sum-exps to the tile's rows.
    ///
    /// # Safety
    /// As [`Pass::attend`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn store<const C: usize>(&self, tile: &QueryTile, o: &[f32], softmax: &Softmax<C>) {
        let shape = self.call.shape;
        let (hd, width) = (shape.head_dim, shape.qkv_width());
        // Row of the batch, and first column of the head.
        let place = |i: usize| ((tile.at + i * tile.stride) / width, (tile.at + i * tile.stride) % width);
        for c in 0..tile.count.div_ceil(16) {
            let inverse = _mm512_div_ps(_mm512_set1_ps(1.0), softmax.rounded_sum[c]);
            let queries = 16 * c..tile.count.min(16 * c + 16);
            for d in (0..hd).step_by(16) {
                let mut columns = [_mm512_setzero_ps(); 16];
                for (i, column) in columns.iter_mut().enumerate() {
                    *column = _mm512_mul_ps(load_floats(&o[((d + i) * C + c) * 16..]), inverse);
                }
                for (i, values) in queries.clone().zip(transpose_floats(columns)) {
                    let (row, head) = place(i);
                    let (to, len) = (row * shape.q_width() + head + d, (hd - d).min(16));
                    assert!(to + len <= self.out_len);
                    // SAFETY: in bounds; every (row, head) belongs to one tile.
                    let to = unsafe { std::slice::from_raw_parts_mut(self.out.ptr().add(to), len) };
                    store_some(to, len, values);
                }
            }
            let (mut top, mut sum) = ([0f32; 16], [0f32; 16]);
            store_floats(&mut top, softmax.top[c]);
            store_floats(&mut sum, softmax.sum[c]);
            for (i, (top, sum)) in queries.zip(top.into_iter().zip(sum)) {
                let (row, head) = place(i);
                let stat = row * shape.heads + head / hd;
                assert!(stat < self.lse_len);
                // SAFETY: as above.
                unsafe { *self.lse.ptr().add(stat) = top.mul_add(std::f32::consts::LN_2, sum.ln()) };
            }
        }
    }
}

//! Attention's backward pass on tiles: a task for each sequence and key head, which computes the gradients of its keys, its
//! values and its queries in turn.

use std::ops::Range;

use super::super::inputs::{AttentionGradient, chosen as chosen_keys, group, visible};
use super::gradient::{Gradients, Queries, gradients};
use super::pack::{columns, dense, dots, pairs, transpose_block};
use super::vector::{HeadRows, load_floats, store_floats};
use super::{BLOCK, ChosenKeys, QUERIES, ROW, Sight, aligned, padded, with_margin};
use crate::cpu::Cpu;
use crate::cpu::kv::TilePool;
use crate::cpu::parallel::SharedPtr;
use crate::cpu::tile_layout::{TileLhs, TileRhs};
use crate::{AttentionCall, Span};

/// Blocks of keys, and query tiles, whose probabilities are in memory at once.
const BLOCKS: usize = 4;
const TILES: usize = 4;

/// Computes [`attention_backward`](super::super::attention_backward) in tiles.
pub(in super::super) fn attention_backward(
    cpu: &Cpu,
    call: AttentionCall<'_>,
    kv: &TilePool,
    g: &AttentionGradient<'_>,
    d_qkv: &mut [f32],
) {
    let len = d_qkv.len();
    let to = SharedPtr(d_qkv.as_mut_ptr());
    let kv_heads = call.shape.kv_heads;
    cpu.pool.run(call.spans.len() * kv_heads, |task| {
        let span = &call.spans[task / kv_heads];
        let pass = Pass { call, kv, g, span, kv_head: task % kv_heads, to, len };
        // SAFETY: the processor has the unit of the pool, and AVX-512; tasks have disjoint rows or heads.
        unsafe { pass.run(cpu) };
    });
}

/// Gradients with respect to one key head, its values and its query heads, for one sequence.
pub(super) struct Pass<'a> {
    pub(super) call: AttentionCall<'a>,
    pub(super) kv: &'a TilePool,
    pub(super) g: &'a AttentionGradient<'a>,
    pub(super) span: &'a Span,
    pub(super) kv_head: usize,
    pub(super) to: SharedPtr<f32>,
    pub(super) len: usize,
}

/// Operands of the products, by block of 32 rows of the sequence; `width` is that of a head in tiles.
struct Operands<'a> {
    /// Values: `[32][width]` of bf16.
    values: &'a mut [u32],
    /// Transposed keys, `[width][32]` bf16.
    keys: &'a mut [u32],
    /// Queries and gradients of outputs of a query head, `[width / 2][32]` words of two columns.
    q: &'a mut [u32],
    d_out: &'a mut [u32],
    /// Queries and gradients of outputs again: `[16][width]` words of two rows.
    q_pairs: &'a mut [u32],
    d_out_pairs: &'a mut [u32],
    /// Log-sum-exps (to base 2) and deltas of a query head.
    lse: &'a mut [f32],
    delta: &'a mut [f32],
}

/// Sums, by block of 32 rows of the sequence.
struct Sums<'a> {
    /// `[width][32]`, of a query head.
    dq: &'a mut [f32],
    /// Gradient of the keys: `[32][width]`.
    dk: &'a mut [f32],
    dv: &'a mut [f32],
}

/// Results for [`BLOCKS`] blocks of keys and [`TILES`] query tiles.
struct Part<'a> {
    /// Products of keys and queries: `[32][32]`.
    s: &'a mut [f32],
    dp: &'a mut [f32],
    /// Probabilities by key: `[keys][queries]`.
    p: &'a mut [u32],
    ds: &'a mut [u32],
    /// Gradients of scores by query tile: `[keys / 2][32]` words of two keys.
    ds_words: &'a mut [u32],
}

/// Words from a key to the next in [`Part`].
const LINE: usize = TILES * QUERIES / 2;

fn cut<'a, T>(slice: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (first, rest) = std::mem::take(slice).split_at_mut(len);
    *slice = rest;
    first
}

impl Pass<'_> {
    /// # Safety
    /// The processor has the unit and the features; nobody else accesses the elements of these heads and rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn run(&self, cpu: &Cpu) {
        // SAFETY: as the caller ensures.
        unsafe { self.kv.unit().configure() };
        let wide = padded(self.call.shape.head_dim);
        let rows = self.span.rows.len();
        let tiles = rows.div_ceil(QUERIES);
        // Words of a block of an operand; of its sums there are twice as many.
        let block = 16 * wide;
        let (part_words, stats) = (3 * BLOCKS * BLOCK * LINE, tiles * QUERIES);
        let mut words = cpu.word_buffer(with_margin(6 * tiles * block + part_words));
        let mut floats = cpu.buffer(with_margin(6 * tiles * block + 2 * stats + 2 * BLOCK * QUERIES));
        let mut words = aligned(&mut words, 6 * tiles * block + part_words);
        let mut floats = aligned(&mut floats, 6 * tiles * block + 2 * stats + 2 * BLOCK * QUERIES);
        let [values, keys, q, d_out, q_pairs, d_out_pairs] = std::array::from_fn(|_| cut(&mut words, tiles * block));
        let [p, ds, ds_words] = std::array::from_fn(|_| cut(&mut words, BLOCKS * BLOCK * LINE));
        let [dq, dk, dv] = std::array::from_fn(|_| cut(&mut floats, 2 * tiles * block));
        let [s, dp] = std::array::from_fn(|_| cut(&mut floats, BLOCK * QUERIES));
        let [lse, delta] = std::array::from_fn(|_| cut(&mut floats, stats));
        let mut operands = Operands { values, keys, q, d_out, q_pairs, d_out_pairs, lse, delta };
        let mut sums = Sums { dq, dk, dv };
        let mut part = Part { s, dp, p, ds, ds_words };

        self.pack_keys(tiles, &mut operands);
        let group = group(self.call.shape);
        for member in 0..group {
            self.pack_queries(tiles, self.kv_head * group + member, &mut operands);
            for first in (0..tiles).step_by(BLOCKS) {
                self.prefetch(first * BLOCK..rows.min((first + BLOCKS) * BLOCK), member);
                let blocks = first..(first + BLOCKS).min(tiles);
                let last = self.tiles_of(blocks.end - 1, tiles).end;
                for from in (first..last).step_by(TILES) {
                    let queries = from..(from + TILES).min(last);
                    // SAFETY: `run` configured the unit.
                    unsafe { self.add(member == 0, blocks.clone(), queries, tiles, &operands, &mut part, &mut sums) };
                }
            }
            // SAFETY: the caller ensures that the elements are this task's own.
            unsafe { self.store_queries(tiles, self.kv_head * group + member, sums.dq) };
        }
        // SAFETY: as above.
        unsafe { self.store_keys(sums.dk, sums.dv) };
    }

    /// A part of the sequence's rows from column `at` on.
    fn rows<'a>(&self, data: &'a [f32], width: usize, at: usize) -> HeadRows<'a> {
        let rows = &self.span.rows;
        HeadRows::new(data, rows.start * width + at, width, rows.len(), self.call.shape.head_dim)
    }

    /// The rows of a query head, of its output and of that one's gradient.
    pub(super) fn of_head(&self, head: usize) -> [HeadRows<'_>; 3] {
        let (shape, at) = (self.call.shape, head * self.call.shape.head_dim);
        let q = self.rows(self.g.qkv, shape.qkv_width(), at);
        [q, self.rows(self.g.out, shape.q_width(), at), self.rows(self.g.d_out, shape.q_width(), at)]
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn pack_keys(&self, tiles: usize, to: &mut Operands<'_>) {
        let AttentionCall { shape, layer, .. } = self.call;
        let (hd, wide) = (shape.head_dim, padded(shape.head_dim));
        let at = shape.q_width() + shape.kv_width() + self.kv_head * hd;
        let values = self.rows(self.g.qkv, shape.qkv_width(), at);
        for i in 0..tiles {
            let part = i * 16 * wide..(i + 1) * 16 * wide;
            dense(values.part(i * BLOCK, BLOCK), wide, &mut to.values[part.clone()]);
            let (keys, _) = self.kv.tile(layer, self.kv_head, self.span.blocks[i]);
            transpose_block(keys, wide, &mut to.keys[part]);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    fn pack_queries(&self, tiles: usize, head: usize, to: &mut Operands<'_>) {
        let shape = self.call.shape;
        let wide = padded(shape.head_dim);
        let [q, out, d_out] = self.of_head(head);
        for i in 0..tiles {
            let part = i * 16 * wide..(i + 1) * 16 * wide;
            let (first, rows) = (i * QUERIES, &self.span.rows);
            columns::<2>(q.part(first, QUERIES), wide, &mut to.q[part.clone()]);
            pairs(q.part(first, QUERIES), wide, &mut to.q_pairs[part.clone()]);
            columns::<2>(d_out.part(first, QUERIES), wide, &mut to.d_out[part.clone()]);
            pairs(d_out.part(first, QUERIES), wide, &mut to.d_out_pairs[part]);
            for first in [first, first + 16] {
                let delta = dots(out.part(first, 16), d_out.part(first, 16), wide);
                store_floats(&mut to.delta[first..], delta);
                for (i, lse) in to.lse[first..first + 16].iter_mut().enumerate() {
                    // Queries that are not there have products of zero, whatever their probabilities.
                    let row = (first + i < rows.len()).then(|| (rows.start + first + i) * shape.heads + head);
                    *lse = row.map_or(0.0, |stat| self.g.lse[stat] * std::f32::consts::LOG2_E);
                }
            }
        }
    }

    /// Query tiles that see a block of keys.
    fn tiles_of(&self, block: usize, tiles: usize) -> Range<usize> {
        let last = self.call.window.map_or(usize::MAX, |window| (block * BLOCK + BLOCK - 1).saturating_add(window - 1));
        block..tiles.min(last / QUERIES + 1)
    }

    /// Blocks of keys that a query tile sees.
    fn blocks_of(&self, tile: usize) -> Range<usize> {
        visible(tile * QUERIES, self.call.window).start / BLOCK..tile + 1
    }

    /// Adds what blocks of keys and query tiles contribute to each other's gradients. `begins`: nothing was added yet to those
    /// of the keys.
    ///
    /// # Safety
    /// The processor has the unit, configured on this thread, and the features.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn add(
        &self,
        begins: bool,
        blocks: Range<usize>,
        queries: Range<usize>,
        tiles: usize,
        from: &Operands<'_>,
        part: &mut Part<'_>,
        sums: &mut Sums<'_>,
    ) {
        let wide = padded(self.call.shape.head_dim);
        let words = 16 * wide;
        for tile in queries.clone() {
            let seen = common(&blocks, &self.blocks_of(tile));
            // SAFETY: as the caller ensures.
            unsafe { self.scores(tile, seen.clone(), blocks.start, queries.start, from, part) };
            let ds = &part.ds_words[(tile - queries.start) * BLOCKS * 16 * QUERIES..][..BLOCKS * 16 * QUERIES];
            for d in (0..wide).step_by(32) {
                let at =
                    from.keys[seen.start * words + d * 16..][..seen.len().saturating_sub(1) * words + 32 * 16].as_ptr();
                let lhs = TileLhs { at: at.cast(), row_stride: ROW, step: 4 * words, second: 16 * ROW };
                let at = ds[(seen.start - blocks.start) * 16 * QUERIES..].as_ptr();
                let rhs = TileRhs { at: at.cast(), row_stride: 4 * QUERIES, step: 64 * QUERIES };
                let dq = sums.dq[2 * tile * words + d * QUERIES..][..32 * QUERIES].as_mut_ptr();
                let adds = seen.start > self.blocks_of(tile).start;
                // SAFETY: for every block that is seen, `keys` has 32 rows from `d` on and `ds` 16 rows.
                unsafe { self.kv.unit().multiply::<2, 2>(seen.len(), lhs, rhs, dq, QUERIES, adds) };
            }
        }
        for block in blocks.clone() {
            let seen = common(&queries, &self.tiles_of(block, tiles));
            if seen.is_empty() {
                continue;
            }
            let adds = !begins || seen.start > block;
            let rows = (block - blocks.start) * BLOCK * LINE + (seen.start - queries.start) * 16;
            for (rows, right, sums) in [
                (&part.p[rows..], &*from.d_out_pairs, &mut *sums.dv),
                (&part.ds[rows..], &*from.q_pairs, &mut *sums.dk),
            ] {
                let at = rows[..(BLOCK - 1) * LINE + 16 * seen.len()].as_ptr();
                let lhs = TileLhs { at: at.cast(), row_stride: 4 * LINE, step: ROW, second: 16 * 4 * LINE };
                for d in (0..wide).step_by(32) {
                    let at = right[seen.start * words..seen.end * words][d..].as_ptr();
                    let rhs = TileRhs { at: at.cast(), row_stride: 4 * wide, step: 4 * words };
                    let to = sums[2 * block * words..][..BLOCK * wide][d..].as_mut_ptr();
                    // SAFETY: `rows` has 32 rows of all query tiles that are seen, `right` 16 rows for each, and `to` 32 rows
                    // of `wide`, of which 32 columns follow `d`.
                    unsafe { self.kv.unit().multiply::<2, 2>(seen.len(), lhs, rhs, to, wide, adds) };
                }
            }
        }
    }

    /// Probabilities of a query tile and their gradients, for blocks of keys.
    ///
    /// # Safety
    /// As [`Pass::add`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
    unsafe fn scores(
        &self,
        tile: usize,
        seen: Range<usize>,
        first_block: usize,
        first_tile: usize,
        from: &Operands<'_>,
        part: &mut Part<'_>,
    ) {
        let AttentionCall { shape, layer, window, chosen, .. } = self.call;
        let wide = padded(shape.head_dim);
        let words = 16 * wide;
        let position = |c: usize, i: usize| tile * QUERIES + 16 * c + i;
        let floats = |x: &[f32], c: usize| load_floats(&x[position(c, 0)..]);
        let mut queries = Queries {
            sight: std::array::from_fn(|c| Sight::new(|i| visible(position(c, i), window))),
            lse: std::array::from_fn(|c| floats(from.lse, c)),
            delta: std::array::from_fn(|c| floats(from.delta, c)),
        };
        let last = visible(tile * QUERIES + QUERIES - 1, window).start;
        let seen_by_all = if chosen.is_some() { 0..0 } else { last..tile * QUERIES + 1 };
        let rows = &self.span.rows;
        // Lanes without a query have what the last query has.
        let word = |i: usize, block| chosen_keys(&self.call, rows.start + i.min(rows.len() - 1), block);
        for block in seen {
            let (keys, _) = self.kv.tile(layer, self.kv_head, self.span.blocks[block]);
            let values = &from.values[block * words..(block + 1) * words];
            for (left, right, to) in
                [(keys.as_ptr().cast(), &*from.q, &mut *part.s), (values.as_ptr().cast(), &*from.d_out, &mut *part.dp)]
            {
                let lhs = TileLhs { at: left, row_stride: 2 * wide, step: ROW, second: 32 * wide };
                let at = right[tile * words..(tile + 1) * words].as_ptr().cast();
                let rhs = TileRhs { at, row_stride: 4 * QUERIES, step: 64 * QUERIES };
                let to = to[..BLOCK * QUERIES].as_mut_ptr();
                // SAFETY: `left` is `[32][wide]`, `right` `[wide / 2][32]`, and `to` `[32][32]`.
                unsafe { self.kv.unit().multiply::<2, 2>(wide / 32, lhs, rhs, to, QUERIES, false) };
            }
            if chosen.is_some() {
                for (c, sight) in queries.sight.iter_mut().enumerate() {
                    sight.chosen = Some(ChosenKeys::new(block..block + 1, |i, block| word(position(c, i), block)));
                }
            }
            let first = block * BLOCK;
            let whole = first >= seen_by_all.start && first + BLOCK <= seen_by_all.end;
            let at = (block - first_block) * BLOCK * LINE + (tile - first_tile) * 16;
            let to_words = ((tile - first_tile) * BLOCKS + block - first_block) * 16 * QUERIES;
            let mut to = Gradients {
                p: &mut part.p[at..],
                ds: &mut part.ds[at..],
                stride: LINE,
                ds_words: &mut part.ds_words[to_words..],
            };
            gradients(part.s, part.dp, shape.scale * std::f32::consts::LOG2_E, &queries, first, whole, &mut to);
        }
    }
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

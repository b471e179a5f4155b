//! A block of a GEMM's output in tiles: strips of columns, in each tiles of rows, in each all of `k`, and the low-rank
//! updates of adapters while the sums are in registers.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::Cpu;
use super::super::buffer::Buffer;
use super::super::packed::NR;
use super::super::tile_layout::{PREFETCH, Segment, TILE, TILE_BYTES, TILE_K};
use super::super::tile_unit::TileUnit;
use super::additions::{Additions, add_bias_to_block};
use super::lhs::{LhsData, PackedLhs};
use super::partition::OutputBlock;
use super::rhs::GemmRhs;
use super::scratch::through_scratch;
use super::tiled_rhs::TiledRhs;
use super::tiles::{TileOut, WriteMode};
use super::update::LowRankUpdate;

/// Rows of sums that are computed together.
const ROWS: usize = 2 * TILE;
/// Maximum number of segments of a sum: `k` and the terms of low-rank updates.
const SEGMENTS: usize = 8;

/// Maximum number of steps of [`part_of`] all.
const PART_STEPS: usize = 9;
/// Fewest row tiles whose sums are staged in memory: with fewer, weights are read too seldom.
pub(super) const STAGED_TILES: usize = 3;

/// A side by side pair of matrices in tiles, `x · Wᵀ`.
#[derive(Clone, Copy)]
struct Tiled<'a> {
    x: &'a PackedLhs,
    lhs: &'a [u32],
    /// Words of a panel.
    panel: usize,
    weights: TiledRhs<'a>,
}

impl<'a> Tiled<'a> {
    fn of(x: &'a PackedLhs, w: &GemmRhs<'a>) -> Option<Self> {
        let LhsData::Tiles(lhs) = &x.data else { return None };
        let (GemmRhs::Matrix(of) | GemmRhs::Transpose(of)) = w;
        Some(Self { x, lhs, panel: of.depth * NR, weights: TiledRhs::of(w)? })
    }

    /// The terms of row tile `tile` over `positions` positions, which the left side has from `x_k` on and the right side, a strip
    /// of columns, at `b`.
    fn segment(&self, tile: usize, x_k: usize, b: *const u32, positions: usize) -> Segment {
        let row_tile = self.x.stored_k / TILE_K * TILE_BYTES;
        let a = self.lhs.as_ptr().cast::<u8>().wrapping_add(tile * row_tile + x_k / TILE_K * TILE_BYTES);
        Segment { a, second: a.wrapping_add(row_tile), b: b.cast(), steps: positions.div_ceil(TILE_K), ahead: b.cast() }
    }

    /// The strip of columns at `column` from position `k` on, where the weights are stored in tiles.
    fn stored(&self, column: usize, k: usize) -> Option<*const u32> {
        let TiledRhs::Words(words) = self.weights else { return None };
        Some(words.as_ptr().wrapping_add(column / NR * self.panel + k / 2 * NR))
    }

    /// The strip of columns at `column` at positions `k`: stored, or in `part`, which it is dequantized to.
    fn strip(&self, cpu: &Cpu, column: usize, k: &Range<usize>, part: &mut [u32]) -> *const u32 {
        self.stored(column, k.start).unwrap_or_else(|| {
            self.weights.dequantize(cpu.isa(), column, k, part);
            part.as_ptr()
        })
    }

    /// Positions of `k` that are dequantized together, of all `len`, for this many row tiles.
    fn part(&self, unit: TileUnit, tiles: usize, len: usize) -> usize {
        match self.weights {
            TiledRhs::Words(_) => len.max(1),
            TiledRhs::Blocks(_) if tiles == 1 => few_steps(unit) * TILE_K,
            TiledRhs::Blocks(_) | TiledRhs::Transpose(_) => part_of(len),
        }
    }
}

/// Steps of [`Tiled::part`] with one row tile, at most half of [`PART_STEPS`]. The processor dequantizes a short part while it
/// multiplies the one before. Tiles of sums are slower to write and read again than rows.
fn few_steps(unit: TileUnit) -> usize {
    if unit == TileUnit::Amx { 3 } else { 1 }
}

/// Positions of `k` whose weights of a strip, and as much of the left side, stay in the first-level cache.
fn part_of(len: usize) -> usize {
    let steps = len.div_ceil(TILE_K);
    steps.div_ceil(steps.div_ceil(PART_STEPS).max(1)).max(1) * TILE_K
}

/// Whether an update can be added while the sums of a GEMM over `rows` are in registers: it must cover whole tiles of
/// rows, and its terms and those of the GEMM must be few enough.
pub(super) fn can_fuse(update: &LowRankUpdate<'_>, rows: &Range<usize>) -> bool {
    let whole = |row: usize| row.is_multiple_of(TILE);
    let in_tiles = update.terms.iter().all(|(z, w)| Tiled::of(z, w).is_some());
    let ends = whole(update.rows.end) || update.rows.end == rows.end;
    in_tiles && whole(update.rows.start) && ends && update.terms.len() < SEGMENTS
}

/// `c (+)= x · Wᵀ` for one block, then the updates that [`can_fuse`], whose columns do not overlap, and the bias. With `from`, which has the
/// stride of `c`, sums begin with its elements instead. `None` without writing anything where the sides are not in tiles.
///
/// # Safety
/// `x` and `w` have the rows, columns and positions of the block and
/// passed `check_fit`, updates were checked against the GEMM; `c` points at the first element of the block, which nobody
/// else accesses.
pub(super) unsafe fn compute_tiled_block(
    cpu: &Cpu,
    x: &PackedLhs,
    w: &GemmRhs<'_>,
    block: &OutputBlock,
    additions: Additions<'_>,
    c: TileOut,
    from: Option<*const f32>,
) -> Option<()> {
    let block = TiledBlock::of(cpu, x, w, block, additions)?;
    // SAFETY: as the caller ensures.
    unsafe {
        block.unit.configure();
        if block.row_tiles().len() >= STAGED_TILES {
            block.compute_staged(cpu, from, c);
        } else {
            for i in 0..block.block.rows.len() {
                let (at, columns) = (i * c.stride, block.block.columns.len());
                from.inspect(|from| std::ptr::copy_nonoverlapping(from.add(at), c.at.add(at), columns));
            }
            block.compute_direct(cpu, c);
            if let Some(bias) = additions.bias {
                add_bias_to_block(cpu.isa(), bias, block.block, c);
            }
        }
    }
    Some(())
}

/// A block of a product and the updates of its output.
pub(super) struct TiledBlock<'a> {
    pub(super) unit: TileUnit,
    tiled: Tiled<'a>,
    block: &'a OutputBlock,
    additions: Additions<'a>,
}

impl<'a> TiledBlock<'a> {
    /// `None` where the sides are not in tiles.
    pub(super) fn of(
        cpu: &Cpu,
        x: &'a PackedLhs,
        w: &GemmRhs<'a>,
        block: &'a OutputBlock,
        additions: Additions<'a>,
    ) -> Option<Self> {
        Some(Self { unit: TileUnit::of(cpu.isa())?, tiled: Tiled::of(x, w)?, block, additions })
    }

    fn row_tiles(&self) -> Range<usize> {
        self.block.rows.start / TILE..self.block.rows.end.div_ceil(TILE)
    }

    /// Appends the terms of the updates on row tile `tile` in the strip at `column`. Returns the number of segments, and whether
    /// the next tile has the same updates: else the two are computed one by one.
    fn add_updates(&self, tile: usize, column: usize, segments: &mut [Segment; SEGMENTS]) -> (usize, bool) {
        let (mut count, mut same) = (1, true);
        for update in self.additions.updates {
            let own = update.rows.start / TILE..update.rows.end.div_ceil(TILE);
            if !update.columns().contains(&column) {
                continue;
            }
            same &= own.contains(&tile) == own.contains(&(tile + 1));
            if own.contains(&tile) {
                for (z, w) in &update.terms {
                    let Some(term) = Tiled::of(z, w) else { continue };
                    // Adapters are stored in tiles.
                    let Some(b) = term.stored(column - update.at, 0) else { continue };
                    segments[count] = term.segment(tile - own.start, 0, b, w.k());
                    count += 1;
                }
            }
        }
        (count, same)
    }

    /// Computes the block with the sums in registers over all of `k`, for few rows; weights that are dequantized come in parts.
    unsafe fn compute_direct(&self, cpu: &Cpu, c: TileOut) {
        let (unit, tiled, block, row_tiles) = (self.unit, self.tiled, self.block, self.row_tiles());
        let mut scratch = self.scratch(cpu);
        let len = block.w_k.len();
        let part = tiled.part(unit, row_tiles.len(), len);
        // SAFETY: tiles, columns and positions lie in the block, which left sides, weights and `c` hold.
        unsafe {
            for column in block.columns.clone().step_by(NR) {
                let columns = (block.columns.end - column).min(NR);
                let mut tile = row_tiles.start;
                while tile < row_tiles.end {
                    let mut segments = [tiled.segment(tile, block.x_k, std::ptr::null(), 0); SEGMENTS];
                    let (count, same) = self.add_updates(tile, column, &mut segments);
                    let pair = same && tile + 1 < row_tiles.end;
                    let height = if pair { ROWS } else { TILE };
                    let rows = (tile * TILE).max(block.rows.start)..(tile * TILE + height).min(block.rows.end);
                    let at = c.at.add((rows.start - block.rows.start) * c.stride + column - block.columns.start);
                    let out = TileOut { at, ..c };
                    let used = rows.end - tile * TILE;
                    let mut run = |out: TileOut| {
                        for from in (0..len.max(1)).step_by(part) {
                            let w_k = block.w_k.start + from..block.w_k.start + (from + part).min(len);
                            let b = tiled.strip(cpu, column, &w_k, &mut scratch);
                            segments[0] = tiled.segment(tile, block.x_k + from, b, w_k.len());
                            if let Some(stored) = tiled.stored(column, w_k.start) {
                                // Each pair of tiles of this strip prefetches a part of the next one.
                                let done = (tile - row_tiles.start) / 2 * segments[0].steps * PREFETCH;
                                segments[0].ahead = stored.cast::<u8>().wrapping_add(4 * tiled.panel + done);
                            }
                            let (last, add) = (from + part >= len, from > 0 || out.write == WriteMode::Add);
                            let segments = &segments[..if last { count } else { 1 }];
                            let from_memory = tiled.stored(column, 0).is_some() && row_tiles.len() == 1;
                            match (pair, from_memory) {
                                (true, _) => {
                                    unit.multiply_segments::<2, false>(used, segments, out.at, out.stride, add)
                                }
                                (false, true) => {
                                    unit.multiply_segments::<1, true>(used, segments, out.at, out.stride, add);
                                }
                                (false, false) => {
                                    unit.multiply_segments::<1, false>(used, segments, out.at, out.stride, add);
                                }
                            }
                        }
                    };
                    if rows.len() == height && columns == NR {
                        run(out);
                    } else {
                        through_scratch(rows.start - tile * TILE, rows.len(), columns, out, run);
                    }
                    tile += height / TILE;
                }
            }
        }
    }

    /// Memory for a part of a strip, where weights are dequantized.
    pub(super) fn scratch(&self, cpu: &Cpu) -> Buffer<u32> {
        let is_stored = self.tiled.stored(0, 0).is_some();
        cpu.word_buffer(if is_stored { 0 } else { part_of(self.block.w_k.len()) / 2 * NR })
    }

    /// Strip by strip, with the sums of a strip side by side in memory of the thread: rows of `c` are far apart.
    ///
    /// # Safety
    /// As [`compute_tiled_block`], with the unit configured.
    unsafe fn compute_staged(&self, cpu: &Cpu, from: Option<*const f32>, c: TileOut) {
        let block = self.block;
        let (mut sums, mut scratch) = (cpu.buffer(self.strip_len()), self.scratch(cpu));
        for column in block.columns.clone().step_by(NR) {
            let columns = (block.columns.end - column).min(NR);
            // SAFETY: `c` holds the block's rows and columns.
            let to = unsafe { TileOut { at: c.at.add(column - block.columns.start), ..c } };
            let own = block.rows.start % TILE * NR..(block.rows.start % TILE + block.rows.len()) * NR;
            let adds = c.write == WriteMode::Add;
            if adds {
                // SAFETY: as above, and the processor has AVX-512.
                unsafe {
                    let from = from.map_or(to.at.cast_const(), |from| from.add(column - block.columns.start));
                    load_strip(&mut sums[own.clone()], columns, from, c.stride);
                }
            }
            // SAFETY: as the caller ensures; `c` holds the block's rows and columns, and the processor has AVX-512.
            unsafe {
                self.sum_strip(cpu, column, adds, &mut sums, &mut scratch);
                self.additions.add_bias(cpu, column, &mut sums[own.clone()]);
                store_strip(&sums[own], columns, to);
            }
        }
    }

    /// Elements of the sums of a strip: those of whole tiles of rows.
    pub(super) fn strip_len(&self) -> usize {
        self.row_tiles().len() * TILE * NR
    }

    /// Computes the sums of the strip at `column`, rows of [`NR`], with the updates; with `adds` they are added to the
    /// old sums. `scratch` is that of [`TiledBlock::scratch`]. They are computed in parts of `k` that leave the strip's weights in the first-level cache for all
    /// rows.
    ///
    /// # Safety
    /// As [`compute_tiled_block`], with the unit configured; the weights have the strip.
    pub(super) unsafe fn sum_strip(&self, cpu: &Cpu, column: usize, adds: bool, sums: &mut [f32], scratch: &mut [u32]) {
        let (unit, tiled, block, row_tiles) = (self.unit, self.tiled, self.block, self.row_tiles());
        assert!(sums.len() >= self.strip_len(), "sums of too few rows");
        let part = part_of(block.w_k.len());
        let panel = 4 * tiled.panel;
        let mut prefetched = 0;
        for from in (0..block.w_k.len().max(1)).step_by(part) {
            let last = from + part >= block.w_k.len();
            let w_k = block.w_k.start + from..(block.w_k.start + from + part).min(block.w_k.end);
            let b = tiled.strip(cpu, column, &w_k, scratch);
            let mut tile = row_tiles.start;
            while tile < row_tiles.end {
                let mut first = tiled.segment(tile, block.x_k + from, b, w_k.len());
                // Each pair of tiles of this strip prefetches a part of the next one.
                if let Some(stored) = tiled.stored(column, block.w_k.start).filter(|_| prefetched < panel) {
                    first.ahead = stored.cast::<u8>().wrapping_add(panel + prefetched);
                    prefetched += first.steps * PREFETCH;
                }
                let mut segments = [first; SEGMENTS];
                let (count, same) = if last { self.add_updates(tile, column, &mut segments) } else { (1, true) };
                let pair = same && tile + 1 < row_tiles.end;
                let to = sums[(tile - row_tiles.start) * TILE * NR..].as_mut_ptr();
                let used = block.rows.end - tile * TILE;
                // SAFETY: tiles, columns and positions lie in the block, which left sides and weights hold; `sums` has
                // all of its row tiles.
                unsafe {
                    if pair {
                        unit.multiply_segments::<2, false>(used, &segments[..count], to, NR, adds || from > 0);
                    } else {
                        unit.multiply_segments::<1, false>(used, &segments[..count], to, NR, adds || from > 0);
                    }
                }
                tile += if pair { 2 } else { 1 };
            }
        }
    }
}

/// Copies `columns` columns of old values to rows of [`NR`] sums.
///
/// # Safety
/// `from` holds the rows and columns; the processor has AVX-512.
#[target_feature(enable = "avx512f")]
unsafe fn load_strip(sums: &mut [f32], columns: usize, from: *const f32, stride: usize) {
    for (i, row) in sums.as_chunks_mut::<NR>().0.iter_mut().enumerate() {
        // SAFETY: as the caller ensures.
        let from = unsafe { std::slice::from_raw_parts(from.add(i * stride), columns) };
        match from.first_chunk() {
            Some(whole) => *row = *whole,
            None => row[..columns].copy_from_slice(from),
        }
    }
}

/// Writes the first `columns` of each row of [`NR`] sums.
///
/// # Safety
/// `out` holds the rows and columns; the processor has AVX-512.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store_strip(sums: &[f32], columns: usize, out: TileOut) {
    let TileOut { at, stride, write } = out;
    let whole_lines = at.addr().is_multiple_of(4 * TILE) && stride.is_multiple_of(TILE);
    // SAFETY: as the caller ensures; streamed lines are aligned, as checked.
    unsafe {
        if write == WriteMode::Stream && columns == NR && whole_lines {
            for (i, row) in sums.as_chunks::<NR>().0.iter().enumerate() {
                let to = at.add(i * stride);
                _mm512_stream_ps(to, _mm512_loadu_ps(row.as_ptr()));
                _mm512_stream_ps(to.add(TILE), _mm512_loadu_ps(row.as_ptr().add(TILE)));
            }
            // Streamed stores are not ordered with what tells other threads that the block is done.
            _mm_sfence();
            return;
        }
        for (i, row) in sums.as_chunks::<NR>().0.iter().enumerate() {
            let to = std::slice::from_raw_parts_mut(at.add(i * stride), columns);
            match to.first_chunk_mut() {
                Some(whole) => *whole = *row,
                None => to.copy_from_slice(&row[..columns]),
            }
        }
    }
}

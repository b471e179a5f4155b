//! Packs panels: [`NR`] rows of f32 side by side, or columns, rounded to pairs of bf16 or as they are.

use std::ops::Range;

use super::elements::{NR, bf16_bits};
use super::transpose::{Word, transpose};
use crate::cpu::buffer::Buffer;
use crate::cpu::vexp::multiversion;
use crate::cpu::{Cpu, Isa};

/// Positions of `k` that are packed together: rows are read in pieces that hardware prefetchers follow, and the pieces of a panel
/// stay in the second-level cache.
const BLOCK: usize = 2048;
/// Elements between the rows of a block, which would compete for the same sets of the first-level cache.
const PADDING: usize = 16;

/// An element of a panel.
pub(super) trait Element: Word + Default {
    /// Positions of `k` in each.
    const POSITIONS: usize;

    /// Elements with anything in them.
    fn buffer(cpu: &Cpu, len: usize) -> Buffer<Self>;

    /// Writes `positions` of each row to a row of `block`, `stride` apart; zeros beyond the row's end.
    fn read_rows(isa: Isa, rows: &[&[f32]], positions: Range<usize>, block: &mut [Self], stride: usize);
}

impl Element for u32 {
    const POSITIONS: usize = 2;

    fn buffer(cpu: &Cpu, len: usize) -> Buffer<u32> {
        cpu.word_buffer(len)
    }

    fn read_rows(isa: Isa, rows: &[&[f32]], positions: Range<usize>, block: &mut [u32], stride: usize) {
        round_rows(isa, rows, positions, block, stride);
    }
}

impl Element for f32 {
    const POSITIONS: usize = 1;

    fn buffer(cpu: &Cpu, len: usize) -> Buffer<f32> {
        cpu.buffer(len)
    }

    fn read_rows(_: Isa, rows: &[&[f32]], positions: Range<usize>, block: &mut [f32], stride: usize) {
        for (row, out) in rows.iter().zip(block.chunks_exact_mut(stride)) {
            let row = within(row, &positions);
            let (own, beyond) = out[..positions.len()].split_at_mut(row.len());
            own.copy_from_slice(row);
            beyond.fill(0.0);
        }
    }
}

/// The part of `positions` that the row has.
#[inline(always)]
fn within<'a>(row: &'a [f32], positions: &Range<usize>) -> &'a [f32] {
    &row[positions.start.min(row.len())..positions.end.min(row.len())]
}

#[inline(always)]
fn pair(low: f32, high: f32) -> u32 {
    u32::from(bf16_bits(low)) | u32::from(bf16_bits(high)) << 16
}

multiversion! {
    /// [`Element::read_rows`] with elements rounded in pairs; a row's last element may be unpaired.
    fn round_rows(rows: &[&[f32]], positions: Range<usize>, block: &mut [u32], stride: usize) {
        let width = positions.len().div_ceil(2);
        for (row, out) in rows.iter().zip(block.chunks_exact_mut(stride)) {
            let (pairs, rest) = within(row, &positions).as_chunks::<2>();
            let (own, beyond) = out[..width].split_at_mut(pairs.len());
            for (out, [low, high]) in own.iter_mut().zip(pairs) {
                *out = pair(*low, *high);
            }
            beyond.fill(0);
            if let ([last], Some(out)) = (rest, beyond.first_mut()) {
                *out = pair(*last, 0.0);
            }
        }
    }
}

multiversion! {
    /// Packs columns `from..from + NR` of `x[_, stride]`: rows in pairs.
    pub(super) fn round_columns(x: &[f32], stride: usize, from: usize, words: &mut [u32]) {
        let columns = (stride - from).min(NR);
        for (rows, words) in x.chunks(2 * stride).zip(words.chunks_exact_mut(NR)) {
            let (low, high) = rows.split_at(stride);
            let low = &low[from..from + columns];
            // The last row may be unpaired.
            let Some(high) = high.get(from..from + columns) else {
                words.iter_mut().zip(low).for_each(|(word, low)| *word = pair(*low, 0.0));
                break;
            };
            for ((word, low), high) in words.iter_mut().zip(low).zip(high) {
                *word = pair(*low, *high);
            }
        }
    }
}

multiversion! {
    /// `words[i]` are two columns of row `i`. Writes pairs of rows: of the first column to `first`, of the second to `second`.
    pub(super) fn pair_rows(words: &[u32; NR], first: &mut [u32; NR / 2], second: &mut [u32; NR / 2]) {
        for (([a, b], first), second) in words.as_chunks::<2>().0.iter().zip(first).zip(second) {
            *first = (a & 0xffff) | b << 16;
            *second = a >> 16 | b & 0xffff_0000;
        }
    }
}

/// Packs a panel: positions of at most [`NR`] rows side by side.
pub(super) fn pack_panel<T: Element>(cpu: &Cpu, rows: &[&[f32]], panel: &mut [T]) {
    let width = (panel.len() / NR).min(BLOCK / T::POSITIONS);
    let stride = width + PADDING;
    let mut block = T::buffer(cpu, NR * stride);
    // Rows that the panel lacks.
    block[rows.len() * stride..].fill(T::default());
    for (i, panel) in panel.chunks_mut(width * NR).enumerate() {
        let (from, depth) = (i * width, panel.len() / NR);
        let positions = from * T::POSITIONS..(from + depth) * T::POSITIONS;
        T::read_rows(cpu.isa(), rows, positions, &mut block, stride);
        transpose(cpu.isa(), NR, depth, &block, stride, panel, NR);
    }
}

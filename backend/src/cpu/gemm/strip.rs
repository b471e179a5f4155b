//! A strip of weights in the form that a kernel reads.

use super::super::buffer::Buffer;
use super::super::packed::{BlockPanels, NR, PackedData};
use super::super::vexp::multiversion;
use super::super::{Cpu, Isa};
use super::rhs::GemmRhs;
use super::tiles::{RhsF32, STRIP};
use super::transpose::transpose_strip;
use crate::Dtype;
use crate::blocks::BLOCK;

/// Weights of [`STRIP`] columns, or of [`NR`] for kernels of that width, along `k`.
#[derive(Clone, Copy)]
pub(super) enum RhsStrip {
    /// f32, as stored or widened.
    F32(RhsF32),
    /// bf16 pairs as stored: rows of [`NR`] words.
    Words(*const u32),
}

/// The part of a panel that blocks were dequantized to, for all strips of the panel; empty of other weights.
pub(super) struct PanelPart {
    words: Buffer<u32>,
    values: Buffer<f32>,
    /// Panel and first position.
    holds: Option<(usize, usize)>,
}

impl PanelPart {
    /// A part of at most `positions` positions.
    pub(super) fn new(cpu: &Cpu, w: &GemmRhs<'_>, positions: usize) -> Self {
        let is_in_blocks = matches!(w, GemmRhs::Matrix(w) if w.blocks().is_some());
        let of =
            |dtype: Dtype| if is_in_blocks && w.dtype() == dtype { positions.next_multiple_of(BLOCK) * NR } else { 0 };
        let (words, values) = (cpu.word_buffer(of(Dtype::Bf16) / 2), cpu.buffer(of(Dtype::F32)));
        Self { words, values, holds: None }
    }

    /// Dequantizes `steps` positions from `k` on, unless it holds them.
    fn hold(&mut self, isa: Isa, panels: &BlockPanels, panel: usize, k: usize, steps: usize) {
        if self.holds == Some((panel, k)) {
            return;
        }
        let blocks = k / BLOCK..(k + steps).div_ceil(BLOCK);
        if self.words.is_empty() {
            panels.values(isa, panel, blocks, &mut self.values);
        } else {
            panels.words(isa, panel, blocks, &mut self.words);
        }
        self.holds = Some((panel, k));
    }
}

/// The weights from column `column` and position `k` on. Where `buffer` is not empty, `steps` positions are widened, or
/// transposed, into it; else the strip points into the weights, or into `part`, which they are dequantized to.
pub(super) fn rhs_strip(
    isa: Isa,
    w: &GemmRhs<'_>,
    column: usize,
    k: usize,
    steps: usize,
    buffer: &mut [f32],
    part: &mut PanelPart,
) -> RhsStrip {
    let w = match w {
        GemmRhs::Matrix(w) => w,
        GemmRhs::Transpose(w) => {
            transpose_strip(isa, w, column, k, &mut buffer[..steps * STRIP]);
            return RhsStrip::F32(RhsF32 { at: buffer.as_ptr(), stride: STRIP });
        }
    };
    let (panel, offset) = (column / NR, column % NR);
    match &w.data {
        PackedData::F32(data) => {
            RhsStrip::F32(RhsF32 { at: data[(panel * w.depth + k) * NR + offset..].as_ptr(), stride: NR })
        }
        PackedData::Bf16(data) => words_strip(isa, &data[(panel * w.depth + k / 2) * NR + offset..], steps, buffer),
        PackedData::Blocks(panels) => {
            part.hold(isa, panels, panel, k, steps);
            if part.words.is_empty() {
                return RhsStrip::F32(RhsF32 { at: part.values[offset..].as_ptr(), stride: NR });
            }
            words_strip(isa, &part.words[offset..], steps, buffer)
        }
    }
}

/// Rows of words, or these widened to `buffer`.
fn words_strip(isa: Isa, words: &[u32], steps: usize, buffer: &mut [f32]) -> RhsStrip {
    if buffer.is_empty() {
        return RhsStrip::Words(words.as_ptr());
    }
    widen_strip(isa, words, &mut buffer[..steps * STRIP]);
    RhsStrip::F32(RhsF32 { at: buffer.as_ptr(), stride: STRIP })
}

multiversion! {
    /// Rows of bf16 pairs as two rows of f32 each.
    fn widen_strip(words: &[u32], out: &mut [f32]) {
        for (words, out) in words.chunks(NR).zip(out.chunks_exact_mut(2 * STRIP)) {
            let (even, odd) = out.split_at_mut(STRIP);
            for ((word, even), odd) in words[..STRIP].iter().zip(even).zip(odd) {
                *even = f32::from_bits(word << 16);
                *odd = f32::from_bits(word & 0xffff_0000);
            }
        }
    }
}

//! A strip of weights in the form that a kernel reads.

use super::super::Isa;
use super::super::packed::{NR, PackedData};
use super::super::vexp::multiversion;
use super::rhs::GemmRhs;
use super::tiles::{RhsF32, STRIP};
use super::transpose::transpose_strip;

/// Weights of [`STRIP`] columns, or of [`NR`] for kernels of that width, along `k`.
#[derive(Clone, Copy)]
pub(super) enum RhsStrip {
    /// f32, as stored or widened.
    F32(RhsF32),
    /// bf16 pairs as stored: rows of [`NR`] words.
    Words(*const u32),
}

/// The weights from column `column` and position `k` on. Where `buffer` is not empty, `steps` positions are widened, or
/// transposed, into it; else the strip points into the weights.
pub(super) fn rhs_strip(
    isa: Isa,
    w: &GemmRhs<'_>,
    column: usize,
    k: usize,
    steps: usize,
    buffer: &mut [f32],
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
        PackedData::Bf16(data) => {
            let words = &data[(panel * w.depth + k / 2) * NR + offset..];
            if buffer.is_empty() {
                return RhsStrip::Words(words.as_ptr());
            }
            widen_strip(isa, words, &mut buffer[..steps * STRIP]);
            RhsStrip::F32(RhsF32 { at: buffer.as_ptr(), stride: STRIP })
        }
    }
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

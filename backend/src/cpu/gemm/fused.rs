//! Products of a few rows with weights in blocks, which are dequantized in registers (AVX2): decoding reads each weight once.
//!
//! A sum is one chain of multiply-adds along `k`, as in other blocks of a GEMM, of the same elements but for the sign of zeros.
//! That sign is lost in a sum unless it is a negative zero so far. Sums begin with other values, and become no negative zeros
//! where no product is small enough to round to zero: products are multiples of 2⁻¹⁴⁹, as [`PackedLhs::has_no_tiny`] says.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::Cpu;
use super::super::packed::{FusedPanel, NR, StepLayout, VECTORS, by_format, factors, pair, prefetch_ahead};
use super::lhs::{LhsData, PackedLhs};
use super::partition::OutputBlock;
use super::rhs::GemmRhs;
use super::tiles::{MR_F32, TileOut, WriteMode, through_edge};
use crate::Dtype;
use crate::blocks::{BLOCK, BlockFormat};

/// Maximum number of rows, whose sums are in registers.
const ROWS: usize = 3;

/// `c (+)= x · Wᵀ` for one block of few rows; `None` without writing anything where another kernel has to compute it.
///
/// # Safety
/// As [`compute_block`](super::block::compute_block).
pub(super) unsafe fn compute_fused_block(
    cpu: &Cpu,
    x: &PackedLhs,
    w: &GemmRhs<'_>,
    block: &OutputBlock,
    c: TileOut,
) -> Option<()> {
    let (GemmRhs::Matrix(w), LhsData::F32(lhs)) = (w, &x.data) else { return None };
    let panels = w.blocks().filter(|panels| panels.dtype() == Dtype::Bf16)?;
    let steps = block.w_k.start / BLOCK..block.w_k.end / BLOCK;
    let is_few = block.rows.len() <= ROWS && !block.rows.is_empty() && !steps.is_empty();
    let is_whole = block.w_k.start.is_multiple_of(BLOCK) && block.w_k.end.is_multiple_of(BLOCK);
    if !is_few || !is_whole || !cpu.isa().has_avx2() || !is_x86_feature_detected!("f16c") || !x.has_no_tiny(cpu.isa()) {
        return None;
    }
    let columns = block.columns.clone().step_by(NR);
    let fused: Option<Vec<FusedPanel<'_>>> = columns.clone().map(|column| panels.fused(column / NR)).collect();
    // SAFETY: `c` holds the block.
    if c.write == WriteMode::Add && unsafe { has_negative_zeros(block, c) } {
        return None;
    }
    let mut edge = [0f32; MR_F32 * NR];
    for (column, panel) in columns.zip(fused?) {
        let width = (block.columns.end - column).min(NR);
        let mut row = block.rows.start;
        while row < block.rows.end {
            let height = (MR_F32 - row % MR_F32).min(block.rows.end - row);
            // SAFETY: row, columns and steps lie in the block, which left side, weights and `c` hold; the processor has the
            // instructions.
            unsafe {
                let at = c.at.add((row - block.rows.start) * c.stride + column - block.columns.start);
                let a = lhs.as_ptr().add((row / MR_F32 * x.stored_k + block.x_k) * MR_F32 + row % MR_F32);
                let run = |out: TileOut| {
                    by_format!(panel.format, multiply(height, panel.bytes, steps.clone(), a, out));
                };
                let out = TileOut { at, ..c };
                if width == NR { run(out) } else { through_edge(&mut edge, NR, height, width, out, run) }
            }
            row += height;
        }
    }
    Some(())
}

/// Whether the block's old values have negative zeros.
///
/// # Safety
/// `c` holds the block.
unsafe fn has_negative_zeros(block: &OutputBlock, c: TileOut) -> bool {
    (0..block.rows.len()).any(|row| {
        // SAFETY: as the caller ensures.
        let row = unsafe { std::slice::from_raw_parts(c.at.add(row * c.stride), block.columns.len()) };
        row.iter().fold(false, |found, x| found | (x.to_bits() == (-0f32).to_bits()))
    })
}

/// Rows of a height that is only known at run time.
///
/// # Safety
/// As [`multiply_rows`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn multiply<const FORMAT: usize>(height: usize, panel: &[u8], steps: Range<usize>, a: *const f32, c: TileOut) {
    // SAFETY: as the caller ensures.
    unsafe {
        match height {
            1 => multiply_rows::<FORMAT, 1>(panel, steps, a, c),
            2 => multiply_rows::<FORMAT, 2>(panel, steps, a, c),
            3 => multiply_rows::<FORMAT, 3>(panel, steps, a, c),
            _ => {}
        }
    }
}

/// `c[M, 32] (+)= a · b` over steps of a panel of one format.
///
/// # Safety
/// The processor has AVX2, FMA and F16C; the panel has the steps, with finite numbers; `a` has as many positions of [`MR_F32`]
/// rows, of which `M` are used; `c` has `M` rows.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn multiply_rows<const FORMAT: usize, const M: usize>(
    panel: &[u8],
    steps: Range<usize>,
    a: *const f32,
    c: TileOut,
) {
    let layout = const { StepLayout::of_format(BlockFormat::ALL[FORMAT]) };
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; M];
    // SAFETY: bounds by the caller; all accesses are unaligned loads and stores.
    unsafe {
        if c.write == WriteMode::Add {
            for (i, sums) in sums.iter_mut().enumerate() {
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = _mm256_loadu_ps(c.at.add(i * c.stride + 8 * v));
                }
            }
        }
        for (i, step) in steps.enumerate() {
            let (step, a) = (layout.step(panel, step), a.add(i * BLOCK * MR_F32));
            let own = step.own.as_ptr();
            prefetch_ahead::<FORMAT>(own);
            let of = factors::<FORMAT>(step.numbers.as_ptr(), own);
            for p in 0..BLOCK / 2 {
                let a = a.add(2 * p * MR_F32);
                for v in 0..VECTORS {
                    let [even, odd] = pair::<FORMAT, false>(own, &of, p, v);
                    for (i, sums) in sums.iter_mut().enumerate() {
                        sums[v] = _mm256_fmadd_ps(_mm256_broadcast_ss(&*a.add(i)), even, sums[v]);
                        sums[v] = _mm256_fmadd_ps(_mm256_broadcast_ss(&*a.add(MR_F32 + i)), odd, sums[v]);
                    }
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (v, sum) in sums.iter().enumerate() {
                _mm256_storeu_ps(c.at.add(i * c.stride + 8 * v), *sum);
            }
        }
    }
}

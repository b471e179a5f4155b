//! A block of a GEMM's output on the calling thread: passes along `k`, strips of columns, tiles of rows.

use super::super::packed::NR;
use super::super::{Cpu, Isa};
use super::additions::Additions;
use super::dispatch::f32_tile;
#[cfg(target_arch = "x86_64")]
use super::fused::compute_fused_block;
use super::lhs::{LhsData, PackedLhs};
use super::partition::{FEW_ROWS, OutputBlock};
use super::rhs::GemmRhs;
use super::strip::{PanelPart, rhs_strip};
#[cfg(target_arch = "x86_64")]
use super::tiled::compute_tiled_block;
use super::tiles::{MR_F32, STRIP, TileOut, WriteMode, through_edge};
use super::transpose::GROUP;
use crate::Dtype;
use crate::blocks::BLOCK;

/// Maximum number of positions of `k` in one pass. Deep passes pay: the output is read and written once per pass.
const DEPTH: usize = 768;
/// The same for few rows by weights in blocks, whose dequantized parts stay in the first-level cache.
const DEPTH_OF_BLOCKS: usize = 256;

/// Computes `c (+)= x · Wᵀ` for one block in the mode `c.write`. With tiles it also makes the additions. Each
/// output element is one chain of multiply-adds over `k` in order.
///
/// # Safety
/// The left side and the weights have the rows, columns and positions of the block and passed `check_fit`; `c` points
/// at the first element of the block, which is not accessed elsewhere.
pub(super) unsafe fn compute_block(
    cpu: &Cpu,
    x: &PackedLhs,
    w: &GemmRhs<'_>,
    block: &OutputBlock,
    additions: Additions<'_>,
    c: TileOut,
) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as the caller ensures; left sides are tiles nowhere but with AVX-512 BF16.
    if unsafe { compute_tiled_block(cpu, x, w, block, additions, c, None) }.is_some() {
        return;
    }
    debug_assert!(additions.updates.is_empty() && additions.bias.is_none(), "other left sides get these apart");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as the caller ensures.
    if unsafe { compute_fused_block(cpu, x, w, block, c) }.is_some() {
        return;
    }
    // `check_fit` refuses tiles with weights that were not computed above.
    let LhsData::F32(data) = &x.data else { return };
    let isa = cpu.isa();
    let tile = x.tile_rows();
    let (width, buffered) = match (w, w.dtype()) {
        (GemmRhs::Transpose(_), _) => (STRIP, true),
        // With few rows, each weight is used too seldom to be widened beforehand.
        (_, Dtype::Bf16) if isa != Isa::Portable && block.rows.len() <= 3 => (NR, false),
        (_, Dtype::Bf16) => (STRIP, isa == Isa::Portable || block.rows.len() > FEW_ROWS),
        (_, Dtype::F32) => (STRIP, false),
    };
    let depth = match (w, w.dtype()) {
        // Weights in bf16 are stored in pairs.
        (GemmRhs::Matrix(_), Dtype::Bf16) => block.w_k.len().next_multiple_of(2),
        _ => block.w_k.len(),
    };
    // Passes begin with blocks.
    let granule = if w.blocks().is_some() { BLOCK } else { GROUP };
    let is_in_few_rows = w.blocks().is_some() && block.rows.len() <= FEW_ROWS;
    let most = if is_in_few_rows { DEPTH_OF_BLOCKS } else { DEPTH };
    let pass = depth.div_ceil(depth.div_ceil(most).max(1)).next_multiple_of(granule);
    let mut part = PanelPart::new(cpu, w, pass.min(depth));
    let mut buffer = cpu.buffer(if buffered { pass.min(depth) * STRIP } else { 0 });
    let mut edge = [0f32; MR_F32 * NR];
    for start in (0..depth).step_by(pass.max(1)) {
        let steps = (depth - start).min(pass);
        let write = if start > 0 { WriteMode::Add } else { c.write };
        for column in block.columns.clone().step_by(width) {
            let columns = (block.columns.end - column).min(width);
            let strip = rhs_strip(isa, w, column, block.w_k.start + start, steps, &mut buffer, &mut part);
            let mut row = block.rows.start;
            while row < block.rows.end {
                let lane = row % tile;
                let height = (tile - lane).min(block.rows.end - row);
                // SAFETY: row, columns and steps lie in the block, which left side, weights and `c` hold.
                unsafe {
                    let at = c.at.add((row - block.rows.start) * c.stride + column - block.columns.start);
                    let direct = TileOut { at, stride: c.stride, write };
                    let first = (row / tile * x.stored_k + block.x_k + start) * tile;
                    let run =
                        |out: TileOut| f32_tile(isa, height, width, steps, data.as_ptr().add(first + lane), strip, out);
                    if columns == width {
                        run(direct);
                    } else {
                        through_edge(&mut edge, width, height, columns, direct, run);
                    }
                }
                row += height;
            }
        }
    }
}

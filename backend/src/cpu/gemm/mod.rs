//! GEMMs. Each output element is one chain of multiply-adds over `k` in order, starting from zero or from the element's
//! old value, whatever the tile height and however rows, columns and `k` are split: the bits of a row depend only on
//! that row.
//!
//! - [`matmul`]: rows by packed weights, with the low-rank updates of adapters ([`update`], [`low_rank`]). A [`block`]
//!   of the output ([`partition`]) is a task; it reads the left side ([`lhs`]) in tiles and the weights ([`rhs`]) in
//!   strips ([`strip`], [`transpose`]), and [`dispatch`] picks the kernel ([`tiles`]). Left sides in bf16 consist of
//!   tiles: [`tiled`] computes a block of them, [`gated`] a block of gate and up with their activation,
//!   and [`activated`] one whose activation is all that is stored;
//! - [`gradient`]: `leftᵀ · right`, for gradients of weights ([`outer`]). With bf16 weights on a processor that
//!   multiplies bf16, [`tiled_gradient`] computes it from rows that may have been packed before ([`sides`]);
//! - [`strided`]: small plain f32 matrices on the calling thread, for attention.
//!
//! Weights that stay in the blocks of a file are dequantized while a part of a panel, or of its transpose, is in the cache, to
//! the elements that packing them as bf16 or f32 would give: results have the same bits. With AVX2 and few rows they are
//! dequantized in registers ([`fused`]).
//!
//! With bf16 weights, the left side is rounded to bf16 where the processor multiplies bf16; elsewhere it stays f32, which
//! costs nothing there.

#[cfg(target_arch = "x86_64")]
mod activated;
mod additions;
mod block;
mod dispatch;
#[cfg(target_arch = "x86_64")]
mod fused;
#[cfg(target_arch = "x86_64")]
mod gated;
mod gradient;
mod lhs;
mod low_rank;
mod matmul;
mod outer;
mod partition;
mod rhs;
mod rows_view;
#[cfg(target_arch = "x86_64")]
mod scratch;
mod sides;
mod strided;
mod strip;
#[cfg(target_arch = "x86_64")]
mod tiled;
#[cfg(target_arch = "x86_64")]
mod tiled_gradient;
#[cfg(target_arch = "x86_64")]
mod tiled_rhs;
mod tiles;
mod transpose;
mod update;

#[cfg(target_arch = "x86_64")]
pub(super) use activated::{ActivatedGemm, run_activated_gemm};
#[cfg(target_arch = "x86_64")]
pub(super) use gated::run_gated_gemm;
pub(super) use gradient::{add_weight_gradient, add_weight_gradients, uses_tiles};
pub(super) use lhs::PackedLhs;
pub(super) use low_rank::add_low_rank;
pub(super) use matmul::{Gemm, SumStart, matmul, matmul_block, run_gemms};
pub(super) use outer::{GradientOut, GradientSide, PackedPart, WeightGradient, has_rows};
pub(super) use rhs::GemmRhs;
pub(super) use rows_view::RowsView;
pub(super) use sides::{PackedSide, pack_between, pack_input, pack_output_gradient};
pub(super) use strided::{Extents, Strided, strided};
pub(super) use update::LowRankUpdate;

#[cfg(test)]
mod bias_tests;
#[cfg(test)]
mod block_tests;
#[cfg(test)]
mod tests;

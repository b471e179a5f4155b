//! GEMMs. Each output element is one chain of multiply-adds over `k` in order, starting from zero or from the element's old
//! value, whatever the tile height and however rows, columns and `k` are split: the bits of a row depend on that row alone.
//!
//! - [`matmul`]: rows by packed weights, with the low-rank updates of adapters ([`low_rank`]). A [`block`] of the output is
//!   a task; it reads the left side ([`lhs`]) in tiles and the weights ([`rhs`]) in strips ([`strip`], [`transpose`]), and
//!   [`dispatch`] picks the kernel ([`tiles`]);
//! - [`gradient`]: `leftᵀ · right`, for gradients of weights;
//! - [`strided`]: small plain f32 matrices on the calling thread, for attention.
//!
//! With bf16 weights, the left side is rounded to bf16 where the processor multiplies bf16; elsewhere it stays f32, which
//! costs nothing there.

mod block;
mod dispatch;
mod gradient;
mod lhs;
mod low_rank;
mod matmul;
mod partition;
mod rhs;
mod strided;
mod strip;
mod tiles;
mod transpose;

pub(super) use gradient::{RowsView, WeightGradient, add_weight_gradient, add_weight_gradients};
pub(super) use lhs::PackedLhs;
pub(super) use low_rank::{LowRankUpdate, add_low_rank};
pub(super) use matmul::{Gemm, matmul, matmul_block, run_gemms};
pub(super) use rhs::GemmRhs;
pub(super) use strided::{Extents, Strided, strided};

#[cfg(test)]
mod tests;

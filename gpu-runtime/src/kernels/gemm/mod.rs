//! Matrix products. Each output element is one chain of multiply-adds over `k` in order, starting from
//! zero or from the element's old value, whatever the tile height and however rows, columns and `k` are
//! split: the bits of a row depend on that row alone.
//!
//! - [`packed`](matmul): rows by weights that were packed once, with the low-rank terms of adapters beside them;
//! - [`gradient`](add_gradients): `leftᵀ · right`, for weight gradients;
//! - [`strided`]: small plain f32 products on the calling thread, for attention.
//!
//! With bf16 weights, inputs are rounded to bf16 where the processor multiplies bf16, and kept in f32 where it
//! does not: there it costs nothing.

mod factor;
mod gradient;
mod operand;
mod product;
mod strided;
mod tiles;

pub use factor::Factor;
pub use gradient::{Gradient, Rows, add_gradient_block, add_gradients};
pub use operand::Operand;
pub use product::{LowRank, Product, add_low_rank, matmul, matmul_block, run_products};
pub use strided::{Extents, Strided, strided};

#[cfg(test)]
mod tests;

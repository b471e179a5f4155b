//! The backend that runs on the processor. Every kernel reduces each output element in an order that depends only on
//! the element's own row (batch invariance): tiles of any height run the same chain of fused multiply-adds, and threads
//! split rows, columns or heads, never a sum.
#![expect(
    unsafe_code,
    reason = "SIMD intrinsics and disjoint writes from several threads; each block says why it is sound"
)]

mod aligned;
mod amx;
mod attention;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocking;
mod buffer;
mod elementwise;
mod embedding;
mod family;
mod gated;
mod gemm;
mod head;
mod indexer;
mod isa;
mod kv;
mod latent;
mod linear;
mod matrix;
mod meter;
mod norm;
mod operands;
mod ops;
mod optimizer;
mod packed;
mod parallel;
mod param_sum;
mod passes;
mod peaks;
mod recurrent;
mod rope;
mod rotation;
mod rows;
mod sampling;
mod scalar_head;
mod scale;
mod stream;
mod thread_pool;
mod tile_layout;
#[cfg(target_arch = "x86_64")]
mod tile_unit;
mod vexp;
mod vision;
mod vocabulary;

#[cfg(test)]
mod tests;

use std::sync::Arc;

#[doc(hidden)]
pub use amx::assume_emulated_amx;
pub use blocking::Blocking;
use buffer::{Buffer, BufferPool, BufferUsage};
pub use isa::{Isa, UnknownIsa};
use meter::GemmMeter;
pub use meter::GemmStats;
pub use peaks::Peaks;
use thread_pool::ThreadPool;

use super::Dtype;

/// The processor: threads, an instruction set, and pools of buffers.
pub struct Cpu {
    pool: ThreadPool,
    isa: Isa,
    blocking: Blocking,
    dtype: Dtype,
    usage: Arc<BufferUsage>,
    meter: GemmMeter,
    floats: BufferPool<f32>,
    words: BufferPool<u32>,
}

impl Cpu {
    /// Returns a processor with `threads` threads (0: one per core) and the best instruction set.
    pub fn new(threads: usize) -> Self {
        Self::with_isa(threads, Isa::detect())
    }

    /// Like [`Cpu::new`], but with the best available instruction set that is not above `isa`.
    pub fn with_isa(threads: usize, isa: Isa) -> Self {
        let threads =
            if threads == 0 { std::thread::available_parallelism().map_or(1, std::num::NonZero::get) } else { threads };
        // The soundness of kernels rests on this: `isa` is always one that the processor has.
        let isa = if Isa::available().contains(&isa) { isa } else { Isa::detect() };
        let usage = Arc::new(BufferUsage::default());
        let (floats, words) = (BufferPool::new(Arc::clone(&usage)), BufferPool::new(Arc::clone(&usage)));
        Self {
            pool: ThreadPool::new(threads),
            isa,
            blocking: Blocking::detect(isa),
            dtype: Dtype::Bf16,
            usage,
            meter: GemmMeter::default(),
            floats,
            words,
        }
    }

    /// Sets the type of base weights; the default is bf16.
    pub fn with_dtype(self, dtype: Dtype) -> Self {
        Self { dtype, ..self }
    }

    /// Returns the cost of GEMMs since the start, on all threads.
    pub fn gemm_stats(&self) -> GemmStats {
        self.meter.read()
    }

    /// A buffer with anything in it: for results whose every element is written.
    fn buffer(&self, len: usize) -> Buffer<f32> {
        self.floats.alloc(len)
    }

    fn zero_buffer(&self, len: usize) -> Buffer<f32> {
        self.floats.zeros(len)
    }

    /// A buffer of pairs of bf16; see [`Cpu::buffer`].
    fn word_buffer(&self, len: usize) -> Buffer<u32> {
        self.words.alloc(len)
    }

    /// Type to which the left side of a GEMM is rounded, given the type of its weights.
    fn input_type(&self, weights: Dtype) -> Dtype {
        if self.isa.multiplies_bf16() { weights } else { Dtype::F32 }
    }

    /// Returns the instruction set, which the processor always has.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

//! CPU kernels. Every kernel reduces each output element in an order that depends on its own row
//! alone (batch invariance): tiles of any height run the same chain of fused multiply-adds, and
//! threads split rows, columns or heads, never a sum.
#![expect(
    unsafe_code,
    reason = "SIMD intrinsics and disjoint writes from several threads; each block says why it is sound"
)]
#![expect(clippy::too_many_arguments, reason = "kernels take operands with extents and strides, as BLAS does")]

pub mod attention;
pub mod buffer;
pub mod elementwise;
pub mod gemm;
pub mod head;
mod kv;
pub mod meter;
pub mod norm;
pub mod packed;
pub mod pool;
pub mod rope;
pub mod vexp;

use std::sync::Arc;

use buffer::{Buffer, Buffers, Usage};
use meter::Meter;
use packed::Dtype;
use pool::Pool;

/// The instruction sets that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 with BF16 dot products; everything else as `Avx2`.
    Avx512Bf16,
    /// AVX2 and FMA.
    Avx2,
    /// Plain Rust.
    Portable,
}

impl Isa {
    /// The best set that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw") {
                return Self::Avx512Bf16;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Sets that this processor can run, best first.
    pub fn available() -> Vec<Self> {
        match Self::detect() {
            Self::Avx512Bf16 => vec![Self::Avx512Bf16, Self::Avx2, Self::Portable],
            Self::Avx2 => vec![Self::Avx2, Self::Portable],
            Self::Portable => vec![Self::Portable],
        }
    }

    /// For logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512Bf16 => "avx512-bf16",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }
}

/// The processor as kernels see it: threads and an instruction set.
pub struct Cpu {
    /// The threads.
    pub pool: Pool,
    isa: Isa,
    /// What of its buffers is on loan.
    pub usage: Arc<Usage>,
    /// What its products took.
    pub meter: Meter,
    floats: Buffers<f32>,
    words: Buffers<u32>,
}

impl Cpu {
    /// `threads` threads (0: one per core) and the best instruction set.
    pub fn new(threads: usize) -> Self {
        Self::with_isa(threads, Isa::detect())
    }

    /// As [`Cpu::new`], with the best available set that is not above `isa`.
    pub fn with_isa(threads: usize, isa: Isa) -> Self {
        let threads =
            if threads == 0 { std::thread::available_parallelism().map_or(1, std::num::NonZero::get) } else { threads };
        // Kernels rely on this check: an instruction set that the processor lacks never gets in.
        let isa = if Isa::available().contains(&isa) { isa } else { Isa::detect() };
        let usage = Arc::new(Usage::default());
        let (floats, words) = (Buffers::new(Arc::clone(&usage)), Buffers::new(Arc::clone(&usage)));
        Self { pool: Pool::new(threads), isa, usage, meter: Meter::default(), floats, words }
    }

    /// A buffer that holds whatever its last user left: for results that are written whole.
    pub fn buffer(&self, len: usize) -> Buffer<f32> {
        self.floats.take(len)
    }

    /// A buffer of zeros.
    pub fn zeros(&self, len: usize) -> Buffer<f32> {
        self.floats.zeros(len)
    }

    /// A copy.
    pub fn copy(&self, of: &[f32]) -> Buffer<f32> {
        self.floats.copy(of)
    }

    /// As [`Cpu::buffer`], for pairs of bf16.
    fn word_buffer(&self, len: usize) -> Buffer<u32> {
        self.words.take(len)
    }

    /// Type in which inputs of products with weights of type `weights` are multiplied.
    pub fn input_type(&self, weights: Dtype) -> Dtype {
        if self.isa == Isa::Avx512Bf16 { weights } else { Dtype::F32 }
    }

    /// Keeps at most so many bytes of buffers that are not in use.
    pub fn limit_unused(&self, bytes: usize) {
        self.usage.limit_unused(bytes);
    }

    /// Between passes: buffers that the last few did not take are given back to the system.
    pub fn next_pass(&self) {
        self.usage.next_pass();
        self.floats.age();
        self.words.age();
    }

    /// Gives buffers that are not in use back to the system.
    pub fn trim(&self) {
        self.floats.trim();
        self.words.trim();
    }

    /// The instruction set in use; always one that the processor has.
    pub fn isa(&self) -> Isa {
        self.isa
    }
}

/// A raw pointer that tasks of one parallel region share.
///
/// Each use states why the tasks' accesses are disjoint.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: the wrapper only moves the address between threads; dereferencing is unsafe at each use.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn ptr(self) -> *mut T {
        self.0
    }
}

/// Runs `f(i, chunk)` on consecutive chunks of `data` (the last may be shorter), in parallel.
pub fn par_chunks<T: Send>(pool: &Pool, data: &mut [T], chunk: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let (len, base) = (data.len(), Shared(data.as_mut_ptr()));
    let chunk = chunk.max(1);
    pool.run(len.div_ceil(chunk), |i| {
        let start = i * chunk;
        let end = (start + chunk).min(len);
        // SAFETY: chunks [start, end) of distinct tasks do not overlap and lie inside `data`.
        f(i, unsafe { std::slice::from_raw_parts_mut(base.ptr().add(start), end - start) });
    });
}

/// Rows per task so that every thread gets a few tasks.
pub fn rows_per_task(pool: &Pool, rows: usize) -> usize {
    rows.div_ceil(pool.threads() * 4).max(1)
}

//! The highest measured speeds of a packed GEMM and of reading memory on this machine, as references for benchmarks.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::gemm::{PackedLhs, matmul};
use super::packed::PackedMatrix;
use super::parallel::par_chunks;
use super::{Cpu, Isa};
use crate::Dtype;

const ROWS: usize = 2048;
const INNER: usize = 576;
const COLUMNS: usize = 3072;
const REPETITIONS: usize = 12;

/// Bytes that are read: more than caches hold.
const READ_BYTES: usize = 256 << 20;
/// Bytes of a task.
const READ_CHUNK: usize = 1 << 20;

/// The peak rates of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Peaks {
    /// GFLOP/s of a packed GEMM of 2048x576 by 576x3072.
    pub gemm_gflops: f64,
    /// GB/s at which all threads read memory in order.
    pub read_gb_per_second: f64,
}

impl Peaks {
    /// Measures the peaks with weights of type `dtype` and kernels `isa`, best of twelve runs, on `threads` threads (0:
    /// one per core).
    pub fn measure(isa: Isa, dtype: Dtype, threads: usize) -> Self {
        let cpu = Cpu::with_isa(threads, isa);
        Self { gemm_gflops: gemm_gflops(&cpu, dtype), read_gb_per_second: read_gb_per_second(&cpu) }
    }
}

fn gemm_gflops(cpu: &Cpu, dtype: Dtype) -> f64 {
    let x = PackedLhs::new(cpu, dtype, &ramp(ROWS * INNER), INNER);
    let w = PackedMatrix::pack(cpu, dtype, INNER, &[&ramp(COLUMNS * INNER)]);
    let mut c = vec![0.0; ROWS * COLUMNS];
    (2 * ROWS * INNER * COLUMNS) as f64 / best(|| matmul(cpu, &x, &w, &mut c, false)) / 1e9
}

fn read_gb_per_second(cpu: &Cpu) -> f64 {
    let mut data = vec![1u64; READ_BYTES / size_of::<u64>()];
    let seconds = best(|| {
        par_chunks(&cpu.pool, &mut data, READ_CHUNK / size_of::<u64>(), |_, chunk| {
            black_box(chunk.iter().fold(0u64, |sum, x| sum.wrapping_add(*x)));
        });
    });
    READ_BYTES as f64 / seconds / 1e9
}

/// The shortest time of some repetitions, in seconds.
fn best(mut work: impl FnMut()) -> f64 {
    let timed = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..REPETITIONS).map(timed).min().unwrap_or(Duration::MAX).as_secs_f64()
}

/// Small numbers, none of them denormal.
fn ramp(length: usize) -> Vec<f32> {
    (0..length).map(|i| (i % 251) as f32 / 251.0 - 0.5).collect()
}

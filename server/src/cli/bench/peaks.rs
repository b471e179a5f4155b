//! The fastest that a packed product runs: the yardstick for the workloads.

use std::time::{Duration, Instant};

use trainyard_gpu_runtime::Dtype;
use trainyard_gpu_runtime::kernels::Cpu;
use trainyard_gpu_runtime::kernels::gemm::{Operand, matmul};
use trainyard_gpu_runtime::kernels::packed::PackedMatrix;

const ROWS: usize = 2048;
const INNER: usize = 576;
const COLUMNS: usize = 3072;
const REPETITIONS: usize = 12;

/// Best of some products of 2048x576 by 576x3072, in GFLOP/s.
pub(super) fn peak(dtype: Dtype, threads: usize) -> f64 {
    let cpu = Cpu::new(threads);
    let x = Operand::new(&cpu, dtype, &ramp(ROWS * INNER), INNER);
    let w = PackedMatrix::pack(&cpu, dtype, INNER, &[&ramp(COLUMNS * INNER)]);
    let mut c = vec![0.0; ROWS * COLUMNS];
    let best = (0..REPETITIONS)
        .map(|_| {
            let start = Instant::now();
            matmul(&cpu, &x, &w, &mut c, false);
            start.elapsed()
        })
        .min()
        .unwrap_or(Duration::MAX);
    (2 * ROWS * INNER * COLUMNS) as f64 / best.as_secs_f64() / 1e9
}

/// Small numbers, none of them denormal.
fn ramp(length: usize) -> Vec<f32> {
    (0..length).map(|i| (i % 251) as f32 / 251.0 - 0.5).collect()
}

//! Kernels that NVRTC compiles when the program runs, against the same in f64 or in plain integers.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaModule, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use half::bf16;

use crate::Outcome;

struct Compiled {
    stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
}

impl Compiled {
    fn new(define: Option<&str>) -> Result<Self, Box<dyn std::error::Error>> {
        let mut options = vec!["--std=c++17".to_owned(), "-default-device".to_owned()];
        options.extend(define.map(|name| format!("-D{name}")));
        let options = CompileOptions { arch: Some("compute_80"), options, ..CompileOptions::default() };
        let ptx = compile_ptx_with_opts(include_str!("../../../kernels/check.cu"), options)?;
        let context = CudaContext::new(0)?;
        Ok(Self { stream: context.new_stream()?, module: context.load_module(ptx)? })
    }
}

/// Numbers between -1 and 1.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn rounded(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|value| bf16::from_f32(*value)).collect()
}

fn launch(columns: u32, rows: u32, threads: u32, shared: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (columns, rows, 1), block_dim: (threads, 1, 1), shared_mem_bytes: shared }
}

pub(crate) fn sound() -> Outcome {
    let compiled = Compiled::new(None)?;
    rms_norm(&compiled)?;
    gemm(&compiled)?;
    functions(&compiled)?;
    integers(&compiled)
}

pub(crate) fn racing_norm() -> Outcome {
    rms_norm(&Compiled::new(Some("PLANT_RACE"))?)
}

pub(crate) fn racing_gemm() -> Outcome {
    gemm(&Compiled::new(Some("PLANT_RACE"))?)
}

fn rms_norm(compiled: &Compiled) -> Outcome {
    let (rows, k) = (5usize, 700usize);
    let (x, w) = (numbers(rows * k, 3), rounded(&numbers(k, 4)));
    let stream = &compiled.stream;
    let (dx, dw) = (stream.clone_htod(&x)?, stream.clone_htod(&w)?);
    let mut dy = stream.alloc_zeros::<bf16>(rows * k)?;
    let f = compiled.module.load_function("rms_norm")?;
    let (width, eps) = (k as i32, 1e-6f32);
    let mut call = stream.launch_builder(&f);
    call.arg(&dx).arg(&dw).arg(&mut dy).arg(&width).arg(&eps);
    // SAFETY: the parameters are those of the kernel.
    unsafe { call.launch(launch(rows as u32, 1, 256, 0))? };
    let y = stream.clone_dtoh(&dy)?;
    let mut different = 0;
    for row in 0..rows {
        let squares: f64 = x[row * k..(row + 1) * k].iter().map(|value| f64::from(*value).powi(2)).sum();
        let scale = 1.0 / (squares / k as f64 + 1e-6).sqrt();
        for (column, weight) in w.iter().enumerate() {
            let at = row * k + column;
            let expected = (f64::from(x[at]) * scale * weight.to_f64()) as f32;
            different += usize::from(bf16::from_f32(expected) != y[at]);
        }
    }
    println!("rms_norm different={different}");
    Ok(())
}

fn gemm(compiled: &Compiled) -> Outcome {
    let (m, n, k) = (100usize, 72usize, 96usize);
    let (a, b) = (rounded(&numbers(m * k, 5)), rounded(&numbers(n * k, 6)));
    let stream = &compiled.stream;
    let (da, db) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let mut dc = stream.alloc_zeros::<f32>(m * n)?;
    let f = compiled.module.load_function("gemm")?;
    let (rows, columns, depth) = (m as i32, n as i32, k as i32);
    let mut call = stream.launch_builder(&f);
    call.arg(&da).arg(&db).arg(&mut dc).arg(&rows).arg(&columns).arg(&depth);
    // SAFETY: the parameters are those of the kernel.
    unsafe { call.launch(launch(n.div_ceil(64) as u32, m.div_ceil(64) as u32, 128, 0))? };
    let c = stream.clone_dtoh(&dc)?;
    let mut worst = 0f64;
    for row in 0..m {
        for column in 0..n {
            let exact: f64 = (0..k).map(|i| a[row * k + i].to_f64() * b[column * k + i].to_f64()).sum();
            worst = worst.max((exact - f64::from(c[row * n + column])).abs());
        }
    }
    println!("gemm close={}", worst < 1e-5);
    Ok(())
}

fn functions(compiled: &Compiled) -> Outcome {
    let x: Vec<f32> = numbers(256, 9).iter().map(|value| value * 20.0).collect();
    let stream = &compiled.stream;
    let dx = stream.clone_htod(&x)?;
    let mut dy = stream.alloc_zeros::<f32>(x.len() * 8)?;
    let f = compiled.module.load_function("functions")?;
    let n = x.len() as i32;
    let mut call = stream.launch_builder(&f);
    call.arg(&dx).arg(&mut dy).arg(&n);
    // SAFETY: the parameters are those of the kernel.
    unsafe { call.launch(launch(4, 1, 64, 0))? };
    let y = stream.clone_dtoh(&dy)?;
    let mut worst = [0f64; 8];
    for (v, y) in x.iter().zip(y.chunks_exact(8)) {
        let wide = f64::from(*v);
        let size = f64::from(v.abs());
        let whole = f64::from((v * 100.0).trunc());
        let expected = [
            wide.sin() + wide.cos(),
            wide.tanh(),
            2.0 * wide.exp(),
            (size + 1e-3).ln(),
            size.powf(2.5),
            size.sqrt() + 1.0 / (size + 0.5),
            error_function(wide) + wide.floor() + wide.round_ties_even(),
            wide % 3.0 + whole,
        ];
        for ((worst, expected), got) in worst.iter_mut().zip(expected).zip(y) {
            *worst = worst.max((expected - f64::from(*got)).abs() / expected.abs().max(1.0));
        }
    }
    println!("functions close={} {worst:?}", worst.iter().all(|error| *error < 2e-6));
    Ok(())
}

/// Computes erf by its series, which converges fast enough here; beyond 4 it is 1 to f32's precision.
fn error_function(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return 1f64.copysign(x);
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Options {
    a: f32,
    b: [i32; 5],
    d: f64,
}

// SAFETY: plain numbers, laid out as the kernel's struct.
unsafe impl DeviceRepr for Options {}

fn integers(compiled: &Compiled) -> Outcome {
    let stream = &compiled.stream;
    let options = Options { a: 1.5, b: [10, 20, 30, 40, 50], d: 1000.0 };
    let f = compiled.module.load_function("integers")?;
    let mut right = true;
    for n in [9i32, 12, 13, 16] {
        let mut q = stream.alloc_zeros::<u64>(64)?;
        let mut counts = stream.alloc_zeros::<u32>(2)?;
        let mut call = stream.launch_builder(&f);
        call.arg(&options).arg(&mut q).arg(&mut counts).arg(&n);
        // SAFETY: the parameters are those of the kernel.
        unsafe { call.launch(launch(1, 1, 64, 64 * 4))? };
        right &= stream.clone_dtoh(&counts)? == [32, 63];
        let expected: Vec<u64> = (0..64).map(|thread| expected_integer(&options, thread, n as u32)).collect();
        right &= stream.clone_dtoh(&q)? == expected;
    }
    println!("integers right={right}");
    Ok(())
}

/// Result of thread `t` for `n` above 7: its local array is filled.
fn expected_integer(p: &Options, t: u32, n: u32) -> u64 {
    let dynamic = |t: u32| -> u32 {
        let at = n & 7;
        let last = (0..n).rev().find(|i| i & 15 == at).unwrap_or(0);
        t.wrapping_mul(last).wrapping_add(p.b[(n % 5) as usize] as u32).wrapping_add((t & 3) + 1)
    };
    let warp = t & !31;
    let mut h = u64::from(t + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    h ^= h >> 31;
    let high = ((u128::from(h) * 0xBF58_476D_1CE4_E5B9u128) >> 64) as u64;
    h = high.wrapping_add(h / u64::from(n + 1)).wrapping_add(h % 1000);
    let bytes: Vec<u8> = t.to_le_bytes().into_iter().chain(n.to_le_bytes()).collect();
    let permuted = u32::from_le_bytes([bytes[0], bytes[3], bytes[2], bytes[1]]);
    let shifted = (((u64::from(n) << 32 | u64::from(t)) << 5) >> 32) as u32;
    let first = if t == 0 { 0 } else { t.trailing_zeros() + 1 };
    // C adds ints and unsigned ints in 32 bits before the sum is widened.
    let parts = [t.count_ones(), t.leading_zeros(), first, t.reverse_bits(), permuted, shifted];
    h = h.wrapping_add(u64::from(parts.into_iter().fold(0u32, u32::wrapping_add)));
    let sum: u32 = (warp..warp + 32).sum();
    let ballot = 0xccccccccu32;
    let matching = 0x1111_1111u32 << (t & 3);
    h = h.wrapping_add(u64::from(sum.wrapping_add(ballot).wrapping_add(matching)));
    h = match n {
        12 => h.wrapping_sub(5),
        13 => 3,
        _ => h ^ (p.d * f64::from(p.a)) as u64,
    };
    h.wrapping_add(u64::from(dynamic((t + 1) % 64)))
}

//! Programs that use cuBLASLt and NCCL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::cublaslt::{CudaBlasLT, Matmul, MatmulConfig};
use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType, CUresult, cuDeviceGetDefaultMemPool,
    cuMemPoolSetAccess,
};
use cudarc::driver::{CudaContext, CudaStream};
use cudarc::nccl::{Comm, Id, ReduceOp};
use half::bf16;

use crate::Outcome;

/// Small integers, so that every order of sums gives the same.
pub(crate) fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7 + seed * 13) % 11) as f32 - 5.0).collect()
}

/// y = x Wᵀ for rows of x and W, in bf16.
pub(crate) fn matmul() -> Outcome {
    let (m, n, k) = (33usize, 40usize, 64usize);
    let (x, w) = (numbers(m * k, 1), numbers(n * k, 2));
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let library = CudaBlasLT::new(stream.clone()).map_err(|error| format!("{error:?}"))?;
    let to_bf16 = |values: &[f32]| -> Vec<bf16> { values.iter().map(|value| bf16::from_f32(*value)).collect() };
    let (dx, dw) = (stream.clone_htod(&to_bf16(&x))?, stream.clone_htod(&to_bf16(&w))?);
    let mut y = stream.alloc_zeros::<bf16>(m * n)?;
    let config = MatmulConfig {
        transa: true,
        transb: false,
        transc: false,
        m: n as u64,
        n: m as u64,
        k: k as u64,
        alpha: 1.0,
        lda: k as i64,
        ldb: k as i64,
        beta: 0.0,
        ldc: n as i64,
        stride_a: None,
        stride_b: None,
        stride_c: None,
        stride_bias: None,
        batch_size: None,
    };
    // SAFETY: the shapes are those of the buffers.
    unsafe { library.matmul(config, &dw, &dx, &mut y, None, None) }.map_err(|error| format!("{error:?}"))?;
    let y = stream.clone_dtoh(&y)?;
    let expected =
        |row: usize, column: usize| -> f32 { (0..k).map(|depth| x[row * k + depth] * w[column * k + depth]).sum() };
    let right = (0..m * n).all(|at| y[at] == bf16::from_f32(expected(at / n, at % n)));
    println!("right={right}");
    Ok(())
}

/// Milliseconds that an environment variable sets for a test.
fn milliseconds(name: &str) -> Option<Duration> {
    Some(Duration::from_millis(std::env::var(name).ok()?.parse().ok()?))
}

/// Asks whether a stream's work is done, up to a limit.
fn poll(stream: &CudaStream, limit: Duration) -> Outcome {
    let began = Instant::now();
    // SAFETY: the stream is there, and its context the thread's.
    while unsafe { cudarc::driver::sys::cuStreamQuery(stream.cu_stream()) } != CUresult::CUDA_SUCCESS {
        if began.elapsed() > limit {
            return Err("not done".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

pub(crate) fn collectives(stream: &Arc<CudaStream>, comm: &Comm, rank: usize, world: usize) -> Outcome {
    let nccl = |error: cudarc::nccl::result::NcclError| format!("{error:?}");
    let own = stream.clone_htod(&numbers(24, rank))?;
    let mut sum = stream.alloc_zeros::<f32>(24)?;
    comm.all_reduce(&own, &mut sum, &ReduceOp::Sum).map_err(nccl)?;
    if let Some(limit) = milliseconds("POLL_MS") {
        poll(stream, limit)?;
    }
    if let Some(pause) = milliseconds("PAUSE_MS") {
        stream.synchronize()?;
        std::thread::sleep(pause);
    }
    let mut all = stream.alloc_zeros::<f32>(24 * world)?;
    comm.all_gather(&own, &mut all).map_err(nccl)?;
    let mut part = stream.alloc_zeros::<f32>(24 / world)?;
    comm.reduce_scatter(&own, &mut part, &ReduceOp::Sum).map_err(nccl)?;
    let mut first = stream.alloc_zeros::<f32>(24)?;
    comm.broadcast(Some(&own), &mut first, 0).map_err(nccl)?;
    let expected_all: Vec<f32> = (0..world).flat_map(|rank| numbers(24, rank)).collect();
    let expected: Vec<f32> = (0..24).map(|i| (0..world).map(|rank| expected_all[rank * 24 + i]).sum()).collect();
    let share = 24 / world;
    // Everybody sends its r-th part to rank r.
    let parts: Vec<_> =
        numbers(24, rank).chunks(share).map(|part| stream.clone_htod(part)).collect::<Result<_, _>>()?;
    let mut exchanged = Vec::new();
    for _ in 0..world {
        exchanged.push(stream.alloc_zeros::<f32>(share)?);
    }
    cudarc::nccl::group_start().map_err(nccl)?;
    for (peer, (part, into)) in parts.iter().zip(&mut exchanged).enumerate() {
        comm.send(part, peer as i32).map_err(nccl)?;
        comm.recv(into, peer as i32).map_err(nccl)?;
    }
    cudarc::nccl::group_end().map_err(nccl)?;
    let mut right = true;
    for (peer, into) in exchanged.iter().enumerate() {
        right &= stream.clone_dtoh(into)? == numbers(24, peer)[rank * share..(rank + 1) * share];
    }
    right &= stream.clone_dtoh(&sum)? == expected
        && stream.clone_dtoh(&all)? == expected_all
        && stream.clone_dtoh(&part)? == expected[rank * share..(rank + 1) * share]
        && stream.clone_dtoh(&first)? == expected_all[..24];
    println!("rank {rank} right={right}");
    Ok(())
}

/// Makes the memory of a device's pool accessible to another device.
fn share(device: usize, peer: usize) -> Outcome {
    let mut pool = std::ptr::null_mut();
    let location = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: peer as i32 };
    let access = CUmemAccessDesc { location, flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    // SAFETY: there is a place for the pool, and one description.
    unsafe {
        cuDeviceGetDefaultMemPool(&raw mut pool, device as i32).result()?;
        cuMemPoolSetAccess(pool, &raw const access, 1).result()?;
    }
    Ok(())
}

/// Two ranks as threads of one process, each with a device. They give each other access to their memory, unless `KEEP_MEMORY` is set.
pub(crate) fn ranks() -> Outcome {
    let id = Id::new().map_err(|error| format!("{error:?}"))?;
    let run = |rank: usize| -> Result<(), String> {
        let context = CudaContext::new(rank).map_err(|error| format!("{error:?}"))?;
        let stream = context.new_stream().map_err(|error| format!("{error:?}"))?;
        let comm = Comm::from_rank(stream.clone(), rank, 2, id).map_err(|error| format!("{error:?}"))?;
        if std::env::var_os("KEEP_MEMORY").is_none() {
            share(rank, 1 - rank).map_err(|error| format!("share: {error}"))?;
        }
        collectives(&stream, &comm, rank, 2).map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0)?;
        other.join().map_err(|_| "the other rank panicked".to_owned())?
    })?;
    Ok(())
}

//! Programs of two processes, each a rank of one communicator. `PROGRAM NUMBER FILE` starts one; the file carries the id.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use cudarc::nccl::result::{NcclError, all_reduce, comm_destroy, comm_init_rank};
use cudarc::nccl::sys::{ncclDataType_t, ncclRedOp_t, ncclUniqueId};
use cudarc::nccl::{Comm, Id, ReduceOp};

use crate::Outcome;
use crate::libraries::{collectives, numbers};

/// How long one rank waits for what the other does without CUDA.
const LIMIT: Duration = Duration::from_secs(120);

/// This process as a rank.
struct Rank {
    number: usize,
    id: Id,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    /// File with which one rank signals the other.
    signal: PathBuf,
}

fn nccl(error: NcclError) -> String {
    format!("{error:?}")
}

/// The file, once the other rank has written it.
fn wait_for(path: &Path) -> Result<Vec<u8>, String> {
    let began = Instant::now();
    loop {
        match std::fs::read(path) {
            Ok(bytes) => return Ok(bytes),
            Err(error) if began.elapsed() > LIMIT => return Err(format!("{}: {error}", path.display())),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Writes a file that is whole as soon as it is there.
fn tell(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let partial = path.with_extension("partial");
    std::fs::write(&partial, bytes)?;
    std::fs::rename(partial, path)
}

impl Rank {
    fn new() -> Result<Self, crate::Error> {
        let arguments: Vec<String> = std::env::args().collect();
        let [_, _, number, path] = &arguments[..] else { return Err("PROGRAM NUMBER FILE".into()) };
        let (number, path) = (number.parse()?, PathBuf::from(path));
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        let id = if number == 0 {
            let id = Id::new().map_err(nccl)?;
            let bytes: Vec<u8> = id.internal().iter().map(|byte| *byte as u8).collect();
            tell(&path, &bytes)?;
            id
        } else {
            let mut internal = [0; 128];
            for (to, from) in internal.iter_mut().zip(wait_for(&path)?) {
                *to = from as c_char;
            }
            Id::uninit(internal)
        };
        Ok(Self { number, id, context, stream, signal: path.with_extension("signal") })
    }

    fn join(&self) -> Result<Comm, String> {
        Comm::from_rank(self.stream.clone(), self.number, 2, self.id).map_err(nccl)
    }

    /// Buffers of the rank's addend and of the sum.
    fn buffers(&self) -> Result<(CudaSlice<f32>, CudaSlice<f32>), crate::Error> {
        let own = self.stream.clone_htod(&numbers(24, self.number))?;
        let sum = self.stream.alloc_zeros::<f32>(24)?;
        self.stream.synchronize()?;
        Ok((own, sum))
    }

    fn print(&self, sum: &CudaSlice<f32>) -> Outcome {
        let expected: Vec<f32> = numbers(24, 0).iter().zip(numbers(24, 1)).map(|(one, other)| one + other).collect();
        println!("rank {} right={}", self.number, self.stream.clone_dtoh(sum)? == expected);
        Ok(())
    }
}

/// Runs the collectives as this process's rank.
pub(crate) fn all() -> Outcome {
    let rank = Rank::new()?;
    let comm = rank.join()?;
    let outcome = collectives(&rank.stream, &comm, rank.number, 2);
    // A communicator that failed is aborted by its owner; dropping it does so.
    drop(comm);
    outcome
}

/// Rank 0 waits for one stream while a collective is on another one; rank 1 comes to it only after that.
pub(crate) fn two_streams() -> Outcome {
    let rank = Rank::new()?;
    let comm = rank.join()?;
    let (own, mut sum) = rank.buffers()?;
    if rank.number == 1 {
        wait_for(&rank.signal)?;
    }
    comm.all_reduce(&own, &mut sum, &ReduceOp::Sum).map_err(nccl)?;
    if rank.number == 0 {
        let other = rank.context.new_stream()?;
        let zeros = other.alloc_zeros::<f32>(64)?;
        other.synchronize()?;
        tell(&rank.signal, &[])?;
        drop(zeros);
    }
    rank.print(&sum)
}

/// Rank 0 launches a graph with a collective, for the second time, and then does nothing until rank 1 has the result.
pub(crate) fn sleeping() -> Outcome {
    let rank = Rank::new()?;
    let comm = rank.join()?;
    let (own, mut sum) = rank.buffers()?;
    rank.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    comm.all_reduce(&own, &mut sum, &ReduceOp::Sum).map_err(nccl)?;
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = rank.stream.end_capture(flags)?.ok_or("nothing was captured")?;
    graph.launch()?;
    rank.stream.synchronize()?;
    rank.stream.memset_zeros(&mut sum)?;
    graph.launch()?;
    if rank.number == 0 {
        wait_for(&rank.signal)?;
        return rank.print(&sum);
    }
    rank.print(&sum)?;
    tell(&rank.signal, &[])?;
    Ok(())
}

/// Each rank destroys its communicator while its collective is queued.
pub(crate) fn destroying() -> Outcome {
    let rank = Rank::new()?;
    let (own, mut sum) = rank.buffers()?;
    let mut comm = MaybeUninit::uninit();
    let id = ncclUniqueId { internal: *rank.id.internal() };
    // SAFETY: there is a place for the communicator.
    unsafe { comm_init_rank(comm.as_mut_ptr(), 2, id, rank.number as i32) }.map_err(nccl)?;
    // SAFETY: it was made above.
    let comm = unsafe { comm.assume_init() };
    let (from, to) = (own.device_ptr(&rank.stream).0, sum.device_ptr_mut(&rank.stream).0);
    let (element, operation) = (ncclDataType_t::ncclFloat32, ncclRedOp_t::ncclSum);
    let stream = rank.stream.cu_stream();
    // SAFETY: the buffers have 24 numbers each.
    unsafe { all_reduce(from as _, to as _, 24, element, operation, comm, stream as _) }.map_err(nccl)?;
    // SAFETY: it is no longer in use.
    unsafe { comm_destroy(comm) }.map_err(nccl)?;
    rank.print(&sum)
}

//! Programs against unmodified `cudarc`, one for each word on the command line. The tests run them on the simulator.
#![allow(clippy::print_stdout, reason = "the tests read it")]
#![allow(unsafe_code, reason = "launches: cudarc can't check their parameters")]

mod compiled;
mod libraries;
mod ranks;

use std::process::ExitCode;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

type Error = Box<dyn std::error::Error>;
type Outcome = Result<(), Error>;

/// The word, and what it stands for.
type Program = (&'static str, fn() -> Outcome);

const PROGRAMS: &[Program] = &[
    ("vec-add", vec_add),
    ("out-of-bounds", out_of_bounds),
    ("uninitialised", uninitialised),
    ("graph", graph),
    ("pinned", pinned),
    ("two-streams", two_streams),
    ("missing-event", missing_event),
    ("copy-out", copy_out),
    ("early-copy-out", early_copy_out),
    ("freed-copy", freed_copy),
    ("use-after-free", use_after_free),
    ("allocations", allocations),
    ("launches", launches),
    ("variables", variables),
    ("counters", counters),
    ("compiled", compiled::sound),
    ("racing-norm", compiled::racing_norm),
    ("racing-gemm", compiled::racing_gemm),
    ("matmul", libraries::matmul),
    ("ranks", libraries::ranks),
    ("rank", ranks::all),
    ("two-stream-rank", ranks::two_streams),
    ("sleeping-rank", ranks::sleeping),
    ("destroying-rank", ranks::destroying),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, program)) = PROGRAMS.iter().find(|(known, _)| *known == name) else {
        println!("no program `{name}`");
        return ExitCode::FAILURE;
    };
    match program() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("failed: {error:?}");
            ExitCode::FAILURE
        }
    }
}

struct Setup {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    module: Arc<CudaModule>,
}

impl Setup {
    fn new() -> Result<Self, Error> {
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        let module = context.load_module(Ptx::from_src(include_str!("../../../kernels/basic.ptx")))?;
        Ok(Self { context, stream, module })
    }

    fn increment(&self, stream: &Arc<CudaStream>, x: &mut CudaSlice<f32>, n: i32) -> Outcome {
        let f = self.module.load_function("increment")?;
        // SAFETY: the parameters are those of the kernel.
        unsafe { stream.launch_builder(&f).arg(x).arg(&n).launch(grid(n))? };
        Ok(())
    }
}

fn grid(n: i32) -> LaunchConfig {
    LaunchConfig { grid_dim: ((n as u32).div_ceil(64), 1, 1), block_dim: (64, 1, 1), shared_mem_bytes: 0 }
}

fn add(setup: &Setup, claimed: i32) -> Result<Vec<f32>, Error> {
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let stream = &setup.stream;
    let (a, b) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let f: CudaFunction = setup.module.load_function("vec_add")?;
    // SAFETY: the parameters are those of the kernel; a wrong count is what some programs are for.
    unsafe { stream.launch_builder(&f).arg(&a).arg(&b).arg(&mut c).arg(&claimed).launch(grid(claimed))? };
    Ok(stream.clone_dtoh(&c)?)
}

fn vec_add() -> Outcome {
    let setup = Setup::new()?;
    let c = add(&setup, 1000)?;
    let right = c.iter().enumerate().all(|(i, c)| *c == 1.5 * i as f32);
    println!("{} right={right}", setup.context.name()?);
    Ok(())
}

fn out_of_bounds() -> Outcome {
    add(&Setup::new()?, 1001).map(|_| ())
}

fn uninitialised() -> Outcome {
    let setup = Setup::new()?;
    // SAFETY: reading it before it is written is what this program is for.
    let mut x = unsafe { setup.stream.alloc::<f32>(100)? };
    setup.increment(&setup.stream, &mut x, 100)?;
    setup.stream.synchronize()?;
    Ok(())
}

/// A captured launch runs when its graph does, as often as it does.
fn graph() -> Outcome {
    let setup = Setup::new()?;
    let mut x = setup.stream.alloc_zeros::<f32>(100)?;
    setup.stream.synchronize()?;
    setup.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    setup.increment(&setup.stream, &mut x, 100)?;
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = setup.stream.end_capture(flags)?.ok_or("nothing was captured")?;
    let before = setup.stream.clone_dtoh(&x)?;
    for _ in 0..3 {
        graph.launch()?;
    }
    let after = setup.stream.clone_dtoh(&x)?;
    println!("before={} after={}", before[99], after[99]);
    Ok(())
}

/// A copy from page-locked memory reads what is there when it runs.
fn pinned() -> Outcome {
    let setup = Setup::new()?;
    // SAFETY: it is written before it is read.
    let mut host = unsafe { setup.context.alloc_pinned::<f32>(4)? };
    host.as_mut_slice()?.fill(1.0);
    let pointer = host.as_mut_ptr()?;
    let mut x = setup.stream.alloc_zeros::<f32>(4)?;
    setup.stream.memcpy_htod(&host, &mut x)?;
    // SAFETY: the program's mistake is to write while the copy is under way; on the simulator nothing runs beside it.
    unsafe { pointer.write_volatile(2.0) };
    println!("copied={}", setup.stream.clone_dtoh(&x)?[0]);
    Ok(())
}

/// Two streams that wait for each other through events.
fn two_streams() -> Outcome {
    let setup = Setup::new()?;
    let other = setup.context.new_stream()?;
    let mut x = setup.stream.alloc_zeros::<f32>(256)?;
    for turn in 0..6 {
        let (stream, previous) = if turn % 2 == 0 { (&setup.stream, &other) } else { (&other, &setup.stream) };
        stream.join(previous)?;
        setup.increment(stream, &mut x, 256)?;
    }
    setup.context.synchronize()?;
    println!("sum={}", setup.stream.clone_dtoh(&x)?[255]);
    Ok(())
}

/// Changes a buffer on two streams without events: cudarc's own tracking is off.
fn missing_event() -> Outcome {
    let setup = Setup::new()?;
    // SAFETY: the streams are not ordered, which is what this program is for.
    unsafe { setup.context.disable_event_tracking() };
    let other = setup.context.new_stream()?;
    let mut x = setup.stream.alloc_zeros::<f32>(256)?;
    setup.stream.synchronize()?;
    setup.increment(&setup.stream, &mut x, 256)?;
    setup.increment(&other, &mut x, 256)?;
    setup.context.synchronize()?;
    println!("sum={}", setup.stream.clone_dtoh(&x)?[255]);
    Ok(())
}

/// Copies to page-locked memory on a second stream, after an event if `waits`.
fn copied_out(waits: bool) -> Outcome {
    let setup = Setup::new()?;
    // SAFETY: the streams are ordered below, or not, which is what these programs are for.
    unsafe { setup.context.disable_event_tracking() };
    let other = setup.context.new_stream()?;
    // SAFETY: it is written before it is read.
    let mut host = unsafe { setup.context.alloc_pinned::<f32>(256)? };
    host.as_mut_slice()?.fill(0.0);
    let pointer = host.as_mut_ptr()?;
    let mut x = setup.stream.alloc_zeros::<f32>(256)?;
    setup.stream.synchronize()?;
    setup.increment(&setup.stream, &mut x, 256)?;
    if waits {
        other.join(&setup.stream)?;
    }
    other.memcpy_dtoh(&x, &mut host)?;
    // SAFETY: the memory lives; on the simulator nothing runs beside this.
    let before = unsafe { pointer.read_volatile() };
    other.synchronize()?;
    println!("before={before} after={}", host.as_slice()?[255]);
    setup.context.synchronize()?;
    Ok(())
}

fn copy_out() -> Outcome {
    copied_out(true)
}

fn early_copy_out() -> Outcome {
    copied_out(false)
}

/// Memory is released in the order of one stream while another one copies it.
fn freed_copy() -> Outcome {
    let setup = Setup::new()?;
    // SAFETY: as above.
    unsafe { setup.context.disable_event_tracking() };
    let other = setup.context.new_stream()?;
    // SAFETY: the copy writes it.
    let mut host = unsafe { setup.context.alloc_pinned::<f32>(256)? };
    let x = setup.stream.alloc_zeros::<f32>(256)?;
    setup.stream.synchronize()?;
    other.memcpy_dtoh(&x, &mut host)?;
    drop(x);
    setup.context.synchronize()?;
    Ok(())
}

fn use_after_free() -> Outcome {
    let setup = Setup::new()?;
    let f = setup.module.load_function("increment")?;
    let address = {
        use cudarc::driver::DevicePtr;
        let x = setup.stream.alloc_zeros::<f32>(64)?;
        x.device_ptr(&setup.stream).0
    };
    setup.stream.synchronize()?;
    let n = 64i32;
    // SAFETY: the memory is gone, which is what this program is for.
    unsafe { setup.stream.launch_builder(&f).arg(&address).arg(&n).launch(grid(n))? };
    setup.stream.synchronize()?;
    Ok(())
}

/// Allocates until something fails.
fn allocations() -> Outcome {
    let setup = Setup::new()?;
    let mut held = Vec::new();
    for count in 0..10 {
        match setup.stream.alloc_zeros::<u8>(1 << 20) {
            Ok(memory) => held.push(memory),
            Err(error) => {
                println!("allocated={count} then={error:?}");
                return Ok(());
            }
        }
    }
    println!("allocated=10");
    Ok(())
}

/// Launches until something fails.
fn launches() -> Outcome {
    let setup = Setup::new()?;
    let mut x = setup.stream.alloc_zeros::<f32>(64)?;
    for count in 0..5 {
        let outcome = setup.increment(&setup.stream, &mut x, 64).and_then(|()| Ok(setup.stream.synchronize()?));
        if let Err(error) = outcome {
            println!("launched={count} then={error:?}");
            return Ok(());
        }
    }
    println!("launched=5");
    Ok(())
}

/// A variable of the module, read by the host.
fn variables() -> Outcome {
    let setup = Setup::new()?;
    let mut x = setup.stream.alloc_zeros::<f32>(640)?;
    setup.increment(&setup.stream, &mut x, 640)?;
    setup.stream.synchronize()?;
    let calls = setup.module.get_global("calls", &setup.stream)?;
    let bytes: Vec<u8> = setup.stream.clone_dtoh(&calls)?;
    println!("calls={bytes:?}");
    Ok(())
}

/// Prints the memory traffic of one kernel's launch.
fn counters() -> Outcome {
    let setup = Setup::new()?;
    add(&setup, 1000)?;
    let client = cuda_sim_client::Client::open()?;
    for name in ["global_load_bytes", "global_store_bytes", "global_requests", "global_sectors"] {
        println!("{name}={}", client.counter("vec_add", name)?);
    }
    Ok(())
}

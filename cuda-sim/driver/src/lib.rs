//! The CUDA driver's interface over the interpreter of `cuda-sim-ptx`, for unmodified programs.
//!
//! Loaded under the name `libcuda.so`, it answers the calls that a machine-learning runtime makes: memory, modules,
//! launches, streams, events, graphs. Work on a stream runs late: not when it is submitted, but when the host waits, or
//! at random before that, streams in a random order. Whatever relies on more than streams and events promise fails here.
//!
//! `ffi/` holds the C functions, the rest is safe code: `driver` keeps the objects behind handles, `device` runs
//! streams.

mod clock;
mod config;
mod cubin;
mod device;
mod driver;
mod error;
mod faults;
mod ffi;
mod graph;
mod image;
mod pool;
mod stream;
mod work;

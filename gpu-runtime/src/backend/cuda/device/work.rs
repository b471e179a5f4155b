//! Work for a device's stream as a value, which [`graphs`](super::graphs) compares.
#![allow(unsafe_code, reason = "the driver is C: addresses are those of slices, which ops check")]

use std::ffi::c_void;

use cudarc::driver::result;
use cudarc::driver::sys::CUstream;

use super::error::{CudaError, Result};
use super::modules::Function;
use super::transfers::Transfers;
use crate::backend::cuda::ops::product::Product;

/// Work on the stream.
#[derive(Clone, PartialEq)]
pub(crate) enum Work {
    /// A kernel, with the bits of its parameters.
    Launch { name: String, function: Function, grid: [u32; 3], threads: u32, parameters: Vec<u64> },
    /// Bytes from the host; up to `room` bytes may be overwritten.
    Write { to: u64, room: usize, bytes: Vec<u8> },
    /// Copies bytes within the device.
    Copy { to: u64, from: u64, bytes: usize },
    /// Writes zeros to device memory.
    Clear { at: u64, bytes: usize },
    /// Runs a GEMM on the device.
    Multiply(Product),
}

impl Work {
    /// Whether a graph that does the one does the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Write { to, room, .. }, Self::Write { to: other_to, room: other_room, .. }) => {
                (to, room) == (other_to, other_room)
            }
            _ => self == other,
        }
    }

    /// A copy of the work without bytes from the host.
    pub(super) fn outline(&self) -> Self {
        match self {
            Self::Write { to, room, .. } => Self::Write { to: *to, room: *room, bytes: Vec::new() },
            work => work.clone(),
        }
    }

    /// Queues it now, for the context of the calling thread. An error is final for the device.
    pub(crate) fn issue(&self, driver: &Transfers) -> Result {
        self.issue_on(driver, driver.raw_stream()).map_err(|error| driver.fail(error))
    }

    /// Queues the work on a stream, with an error that a capture may have; bytes of the host go to the stream of the
    /// device's work.
    pub(super) fn issue_on(&self, driver: &Transfers, stream: CUstream) -> Result {
        match self {
            Self::Launch { name, function, grid: [x, y, z], threads, parameters } => {
                let mut pointers: Vec<*mut c_void> =
                    parameters.iter().map(|bits| (&raw const *bits).cast_mut().cast()).collect();
                // SAFETY: the function is of a loaded module, and its parameters are those that its PTX declares, which the driver
                // reads before it returns; that it stays within the memory behind them follows from the extents, which ops check.
                unsafe { result::launch_kernel(function.0, (*x, *y, *z), (*threads, 1, 1), 0, stream, &mut pointers) }
                    .map_err(|error| CudaError::driver(format!("launch of {name}"), error))
            }
            Self::Write { to, bytes, .. } => driver.issue_write(*to, bytes),
            // SAFETY: slices have that much memory in both places.
            Self::Copy { to, from, bytes } => unsafe { result::memcpy_dtod_async(*to, *from, *bytes, stream) }
                .map_err(|error| CudaError::driver("cuMemcpyDtoDAsync", error)),
            // SAFETY: a slice has that much memory there.
            Self::Clear { at, bytes } => unsafe { result::memset_d8_async(*at, 0, *bytes, stream) }
                .map_err(|error| CudaError::driver("cuMemsetD8Async", error)),
            Self::Multiply(product) => product.issue(stream),
        }
    }
}

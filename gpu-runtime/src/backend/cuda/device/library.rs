//! Checks that the driver is installed and new enough: if it or a function is missing, `cudarc` panics at the first call.
#![allow(unsafe_code, reason = "opens a library and looks up functions, without calling them")]

use std::ffi::c_void;

use cudarc::driver;

use super::error::{CudaError, Result};
use super::maps::file_of;

/// Functions that the driver must have.
const DRIVER: &[&str] = &[
    "cuCtxSetCurrent",
    "cuDeviceCanAccessPeer",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// Checks that libcuda is installed and has every function used here.
pub(super) fn find_driver() -> Result {
    const NAME: &str = "libcuda";
    // SAFETY: a driver's initialisers are meant to run in any process; the same holds for opening it again below.
    if !unsafe { driver::sys::is_culib_present() } {
        return Err(CudaError::NoLibrary { library: NAME, purpose: "the NVIDIA driver" });
    }
    // SAFETY: the library is there, as just seen, so that this does not panic.
    let library = unsafe { driver::sys::culib() };
    for symbol in DRIVER {
        // SAFETY: the address is not used.
        if unsafe { library.get::<*mut c_void>(symbol.as_bytes()) }.is_err() {
            return Err(CudaError::NoSymbol { library: NAME, symbol });
        }
    }
    Ok(())
}

/// The file of the driver, which [`find_driver`] has found; empty where the system does not report it.
pub(super) fn driver_file() -> String {
    // SAFETY: the library is there; the address is not used but as a number.
    let address = unsafe { driver::sys::culib().get::<*mut c_void>(b"cuInit").map(|function| *function as usize) };
    address.ok().and_then(file_of).unwrap_or_default()
}

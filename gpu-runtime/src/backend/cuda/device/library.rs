//! Checks that the libraries of CUDA are installed and new enough: if a library or a function is missing, `cudarc`
//! panics at the first call.
#![allow(unsafe_code, reason = "opens libraries and looks up functions, without calling them")]

use std::ffi::c_void;

use cudarc::{cublaslt, driver};

use super::error::{CudaError, Result};

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
    "cuModuleUnload",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// Functions that cuBLASLt must have.
const MATMUL: &[&str] = &[
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
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

/// Checks that libcublasLt is installed and has every function used here.
pub(crate) fn find_matmul() -> Result {
    const NAME: &str = "libcublasLt";
    // SAFETY: as for the driver.
    if !unsafe { cublaslt::sys::is_culib_present() } {
        return Err(CudaError::NoLibrary { library: NAME, purpose: "cuBLAS" });
    }
    // SAFETY: the library is there, as just seen, so that this does not panic.
    let library = unsafe { cublaslt::sys::culib() };
    for symbol in MATMUL {
        // SAFETY: the address is not used.
        if unsafe { library.get::<*mut c_void>(symbol.as_bytes()) }.is_err() {
            return Err(CudaError::NoSymbol { library: NAME, symbol });
        }
    }
    Ok(())
}

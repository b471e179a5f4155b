//! Errors of devices and their libraries.

use cudarc::driver::DriverError;
use thiserror::Error;

/// Result of calls of the CUDA backend.
pub(crate) type Result<T = (), E = CudaError> = std::result::Result<T, E>;

/// A missing or unsupported device, or a failed call of the device or its libraries.
#[derive(Debug, Error)]
pub enum CudaError {
    /// No library of this name is installed.
    #[error("failed to load {library}: {purpose} is not installed, or not on the dynamic linker's path")]
    NoLibrary {
        /// Name of the library.
        library: &'static str,
        /// Purpose of the library.
        purpose: &'static str,
    },
    /// The installed library is too old.
    #[error("{library} lacks the function {symbol}: it is too old")]
    NoSymbol {
        /// Name of the library.
        library: &'static str,
        /// Name of the missing function.
        symbol: &'static str,
    },
    /// A library to link programs with was found in place of the driver.
    #[error(
        "{path} is a stub for linking, not the NVIDIA driver (CUDA_ERROR_STUB_LIBRARY): take its folder out of \
         LD_LIBRARY_PATH; the driver's library is libcuda.so.1"
    )]
    Stub {
        /// Path of the library.
        path: String,
    },
    /// The environment changes what products in f32 are.
    #[error("NVIDIA_TF32_OVERRIDE=1 in the environment computes GEMMs of f32 in TF32: unset it, or use bf16")]
    Tf32Override,
    /// The library is of a version that is not supported.
    #[error("{library} {found} is too old: {oldest} or newer is needed")]
    OldLibrary {
        /// Name of the library.
        library: &'static str,
        /// The library's major version.
        found: usize,
        /// The oldest supported major version.
        oldest: usize,
    },
    /// The library was asked for by its path.
    #[error(
        "{path} can't be opened: it is missing, not a library of this system, or a library that it needs is missing"
    )]
    NotOpened {
        /// Path of the library.
        path: String,
    },
    /// Several libraries of this name were found, and none works.
    #[error("no usable {library}: {reasons}")]
    NoUsableLibrary {
        /// Name of the library.
        library: &'static str,
        /// Each library that was opened, with the reason.
        reasons: String,
    },
    /// The device lacks something that the kernels need.
    #[error("device {ordinal} ({name}) is not supported: {reason}")]
    NotSupported {
        /// Number of the device.
        ordinal: i32,
        /// The driver's name for it.
        name: String,
        /// The feature that it lacks.
        reason: String,
    },
    /// Ranks of one process exchange by NCCL, and their devices can't access each other's memory as NCCL would.
    #[error(
        "the memory of device {ordinal} can't be made accessible to device {peer} of the same process: {reason}; set \
         NCCL_P2P_DIRECT_DISABLE=1, or start a process for each rank"
    )]
    NotShared {
        /// Number of the device.
        ordinal: i32,
        /// Number of the other device.
        peer: i32,
        /// What the driver says about it.
        reason: String,
    },
    /// The device has too little memory. It remains usable.
    #[error("out of device memory: {bytes} bytes were requested, {used} are in use")]
    OutOfMemory {
        /// Number of bytes requested.
        bytes: usize,
        /// Number of bytes that the arena holds.
        used: usize,
    },
    /// The driver refused a call, or reported a failure of an earlier launch: such errors are final for the device.
    #[error("{call} failed: {code}: {message}")]
    Driver {
        /// The function called, or the kernel launched.
        call: String,
        /// The name of CUDA's error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
        code: String,
        /// The driver's description of it.
        message: String,
    },
    /// cuBLASLt refused a call.
    #[error("{call} failed: {status}")]
    Matmul {
        /// The cuBLASLt function called.
        call: &'static str,
        /// Name of the status.
        status: String,
    },
    /// NCCL refused a call, or a rank is lost: such errors are final for the ranks.
    #[error("{call} failed: {message}")]
    Collective {
        /// The NCCL function called.
        call: &'static str,
        /// NCCL's description, or what is missing.
        message: String,
    },
    /// Extents do not match: nothing was launched.
    #[error("{op}: {what} is {found}, not {expected}")]
    Extent {
        /// Name of the op.
        op: &'static str,
        /// The quantity with the wrong extent.
        what: &'static str,
        /// The extent that was found.
        found: usize,
        /// The extent that is required.
        expected: String,
    },
    /// The kernel does not exist, or its parameters differ from those of the launch.
    #[error("kernel {name}: {problem}")]
    Kernel {
        /// Name of the kernel.
        name: String,
        /// Description of the difference.
        problem: String,
    },
}

impl CudaError {
    /// An error of the driver in a call.
    pub(crate) fn driver(call: impl Into<String>, error: DriverError) -> Self {
        let text = |found: Option<&std::ffi::CStr>| {
            found.map_or_else(|| format!("{:?}", error.0), |text| text.to_string_lossy().into_owned())
        };
        Self::Driver {
            call: call.into(),
            code: text(error.error_name().ok()),
            message: text(error.error_string().ok()),
        }
    }
}

/// Extents of an op that are checked before it is launched.
#[derive(Clone, Copy)]
pub(crate) struct Extents(pub(crate) &'static str);

impl Extents {
    /// Returns an error unless `found` equals `expected`.
    pub(crate) fn equal(self, what: &'static str, found: usize, expected: usize) -> Result<(), CudaError> {
        self.check(found == expected, what, found, || expected.to_string())
    }

    /// Returns an error unless `found` is below `limit`.
    pub(crate) fn below(self, what: &'static str, found: usize, limit: usize) -> Result<(), CudaError> {
        self.check(found < limit, what, found, || format!("below {limit}"))
    }

    /// Returns an error unless the condition `holds` for `found`; `expected` describes the condition.
    pub(crate) fn check(
        self,
        holds: bool,
        what: &'static str,
        found: usize,
        expected: impl FnOnce() -> String,
    ) -> Result<(), CudaError> {
        if holds { Ok(()) } else { Err(CudaError::Extent { op: self.0, what, found, expected: expected() }) }
    }

    /// `found` as kernels take it.
    pub(crate) fn index(self, what: &'static str, found: usize) -> Result<u32, CudaError> {
        u32::try_from(found).map_err(|_| CudaError::Extent {
            op: self.0,
            what,
            found,
            expected: "below 4294967296".to_owned(),
        })
    }
}

//! Results of driver calls.

use std::ffi::CStr;

use cuda_sim_ptx::{MemoryError, Stop, StopKind};

/// A `CUresult` other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) i32);

pub(crate) const INVALID_VALUE: Code = Code(1);
pub(crate) const OUT_OF_MEMORY: Code = Code(2);
pub(crate) const NOT_INITIALIZED: Code = Code(3);
pub(crate) const STUB_LIBRARY: Code = Code(34);
pub(crate) const NO_DEVICE: Code = Code(100);
pub(crate) const INVALID_DEVICE: Code = Code(101);
pub(crate) const INVALID_IMAGE: Code = Code(200);
pub(crate) const INVALID_CONTEXT: Code = Code(201);
pub(crate) const NO_BINARY_FOR_GPU: Code = Code(209);
pub(crate) const INVALID_PTX: Code = Code(218);
pub(crate) const INVALID_HANDLE: Code = Code(400);
pub(crate) const ILLEGAL_STATE: Code = Code(401);
pub(crate) const NOT_FOUND: Code = Code(500);
pub(crate) const NOT_READY: Code = Code(600);
pub(crate) const LAUNCH_FAILED: Code = Code(719);
pub(crate) const NOT_SUPPORTED: Code = Code(801);
pub(crate) const CAPTURE_UNSUPPORTED: Code = Code(900);
pub(crate) const UNKNOWN: Code = Code(999);

pub(crate) type Result<T = ()> = std::result::Result<T, Code>;

/// Numbers and names as `cuda.h` gives them.
const NAMES: &[(i32, &CStr)] = &[
    (0, c"CUDA_SUCCESS"),
    (1, c"CUDA_ERROR_INVALID_VALUE"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED"),
    (34, c"CUDA_ERROR_STUB_LIBRARY"),
    (100, c"CUDA_ERROR_NO_DEVICE"),
    (101, c"CUDA_ERROR_INVALID_DEVICE"),
    (200, c"CUDA_ERROR_INVALID_IMAGE"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (218, c"CUDA_ERROR_INVALID_PTX"),
    (400, c"CUDA_ERROR_INVALID_HANDLE"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE"),
    (500, c"CUDA_ERROR_NOT_FOUND"),
    (600, c"CUDA_ERROR_NOT_READY"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS"),
    (716, c"CUDA_ERROR_MISALIGNED_ADDRESS"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (999, c"CUDA_ERROR_UNKNOWN"),
];

/// The name of a result.
pub(crate) fn name(code: i32) -> Option<&'static CStr> {
    NAMES.iter().find(|(number, _)| *number == code).map(|(_, name)| *name)
}

impl From<MemoryError> for Code {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::OutOfMemory => OUT_OF_MEMORY,
            MemoryError::NoSuchAllocation => INVALID_VALUE,
        }
    }
}

/// Error code that a GPU would return, if it notices the error at all.
impl From<&Stop> for Code {
    fn from(stop: &Stop) -> Self {
        match stop.kind {
            StopKind::OutOfBounds => Self(700),
            StopKind::Misaligned => Self(716),
            StopKind::BadLaunch => INVALID_VALUE,
            _ => LAUNCH_FAILED,
        }
    }
}

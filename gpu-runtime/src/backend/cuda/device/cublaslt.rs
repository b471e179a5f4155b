//! cuBLASLt: the functions that GEMMs need, of the first library that works here.
#![allow(unsafe_code, reason = "cuBLASLt is C: functions are looked up here, and called with handles of their own")]

use std::ffi::{c_int, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
    cublasLtMatrixLayout_t, cublasStatus_t, cudaDataType,
};
use cudarc::driver::sys::CUstream;
use libloading::Library;

use super::error::{CudaError, Result};
use super::maps::file_of;
use super::wheels;

const NAME: &str = "libcublasLt";

/// Names of the library, in the order in which they are tried: those with a version first, because `libcublasLt.so` may
/// be of any, or of none for this driver.
const NAMES: [&str; 3] = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"];

/// The oldest version whose interface is used.
const OLDEST: usize = 12;

macro_rules! functions {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions, as NVIDIA's documentation of cuBLASLt declares them. Addresses are numbers here.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(library: &Library) -> Result<Self> {
                $(
                    // SAFETY: the function has this type in versions 12 and 13 of cuBLASLt.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> $result>($symbol.as_bytes()) };
                    let $field = *$field.map_err(|_| CudaError::NoSymbol { library: NAME, symbol: $symbol })?;
                )*
                Ok(Self { $($field),* })
            }
        }
    };
}

/// Status as a number: newer versions have others than those that `cudarc` names.
type Status = c_int;

functions! {
    version = "cublasLtGetVersion": fn() -> usize;
    create = "cublasLtCreate": fn(*mut cublasLtHandle_t) -> Status;
    destroy = "cublasLtDestroy": fn(cublasLtHandle_t) -> Status;
    matmul = "cublasLtMatmul": fn(
        cublasLtHandle_t, cublasLtMatmulDesc_t, *const c_void, u64, cublasLtMatrixLayout_t, u64, cublasLtMatrixLayout_t,
        *const c_void, u64, cublasLtMatrixLayout_t, u64, cublasLtMatrixLayout_t, *const cublasLtMatmulAlgo_t, u64, usize,
        CUstream
    ) -> Status;
    heuristic = "cublasLtMatmulAlgoGetHeuristic": fn(
        cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
        cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, c_int, *mut cublasLtMatmulHeuristicResult_t, *mut c_int
    ) -> Status;
    create_operation = "cublasLtMatmulDescCreate": fn(
        *mut cublasLtMatmulDesc_t, cublasComputeType_t, cudaDataType
    ) -> Status;
    destroy_operation = "cublasLtMatmulDescDestroy": fn(cublasLtMatmulDesc_t) -> Status;
    set_operation = "cublasLtMatmulDescSetAttribute": fn(
        cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, *const c_void, usize
    ) -> Status;
    create_preference = "cublasLtMatmulPreferenceCreate": fn(*mut cublasLtMatmulPreference_t) -> Status;
    destroy_preference = "cublasLtMatmulPreferenceDestroy": fn(cublasLtMatmulPreference_t) -> Status;
    set_preference = "cublasLtMatmulPreferenceSetAttribute": fn(
        cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, *const c_void, usize
    ) -> Status;
    create_layout = "cublasLtMatrixLayoutCreate": fn(
        *mut cublasLtMatrixLayout_t, cudaDataType, u64, u64, i64
    ) -> Status;
    destroy_layout = "cublasLtMatrixLayoutDestroy": fn(cublasLtMatrixLayout_t) -> Status;
}

/// The cuBLASLt that a device's GEMMs use.
pub(crate) struct Cublaslt {
    pub(crate) functions: Functions,
    found: MatmulLibrary,
    /// Functions are there while it is. It stays loaded: other devices may use it.
    _library: ManuallyDrop<Library>,
}

/// The file and the version of a cuBLASLt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatmulLibrary {
    /// Path of the file, or the name under which it was opened where the system does not report paths.
    pub path: String,
    /// Its version: major, minor, patch.
    pub version: [usize; 3],
}

impl fmt::Display for MatmulLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.version;
        write!(f, "cuBLASLt {major}.{minor}.{patch}, {}", self.path)
    }
}

impl Cublaslt {
    /// Opens the library at a path; without one, the first one that works among the names that the dynamic linker knows and the
    /// [usual places](wheels::folders). Also returns a handle on the device of the thread's context.
    ///
    /// # Errors
    ///
    /// No library is there or works; the error has the reason of each that was tried.
    pub(crate) fn open(path: Option<&Path>) -> Result<(Arc<Self>, cublasLtHandle_t)> {
        let candidates = match path {
            Some(path) => vec![path.to_path_buf()],
            None => NAMES.iter().map(PathBuf::from).chain(wheels::files(&NAMES)).collect(),
        };
        let mut refused: Vec<(&PathBuf, CudaError)> = Vec::new();
        for candidate in &candidates {
            match Self::try_open(candidate) {
                Ok(Some(found)) => return Ok(found),
                // A path that was asked for is there, or not; names are searched.
                Ok(None) if path.is_none() => {}
                Ok(None) => return Err(CudaError::NotOpened { path: candidate.display().to_string() }),
                Err(error) => refused.push((candidate, error)),
            }
        }
        match refused.len() {
            0 => return Err(CudaError::NoLibrary { library: NAME, purpose: "cuBLAS" }),
            1 => return Err(refused.remove(0).1),
            _ => {}
        }
        let reasons = refused.iter().map(|(candidate, reason)| format!("{}: {reason}", candidate.display()));
        Err(CudaError::NoUsableLibrary { library: NAME, reasons: reasons.collect::<Vec<_>>().join("; ") })
    }

    /// The library of a name or path with a handle, if it exists and works.
    fn try_open(candidate: &Path) -> Result<Option<(Arc<Self>, cublasLtHandle_t)>> {
        // SAFETY: cuBLASLt's initialisers are meant to run in any process.
        let Ok(library) = (unsafe { Library::new(candidate) }) else { return Ok(None) };
        let functions = Functions::find(&library)?;
        // SAFETY: it takes nothing and returns a number.
        let version = unsafe { (functions.version)() };
        let version = [version / 10_000, version / 100 % 100, version % 100];
        if version[0] < OLDEST {
            return Err(CudaError::OldLibrary { library: NAME, found: version[0], oldest: OLDEST });
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle is written before the function returns.
        check("cublasLtCreate", unsafe { (functions.create)(&raw mut handle) })?;
        let path = file_of(functions.create as usize).unwrap_or_else(|| candidate.display().to_string());
        let found = MatmulLibrary { path, version };
        Ok(Some((Arc::new(Self { functions, found, _library: ManuallyDrop::new(library) }), handle)))
    }

    /// Its file and version.
    pub(crate) fn found(&self) -> &MatmulLibrary {
        &self.found
    }
}

/// Turns the status of a call into an error.
pub(crate) fn check(call: &'static str, status: Status) -> Result {
    const SUCCESS: Status = cublasStatus_t::CUBLAS_STATUS_SUCCESS as Status;
    if status == SUCCESS { Ok(()) } else { Err(CudaError::Matmul { call, status: named(status) }) }
}

/// The name of a status of NVIDIA's documentation.
fn named(status: Status) -> String {
    let name = match status {
        1 => "NOT_INITIALIZED",
        3 => "ALLOC_FAILED",
        7 => "INVALID_VALUE",
        8 => "ARCH_MISMATCH",
        11 => "MAPPING_ERROR",
        13 => "EXECUTION_FAILED",
        14 => "INTERNAL_ERROR",
        15 => "NOT_SUPPORTED",
        16 => "LICENSE_ERROR",
        _ => return format!("status {status}"),
    };
    format!("CUBLAS_STATUS_{name}")
}

//! Modules of kernels: PTX that the driver compiles, and machine code.
#![allow(unsafe_code, reason = "the driver is C: it gets images that live during the call")]

use std::ffi::{CStr, CString, c_void};

use cudarc::driver::result::module;
use cudarc::driver::sys::{CUfunction, CUjit_option, CUmodule, CUresult, cuModuleLoadDataEx};

use super::driver::Driver;
use super::error::{CudaError, Result};

/// Errors with which drivers refuse machine code for other devices, or of a version that they do not know.
const REFUSALS: [CUresult; 4] = [
    CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
    CUresult::CUDA_ERROR_INVALID_IMAGE,
    CUresult::CUDA_ERROR_INVALID_SOURCE,
    CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
];

/// Bytes for what the driver's compiler says about PTX that it refuses.
const LOG_BYTES: usize = 4 << 10;

/// A kernel of a module.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Function(pub(crate) CUfunction);

// SAFETY: a handle that the driver accepts from any thread.
unsafe impl Send for Function {}
// SAFETY: a handle, which nothing changes.
unsafe impl Sync for Function {}

/// Why machine code was not loaded.
pub(crate) enum CubinError {
    /// The code is not for the device, or too new for the driver, which may load PTX instead.
    Refused(CudaError),
    Failed(CudaError),
}

impl From<CudaError> for CubinError {
    fn from(error: CudaError) -> Self {
        Self::Failed(error)
    }
}

/// A loaded module. It stays loaded until the context is released.
#[derive(Clone, Copy)]
pub(crate) struct Module(CUmodule);

impl Driver {
    pub(crate) fn load(&self, name: &str, ptx: &str) -> Result<Module> {
        self.bind()?;
        let text = c_string(name, ptx)?;
        let (mut module, mut log) = (std::ptr::null_mut(), vec![0_u8; LOG_BYTES]);
        let mut options = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The number is passed as the pointer.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(LOG_BYTES)];
        // SAFETY: PTX is text that ends with a zero; there are two options, and the log has as many bytes as the second one says.
        let loaded = unsafe {
            let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
            cuModuleLoadDataEx(&raw mut module, text.as_ptr().cast(), 2, options, values)
        };
        match loaded.result() {
            Ok(()) => Ok(Module(module)),
            Err(error) => {
                let error = CudaError::driver(format!("cuModuleLoadDataEx of {name}"), error);
                Err(self.fail(explained(error, &log)))
            }
        }
    }

    /// Loads machine code. The device may be used further where the driver refuses it.
    pub(crate) fn load_cubin(&self, name: &str, cubin: &[u8]) -> Result<Module, CubinError> {
        self.bind()?;
        // An ELF file has words of eight bytes, which the driver may read where they are.
        let mut words = vec![0_u64; cubin.len().div_ceil(size_of::<u64>())];
        for (word, bytes) in words.iter_mut().zip(cubin.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        let call = format!("cuModuleLoadData of the cubin of {name}");
        // SAFETY: an ELF file that ends where its header says.
        match unsafe { module::load_data(words.as_ptr().cast()) } {
            Ok(module) => Ok(Module(module)),
            Err(error) if REFUSALS.contains(&error.0) => Err(CubinError::Refused(CudaError::driver(call, error))),
            Err(error) => Err(self.failed(call, error).into()),
        }
    }

    /// A kernel of a module.
    pub(crate) fn function(&self, module: Module, name: &str) -> Result<Function> {
        self.bind()?;
        // SAFETY: modules stay loaded.
        let function = unsafe { module::get_function(module.0, c_string(name, name)?) };
        function.map(Function).map_err(|error| self.failed(format!("cuModuleGetFunction of {name}"), error))
    }
}

/// An error of the driver with its compiler's text.
fn explained(error: CudaError, log: &[u8]) -> CudaError {
    let text = CStr::from_bytes_until_nul(log).map(|text| text.to_string_lossy().trim().to_owned()).unwrap_or_default();
    match error {
        CudaError::Driver { call, code, message } if !text.is_empty() => {
            CudaError::Driver { call, code, message: format!("{message}: {text}") }
        }
        error => error,
    }
}

fn c_string(name: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| CudaError::Kernel { name: name.to_owned(), problem: "zero in its text".to_owned() })
}

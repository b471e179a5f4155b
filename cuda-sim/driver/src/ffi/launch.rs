//! Launches of kernels, and functions of the host.

use std::ffi::{c_uint, c_void};

use crate::driver::try_with;
use crate::error::{INVALID_VALUE, Result};
use crate::ffi::exported;
use crate::ffi::host::HostCall;
use crate::ffi::memory::submit;
use crate::work::{Launch, LoadedKernel, Work};

/// The parameters that a launch points to, laid out as the kernel wants them.
///
/// # Safety
///
/// `params` holds a valid pointer for each parameter.
unsafe fn copied(kernel: &LoadedKernel, params: *const *const u8) -> Result<Vec<u8>> {
    let mut bytes = vec![0; kernel.param_bytes()];
    for (index, param) in kernel.params().iter().enumerate() {
        if params.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: there are as many pointers as parameters, each to as many bytes as its parameter has.
        let value = unsafe { std::slice::from_raw_parts(*params.add(index), param.size) };
        bytes[param.offset..param.offset + param.size].copy_from_slice(value);
    }
    Ok(bytes)
}

/// # Safety
///
/// `params` holds a valid pointer for each parameter of the function.
unsafe fn launch(
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    dynamic_shared: c_uint,
    stream: usize,
    params: *const *const u8,
) -> Result {
    let threads = block.iter().map(|n| u64::from(*n)).product::<u64>();
    let kernel = try_with(|driver| driver.kernel(function))?;
    let fits = grid.iter().all(|n| *n > 0) && grid[1] <= 65535 && grid[2] <= 65535 && block[2] <= 64;
    if !fits || threads == 0 || threads > kernel.max_threads() as u64 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: by the contract of this function.
    let params = unsafe { copied(&kernel, params)? };
    let dynamic_shared = dynamic_shared as usize;
    submit(stream, Work::Launch(Launch { kernel, grid, block, dynamic_shared, params }))
}

exported! {
    fn cuLaunchKernel(
        function: usize,
        gx: c_uint, gy: c_uint, gz: c_uint,
        bx: c_uint, by: c_uint, bz: c_uint,
        shared: c_uint,
        stream: usize,
        params: *const *const u8,
        extra: *const c_void,
    ) {
        // Parameters as one buffer are another way that nobody here takes.
        if !extra.is_null() {
            return Err(INVALID_VALUE);
        }
        launch(function, [gx, gy, gz], [bx, by, bz], shared, stream, params)
    }

    fn cuLaunchHostFunc(stream: usize, function: unsafe extern "C" fn(*mut c_void), data: *mut c_void) {
        submit(stream, Work::Call(HostCall::new(function, data, "host function")))
    }
}

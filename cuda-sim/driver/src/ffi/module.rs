//! Modules and their functions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_sim_cubin::{HEADER, length};

use crate::cubin::invalid;
use crate::driver::{current, try_with, with};
use crate::error::{INVALID_VALUE, Result};
use crate::ffi::{exported, host, put};
use crate::image::{Image, Kind, fat_binary_text, kind};

/// A copy of an image.
///
/// # Safety
///
/// `image` is PTX that ends with a zero, a cubin or a fat binary.
unsafe fn image_of(image: *const u8) -> Result<Image> {
    if image.is_null() {
        return Err(INVALID_VALUE);
    }
    let mut first = Vec::new();
    // A text may be shorter than a fat binary's header: it is read up to its end.
    for at in 0..16 {
        // SAFETY: no byte before this one was the end of a text.
        let byte = unsafe { image.add(at).read() };
        first.push(byte);
        if byte == 0 && at < 4 {
            break;
        }
        if at == 3 && first.iter().all(u8::is_ascii) {
            break;
        }
    }
    match kind(&first) {
        // SAFETY: what is no binary ends with a zero.
        Kind::Text => Ok(Image::Text(unsafe { host::text(image.cast())? })),
        // SAFETY: the header says how long the binary is.
        Kind::Fat(length) => Ok(Image::Text(fat_binary_text(&unsafe { host::bytes(image, length)? })?)),
        Kind::Cubin => {
            // SAFETY: every ELF file has a header.
            let header = unsafe { image.cast::<[u8; HEADER]>().read() };
            let length = length(&header).map_err(|error| invalid(&error.to_string()))?;
            // SAFETY: the header says how long the file is.
            Ok(Image::Cubin(unsafe { host::bytes(image, length)? }))
        }
    }
}

exported! {
    fn cuModuleLoadData(module: *mut usize, image: *const u8) {
        let image = image_of(image)?;
        let device = current()?;
        put(module, try_with(|driver| driver.load(&image, device))?)
    }

    fn cuModuleLoadDataEx(module: *mut usize, image: *const u8, _n: c_uint, _o: *mut c_int, _v: *mut *mut c_void) {
        let image = image_of(image)?;
        let device = current()?;
        put(module, try_with(|driver| driver.load(&image, device))?)
    }

    fn cuModuleUnload(module: usize) {
        let device = current()?;
        crate::driver::advance(device, usize::MAX, |device| Ok(device.is_idle()))?;
        try_with(|driver| driver.unload(module))
    }

    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) {
        let name = host::text(name)?;
        put(function, try_with(|driver| driver.function(module, &name))?)
    }

    fn cuModuleGetGlobal_v2(address: *mut u64, bytes: *mut usize, module: usize, name: *const c_char) {
        let name = host::text(name)?;
        let (found, size) = try_with(|driver| driver.variable(module, &name))?;
        if !address.is_null() {
            put(address, found)?;
        }
        if !bytes.is_null() {
            put(bytes, size)?;
        }
        Ok(())
    }

    fn cuFuncSetAttribute(function: usize, _attribute: c_int, _value: c_int) {
        try_with(|driver| driver.kernel(function).map(|_| ()))
    }

    fn cuFuncSetCacheConfig(function: usize, _config: c_int) {
        try_with(|driver| driver.kernel(function).map(|_| ()))
    }

    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: usize) {
        let kernel = try_with(|driver| driver.kernel(function))?;
        // Threads of a block, static shared and local memory, versions of PTX and machine code; registers are not known.
        let found = match attribute {
            0 => kernel.max_threads(),
            1 => kernel.shared_bytes(),
            3 => kernel.local_bytes(),
            5 => 80,
            6 => with(|driver| driver.capability.0 * 10 + driver.capability.1) as usize,
            _ => 0,
        };
        put(value, found as c_int)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, _f: usize, _threads: c_int, _shared: usize) {
        put(blocks, 2)
    }
}

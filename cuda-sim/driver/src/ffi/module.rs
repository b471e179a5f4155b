//! Modules and their functions.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cuda_sim_cubin::{HEADER_BYTES, IDENTITY_BYTES, check_identity, file_length};
use cuda_sim_ptx::Module;

use crate::cubin::report_invalid;
use crate::driver::{Extent, advance, current, try_with, with};
use crate::error::{INVALID_IMAGE, INVALID_VALUE, Result};
use crate::ffi::{exported, host, put};
use crate::image::{Image, Kind, fat_binary_text, kind};

/// Larger binaries are refused: nobody has one, and reading as much would leave the image's memory.
const MAX_BINARY_BYTES: usize = 1 << 30;

/// A copy of a binary of this length.
///
/// # Safety
///
/// `image` is valid for reads of `length` bytes, if these are not more than a binary may have.
unsafe fn binary(image: *const u8, length: usize) -> Result<Vec<u8>> {
    if length > MAX_BINARY_BYTES {
        eprintln!("cuda-sim: binary of {length} bytes by its header: expected at most {MAX_BINARY_BYTES}");
        return Err(INVALID_IMAGE);
    }
    // SAFETY: by the contract of this function.
    unsafe { host::bytes(image, length) }
}

/// A copy of an image.
///
/// # Safety
///
/// `image` is PTX that ends with a zero, a cubin, a fat binary, or another ELF file.
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
        // SAFETY: an image that is not a binary ends with a zero.
        Kind::Text => Ok(Image::Text(unsafe { host::text(image.cast())? })),
        // SAFETY: a fat binary is as long as its header says; the interface takes no length that could be compared.
        Kind::Fat(length) => Ok(Image::Text(fat_binary_text(&unsafe { binary(image, length)? })?)),
        Kind::Cubin => {
            // SAFETY: it begins as an ELF file, and the shortest header of one, that of 32 bits, has 52 bytes.
            let identity = unsafe { image.cast::<[u8; IDENTITY_BYTES]>().read() };
            check_identity(&identity).map_err(|error| report_invalid(&error.to_string()))?;
            // SAFETY: it is an ELF file of 64 bits for a GPU, whose header has these bytes.
            let header = unsafe { image.cast::<[u8; HEADER_BYTES]>().read() };
            let length = file_length(&header).map_err(|error| report_invalid(&error.to_string()))?;
            // SAFETY: a file that is whole is as long as its header says; the interface takes no length that could be compared.
            Ok(Image::Cubin(unsafe { binary(image, length)? }))
        }
    }
}

/// Options of `CUjit_option`: a buffer for messages about errors, and its bytes, which are in place of a pointer.
const ERROR_LOG: c_int = 5;
const ERROR_LOG_BYTES: c_int = 6;

/// Writes why a text is refused to the buffer that a program has for it.
///
/// # Safety
///
/// There are `count` options and values, and the buffer that they name is writable.
unsafe fn log_refusal(text: &str, count: usize, options: *mut c_int, values: *mut *mut c_void) -> Result {
    let Err(error) = Module::parse(text) else { return Ok(()) };
    let value = |option: c_int| {
        // SAFETY: by the contract of this function.
        let at = (0..count).find(|at| unsafe { options.add(*at).read() } == option)?;
        // SAFETY: likewise.
        Some(unsafe { values.add(at).read() })
    };
    match (value(ERROR_LOG), value(ERROR_LOG_BYTES)) {
        // SAFETY: likewise.
        (Some(buffer), Some(bytes)) => unsafe { host::put_text(&error.to_string(), buffer.cast(), bytes as usize) },
        _ => Ok(()),
    }
}

exported! {
    fn cuModuleLoadData(module: *mut usize, image: *const u8) {
        let image = image_of(image)?;
        let device = current()?;
        put(module, try_with(|driver| driver.load(&image, device))?)
    }

    fn cuModuleLoadDataEx(
        module: *mut usize, image: *const u8, count: c_uint, options: *mut c_int, values: *mut *mut c_void,
    ) {
        let image = image_of(image)?;
        let device = current()?;
        let loaded = try_with(|driver| driver.load(&image, device));
        if let (Err(_), Image::Text(text)) = (&loaded, &image) {
            log_refusal(text, count as usize, options, values)?;
        }
        put(module, loaded?)
    }

    fn cuModuleUnload(module: usize) {
        let device = current()?;
        advance(device, Extent::Wait, |device| Ok(device.is_idle()))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    fn refusal(image: &[u8]) -> Option<Code> {
        // SAFETY: the images below end where they are refused, or have the header that they begin.
        unsafe { image_of(image.as_ptr()) }.err()
    }

    /// An ELF file of this class for this machine, as far as that; the tables of sections and segments end at `end`.
    fn header(class: u8, machine: u8, end: u64) -> Vec<u8> {
        let mut header = b"\x7fELF".to_vec();
        header.extend([class, 1, 1]);
        header.resize(18, 0);
        header.extend([machine, 0]);
        header.resize(40, 0);
        header.extend(end.to_le_bytes());
        header.resize(HEADER_BYTES, 0);
        header
    }

    #[test]
    fn elf_files_for_other_machines_are_refused_by_their_first_bytes() {
        for other in [header(2, 62, 0), header(1, 190, 0)] {
            assert_eq!(refusal(&other[..IDENTITY_BYTES]), Some(INVALID_IMAGE));
        }
    }

    #[test]
    fn binaries_of_absurd_lengths_are_refused() {
        assert_eq!(refusal(&header(2, 190, (1 << 30) + 1)), Some(INVALID_IMAGE));
        let mut fat = 0xba55_ed50_u32.to_le_bytes().to_vec();
        fat.extend([1, 0, 16, 0]);
        fat.extend(u64::MAX.to_le_bytes());
        assert_eq!(refusal(&fat), Some(INVALID_IMAGE));
    }
}

//! The driver itself, devices, and the names of errors.

use std::ffi::{c_char, c_int, c_uint};

use crate::driver;
use crate::error::{INVALID_DEVICE, INVALID_VALUE, NO_DEVICE, STUB_LIBRARY, name};
use crate::ffi::{exported, host, put};

/// Version that the driver reports: CUDA 13.0.
const VERSION: c_int = 13000;

/// Attributes of `CUdevice_attribute`: compute capability, major and minor.
const MAJOR: c_int = 75;
const MINOR: c_int = 76;

/// The other ones that differ from 0.
const ATTRIBUTES: &[(c_int, c_int)] = &[
    (1, 1024),       // threads of a block
    (2, 1024),       // of these along x
    (3, 1024),       // y
    (4, 64),         // z
    (5, i32::MAX),   // blocks along x
    (6, 65535),      // y
    (7, 65535),      // z
    (8, 48 << 10),   // shared memory of a block without asking
    (10, 32),        // threads of a warp
    (12, 65536),     // registers of a block
    (13, 1_000_000), // kHz
    (16, 4),         // multiprocessors
    (31, 1),         // concurrent kernels
    (36, 1_000_000), // memory's kHz
    (37, 4096),      // bits of the memory's bus
    (39, 2048),      // threads of a multiprocessor
    (41, 1),         // unified addresses
    (81, 164 << 10), // shared memory of a multiprocessor
    (97, 163 << 10), // shared memory of a block
    (115, 1),        // memory pools
];

exported! {
    fn cuInit(_flags: c_uint) {
        driver::with(|driver| {
            if driver.stub {
                return Err(STUB_LIBRARY);
            }
            if driver.devices.is_empty() {
                return Err(NO_DEVICE);
            }
            driver.initialised = true;
            Ok(())
        })
    }

    fn cuDriverGetVersion(version: *mut c_int) {
        put(version, VERSION)
    }

    fn cuDeviceGetCount(count: *mut c_int) {
        put(count, driver::with(|driver| driver.devices.len()) as c_int)
    }

    fn cuDeviceGet(device: *mut c_int, ordinal: c_int) {
        let count = driver::with(|driver| driver.devices.len()) as c_int;
        if !(0..count).contains(&ordinal) {
            return Err(INVALID_DEVICE);
        }
        put(device, ordinal)
    }

    fn cuDeviceGetName(to: *mut c_char, capacity: c_int, _device: c_int) {
        host::put_text("Simulated CUDA device", to, usize::try_from(capacity).unwrap_or(0))
    }

    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: c_int) {
        let mut uuid = *b"cuda-sim device\0";
        uuid[15] = device as u8;
        put(to, uuid)
    }

    fn cuDeviceGetUuid(to: *mut [u8; 16], device: c_int) {
        let mut uuid = *b"cuda-sim device\0";
        uuid[15] = device as u8;
        put(to, uuid)
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) {
        put(bytes, driver::try_with(|driver| Ok(driver.device(device as usize)?.memory_info().1))? as usize)
    }

    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _device: c_int) {
        let (major, minor) = driver::with(|driver| driver.capability);
        let found = match attribute {
            MAJOR => major as c_int,
            MINOR => minor as c_int,
            _ => ATTRIBUTES.iter().find(|(number, _)| *number == attribute).map_or(0, |(_, value)| *value),
        };
        put(value, found)
    }

    fn cuGetErrorName(code: c_int, to: *mut *const c_char) {
        put(to, name(code).ok_or(INVALID_VALUE)?.as_ptr())
    }

    fn cuGetErrorString(code: c_int, to: *mut *const c_char) {
        put(to, name(code).ok_or(INVALID_VALUE)?.as_ptr())
    }
}

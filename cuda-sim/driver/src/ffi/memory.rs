//! Memory: allocation, pools, copies, fills.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use crate::device::DEFAULT_STREAM;
use crate::driver::{self, Extent, current, split, try_with, with_current};
use crate::error::{CAPTURE_UNSUPPORTED, INVALID_VALUE, OUT_OF_MEMORY, Result};
use crate::ffi::host::{self, HostMemory};
use crate::ffi::{exported, put, spontaneous, synchronize};
use crate::work::Work;

/// Submits to a stream by its handle, and gives chance a moment.
pub(crate) fn submit(handle: usize, work: Work) -> Result {
    let (index, stream) = split(handle)?;
    try_with(|driver| {
        let device = driver.device(index)?;
        match device.error {
            Some(code) => Err(code),
            None => device.submit(stream, work),
        }
    })?;
    spontaneous(index)
}

/// A copy to the device: from page-locked memory it reads when it runs, from other memory at once.
///
/// # Safety
///
/// `from` is valid for reads, until the copy has run if it is page-locked.
unsafe fn write(to: u64, from: *const u8, length: usize) -> Result<Work> {
    if host::is_pinned(from) {
        // SAFETY: by the contract of this function.
        return Ok(Work::WritePinned { to, from: unsafe { HostMemory::new(from, length) } });
    }
    // SAFETY: by the contract of this function.
    Ok(Work::Write { to, bytes: Arc::new(unsafe { host::bytes(from, length)? }) })
}

fn fill(to: u64, pattern: &[u8], count: usize, stream: usize) -> Result {
    submit(stream, Work::Fill { to, pattern: pattern.to_vec(), length: pattern.len() * count })
}

/// Memory that is there once a stream comes to it.
fn allocate_in_order(length: usize, stream: usize) -> Result<u64> {
    let (index, stream) = split(stream)?;
    let address = try_with(|driver| driver.device(index)?.allocate(length, Some(stream)))?;
    spontaneous(index)?;
    Ok(address)
}

/// Page-locked memory, unless it was told to fail.
fn allocate_pinned(length: usize) -> Result<*mut c_void> {
    if with_current(|device| Ok(device.faults.pinned()))? {
        return Err(OUT_OF_MEMORY);
    }
    host::allocate_pinned(length)
}

/// Work on the default stream that is over when the call returns.
fn at_once(work: Work) -> Result {
    submit(DEFAULT_STREAM, work)?;
    synchronize(current()?, DEFAULT_STREAM)
}

exported! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let (unused, all) = with_current(|device| Ok(device.memory_info()))?;
        put(free, unused as usize)?;
        put(total, all as usize)
    }

    fn cuMemAlloc_v2(address: *mut u64, length: usize) {
        put(address, with_current(|device| device.allocate(length, None))?)
    }

    fn cuMemAllocAsync(address: *mut u64, length: usize, stream: usize) {
        put(address, allocate_in_order(length, stream)?)
    }

    fn cuMemAllocFromPoolAsync(address: *mut u64, length: usize, _pool: usize, stream: usize) {
        put(address, allocate_in_order(length, stream)?)
    }

    fn cuMemFree_v2(address: u64) {
        if address == 0 {
            return Ok(());
        }
        let index = current()?;
        driver::advance(index, Extent::Wait, |device| Ok(device.is_idle()))?;
        with_current(|device| {
            device.host_knows_all();
            device.free(address)
        })
    }

    fn cuMemFreeAsync(address: u64, stream: usize) {
        let (index, _) = split(stream)?;
        try_with(|driver| driver.device(index)?.memory.size_of(address).ok_or(INVALID_VALUE))?;
        submit(stream, Work::Free { address })
    }

    fn cuMemHostAlloc(pointer: *mut *mut c_void, length: usize, _flags: c_uint) {
        put(pointer, allocate_pinned(length)?)
    }

    fn cuMemAllocHost_v2(pointer: *mut *mut c_void, length: usize) {
        put(pointer, allocate_pinned(length)?)
    }

    fn cuMemFreeHost(pointer: *mut c_void) {
        if let Ok(index) = current() {
            driver::advance(index, Extent::Wait, |device| Ok(device.is_idle()))?;
        }
        host::free_pinned(pointer)
    }

    fn cuMemcpyHtoD_v2(to: u64, from: *const u8, length: usize) {
        at_once(write(to, from, length)?)
    }

    fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, length: usize) {
        at_once(Work::Read { from, to: HostMemory::new(to, length) })
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, length: usize) {
        at_once(Work::Copy { to, from, length })
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, length: usize, stream: usize) {
        submit(stream, write(to, from, length)?)
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, length: usize, stream: usize) {
        let (index, number) = split(stream)?;
        let capturing = try_with(|driver| Ok(driver.device(index)?.stream(number)?.capture.is_some()))?;
        let pinned = host::is_pinned(to);
        if capturing && !pinned {
            return Err(CAPTURE_UNSUPPORTED);
        }
        submit(stream, Work::Read { from, to: HostMemory::new(to, length) })?;
        // A copy to memory that is not page-locked returns when it is done.
        if pinned { Ok(()) } else { synchronize(index, number) }
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, length: usize, stream: usize) {
        submit(stream, Work::Copy { to, from, length })
    }

    fn cuMemsetD8_v2(to: u64, value: u8, length: usize) {
        at_once(Work::Fill { to, pattern: vec![value], length })
    }

    fn cuMemsetD8Async(to: u64, value: u8, length: usize, stream: usize) {
        fill(to, &[value], length, stream)
    }

    fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: usize) {
        fill(to, &value.to_le_bytes(), count, stream)
    }

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: usize) {
        fill(to, &value.to_le_bytes(), count, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_functions_for_page_locked_memory_fail_where_they_are_told_to() {
        driver::with(|driver| driver.initialised = true);
        driver::set_current(Some(0));
        let fail = || {
            with_current(|device| {
                device.faults.set_pinned(1, 1);
                Ok(())
            })
        };
        let mut pointer = std::ptr::null_mut();
        assert_eq!(fail(), Ok(()));
        // SAFETY: there is a place for the pointer.
        assert_eq!(unsafe { cuMemHostAlloc(&raw mut pointer, 8, 0) }, OUT_OF_MEMORY.0);
        assert_eq!(fail(), Ok(()));
        // SAFETY: likewise.
        assert_eq!(unsafe { cuMemAllocHost_v2(&raw mut pointer, 8) }, OUT_OF_MEMORY.0);
        // SAFETY: likewise, and it is freed once.
        let codes = unsafe { [cuMemAllocHost_v2(&raw mut pointer, 8), cuMemFreeHost(pointer)] };
        assert_eq!(codes, [0, 0]);
    }
}

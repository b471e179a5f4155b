//! Driver functions for streams.

use std::ffi::{c_int, c_uint};

use crate::device::DEFAULT_STREAM;
use crate::driver::{self, Extent, current, join, split, try_with, with_current};
use crate::error::{CAPTURE_UNSUPPORTED, NOT_READY, Result};
use crate::ffi::{exported, put, spontaneous, synchronize};

const NON_BLOCKING: c_uint = 1;

/// A stream that is not `NON_BLOCKING` is one with the default stream: that orders more than a GPU would.
fn create(flags: c_uint) -> Result<usize> {
    let index = current()?;
    if flags & NON_BLOCKING == 0 {
        return Ok(join(index, DEFAULT_STREAM));
    }
    with_current(|device| Ok(join(index, device.create_stream())))
}

exported! {
    fn cuStreamCreate(stream: *mut usize, flags: c_uint) {
        put(stream, create(flags)?)
    }

    fn cuStreamCreateWithPriority(stream: *mut usize, flags: c_uint, _priority: c_int) {
        put(stream, create(flags)?)
    }

    fn cuStreamDestroy_v2(stream: usize) {
        let (index, stream) = split(stream)?;
        // A destroyed stream's work still runs; here it runs at once. What stopped the device was reported before.
        let _ = driver::advance(index, Extent::Wait, |device| device.is_complete(stream));
        try_with(|driver| driver.device(index)?.destroy_stream(stream))
    }

    fn cuStreamSynchronize(stream: usize) {
        let (index, stream) = split(stream)?;
        if try_with(|driver| Ok(driver.device(index)?.stream(stream)?.capture.is_some()))? {
            return Err(CAPTURE_UNSUPPORTED);
        }
        synchronize(index, stream)
    }

    fn cuStreamQuery(stream: usize) {
        let (index, stream) = split(stream)?;
        // Whoever polls sees progress in the end.
        driver::advance(index, Extent::UpTo(1), |device| device.is_complete(stream))?;
        try_with(|driver| {
            let device = driver.device(index)?;
            if !device.is_complete(stream)? {
                return Err(NOT_READY);
            }
            device.host_knows(stream);
            Ok(())
        })
    }

    fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) {
        let (index, stream) = split(stream)?;
        let (_, event) = split(event)?;
        try_with(|driver| driver.device(index)?.wait_event(stream, event))?;
        spontaneous(index)
    }

    fn cuStreamGetPriority(_stream: usize, priority: *mut c_int) {
        put(priority, 0)
    }
}

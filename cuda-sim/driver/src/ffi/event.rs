//! Events. Their times are counted in operations, since a simulated second means nothing.

use std::ffi::c_uint;

use crate::driver::{self, Extent, current, join, split, try_with, with_current};
use crate::error::{NOT_READY, Result, UNKNOWN};
use crate::ffi::{exported, put, spontaneous};

fn is_over(index: usize, event: usize) -> Result<bool> {
    try_with(|driver| {
        let event = driver.device(index)?.event(event)?;
        Ok(event.recorded >= event.submitted)
    })
}

fn seen(index: usize, event: usize) -> Result {
    try_with(|driver| {
        driver.device(index)?.host_saw(event);
        Ok(())
    })
}

/// Records an event, unless it was told to fail.
fn record(event: usize, stream: usize) -> Result {
    let (_, event) = split(event)?;
    let (index, stream) = split(stream)?;
    try_with(|driver| {
        let device = driver.device(index)?;
        if device.faults.event() {
            return Err(UNKNOWN);
        }
        device.record_event(event, stream)
    })?;
    spontaneous(index)
}

exported! {
    fn cuEventCreate(event: *mut usize, _flags: c_uint) {
        let index = current()?;
        put(event, with_current(|device| Ok(join(index, device.create_event())))?)
    }

    fn cuEventDestroy_v2(event: usize) {
        let (index, event) = split(event)?;
        try_with(|driver| driver.device(index)?.destroy_event(event))
    }

    fn cuEventRecord(event: usize, stream: usize) {
        record(event, stream)
    }

    fn cuEventRecordWithFlags(event: usize, stream: usize, _flags: c_uint) {
        record(event, stream)
    }

    fn cuEventSynchronize(event: usize) {
        let (index, event) = split(event)?;
        driver::advance(index, Extent::Wait, |device| {
            let event = device.event(event)?;
            Ok(event.recorded >= event.submitted)
        })?;
        seen(index, event)
    }

    fn cuEventQuery(event: usize) {
        let (index, event) = split(event)?;
        driver::advance(index, Extent::UpTo(1), |_| Ok(false))?;
        if !is_over(index, event)? {
            return Err(NOT_READY);
        }
        seen(index, event)
    }

    fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) {
        let ((index, start), (_, end)) = (split(start)?, split(end)?);
        if !is_over(index, start)? || !is_over(index, end)? {
            return Err(NOT_READY);
        }
        put(milliseconds, 0.001)
    }

    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: usize, end: usize) {
        let ((index, start), (_, end)) = (split(start)?, split(end)?);
        if !is_over(index, start)? || !is_over(index, end)? {
            return Err(NOT_READY);
        }
        put(milliseconds, 0.001)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_functions_that_record_events_fail_where_they_are_told_to() {
        driver::with(|driver| driver.initialised = true);
        driver::set_current(Some(0));
        let fail = || {
            with_current(|device| {
                device.faults.set_event(1);
                Ok(())
            })
        };
        let mut event = 0;
        // SAFETY: there is a place for the handle.
        assert_eq!(unsafe { cuEventCreate(&raw mut event, 0) }, 0);
        let stream = join(0, crate::device::DEFAULT_STREAM);
        assert_eq!(fail(), Ok(()));
        // SAFETY: these functions use no pointer.
        assert_eq!(unsafe { cuEventRecord(event, stream) }, UNKNOWN.0);
        assert_eq!(fail(), Ok(()));
        // SAFETY: likewise.
        assert_eq!(unsafe { cuEventRecordWithFlags(event, stream, 0) }, UNKNOWN.0);
        // SAFETY: likewise.
        assert_eq!(unsafe { [cuEventRecordWithFlags(event, stream, 0), cuEventSynchronize(event)] }, [0, 0]);
    }
}

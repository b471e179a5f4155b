//! Events: points in the work of a stream, for which the host or another stream can wait.
#![allow(unsafe_code, reason = "events are handles of the driver, made and released here")]

use cudarc::driver::DriverError;
use cudarc::driver::result::{event, stream};
use cudarc::driver::sys::{CUevent, CUevent_flags, CUevent_wait_flags, CUresult, CUstream, cuEventQuery};

use super::driver::Driver;
use super::error::{CudaError, Result};

/// A point of a stream, at which the event was recorded last.
pub(crate) struct Event(CUevent);

// SAFETY: a handle that the driver accepts from any thread for which the context is current.
unsafe impl Send for Event {}
// SAFETY: the same; nothing changes the handle.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event in the calling thread's context, which the other methods need too.
    pub(crate) fn new(driver: &Driver) -> Result<Self> {
        // Whoever waits for it sleeps.
        let flags = CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32 | CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let mut made = std::ptr::null_mut();
        // SAFETY: the driver writes a handle there.
        let called = unsafe { cudarc::driver::sys::cuEventCreate(&raw mut made, flags) }.result();
        called.map(|()| Self(made)).map_err(|error| driver.failed("cuEventCreate", error))
    }

    /// Records the event behind all work that is queued on the stream.
    pub(crate) fn record(&self, driver: &Driver, stream: CUstream) -> Result {
        // SAFETY: both handles live.
        unsafe { event::record(self.0, stream) }.map_err(|error| driver.failed("cuEventRecord", error))
    }

    /// Makes work that is queued on the stream later begin after the event.
    pub(crate) fn make_stream_wait(&self, driver: &Driver, stream: CUstream) -> Result {
        let flags = CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both handles live.
        unsafe { stream::wait_event(stream, self.0, flags) }.map_err(|error| driver.failed("cuStreamWaitEvent", error))
    }

    /// Waits until it is complete, or until it never will be because a rank is missing: an error that is final.
    pub(crate) fn wait(&self, driver: &Driver) -> Result {
        if !driver.peers().is_empty() {
            return driver.wait_with_ranks(|| self.is_complete());
        }
        // SAFETY: the handle lives.
        unsafe { event::synchronize(self.0) }.map_err(|error| driver.failed("cuEventSynchronize", error))
    }

    fn is_complete(&self) -> Result<bool> {
        // SAFETY: the handle lives.
        match unsafe { cuEventQuery(self.0) } {
            CUresult::CUDA_SUCCESS => Ok(true),
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => Err(CudaError::driver("cuEventQuery", DriverError(error))),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's; the driver retains what still waits for it.
        let _ = unsafe { event::destroy(self.0) };
    }
}

//! Calls of the driver on one device and its streams.
#![allow(unsafe_code, reason = "the driver is C: handles are made and released here, and pointers are those of slices")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use cudarc::driver::DriverError;
use cudarc::driver::result::{self, ctx, device, primary_ctx, stream};
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CUresult, CUstream, cuStreamQuery};

use super::error::{CudaError, Result};
use super::library::{driver_file, find_driver};
use super::opened::Opened;
use super::peers::{Peers, wait_for_peers};
use super::pool::Pool;
use crate::collective::DeviceMemory;

/// Largest copy from pageable memory that never waits for work on the device.
const STAGED: usize = 64 << 10;

/// A device with its primary context and one stream, on which all work is in order but for copies to files.
pub(crate) struct Driver {
    ordinal: i32,
    device: CUdevice,
    context: CUcontext,
    stream: CUstream,
    /// The stream for copies to the host that overlap with `stream`.
    copies: CUstream,
    /// The stream on which graphs are captured; nothing runs there.
    captures: CUstream,
    /// How often the host waited for `stream`.
    waits: AtomicU64,
    /// Compute capability: major, minor.
    capability: (i32, i32),
    lost: OnceLock<String>,
    peers: Mutex<Vec<Weak<dyn Peers>>>,
    opened: Opened,
}

// SAFETY: the driver's functions may be called by any thread for which the context is current; every call here makes it so first.
unsafe impl Send for Driver {}
// SAFETY: the same; calls of several threads on one stream are ordered by the driver.
unsafe impl Sync for Driver {}

impl Driver {
    /// Device `ordinal`, if it can run the kernels.
    pub(crate) fn open(ordinal: i32) -> Result<Self> {
        find_driver()?;
        result::init().map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_STUB_LIBRARY => CudaError::Stub { path: driver_file() },
            _ => CudaError::driver("cuInit", error),
        })?;
        let count = device::get_count().map_err(|error| CudaError::driver("cuDeviceGetCount", error))?;
        if ordinal < 0 || ordinal >= count {
            let (found, expected) =
                (ordinal.unsigned_abs() as usize, format!("less than {count}, the number of devices"));
            return Err(CudaError::Extent { op: "open a device", what: "its number", found, expected });
        }
        let device = device::get(ordinal).map_err(|error| CudaError::driver("cuDeviceGet", error))?;
        let capability = check(ordinal, device)?;
        // SAFETY: the device is the driver's.
        let context = unsafe { primary_ctx::retain(device) };
        let context = context.map_err(|error| CudaError::driver("cuDevicePrimaryCtxRetain", error))?;
        let mut opened = Self {
            ordinal,
            device,
            context,
            stream: stream::null(),
            copies: stream::null(),
            captures: stream::null(),
            waits: AtomicU64::new(0),
            capability,
            lost: OnceLock::new(),
            peers: Mutex::default(),
            opened: Opened::new(ordinal),
        };
        opened.bind()?;
        Pool::of(device)?.keep_all()?;
        for stream in [&mut opened.stream, &mut opened.copies, &mut opened.captures] {
            *stream = stream::create(stream::StreamKind::NonBlocking)
                .map_err(|error| CudaError::driver("cuStreamCreate", error))?;
        }
        Ok(opened)
    }

    /// The driver's name for the device.
    pub(crate) fn name(&self) -> Result<String> {
        device::get_name(self.device).map_err(|error| CudaError::driver("cuDeviceGetName", error))
    }

    /// The device's compute capability: major, minor.
    pub(crate) fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Its memory, and what this process and others leave of it now.
    pub(crate) fn memory(&self) -> Result<DeviceMemory> {
        self.bind()?;
        let (free, total) = result::mem_get_info().map_err(|error| CudaError::driver("cuMemGetInfo", error))?;
        Ok(DeviceMemory { total: total as u64, free: free as u64 })
    }

    /// The newest version of CUDA that the driver supports: major, minor.
    pub(crate) fn version(&self) -> Result<[i32; 2]> {
        let mut version = 0;
        // SAFETY: the driver writes a number there.
        let called = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
        called.map_err(|error| CudaError::driver("cuDriverGetVersion", error))?;
        Ok([version / 1000, version % 1000 / 10])
    }

    /// The first error after which the device is of no use.
    pub(crate) fn lost(&self) -> Option<String> {
        self.lost.get().cloned()
    }

    /// Notes such an error. Other ranks end too.
    pub(crate) fn lose(&self, error: &CudaError) {
        let reason = error.to_string();
        if self.lost.set(reason.clone()).is_ok() {
            self.peers().iter().for_each(|peers| peers.leave(&reason));
        }
    }

    /// Notes an error that leaves the device usable: final where other ranks go on and wait for this one.
    pub(crate) fn refuse(&self, error: &CudaError) {
        if !self.peers().is_empty() {
            self.lose(error);
        }
    }

    /// Lets the other devices that this process has open access this one's memory.
    pub(crate) fn share_memory(&self) -> Result {
        self.bind()?;
        Pool::of(self.device)?.share_with(self.ordinal, &self.opened.others())
    }

    /// Ranks that work on this device may wait for from now on.
    pub(crate) fn join(&self, peers: Weak<dyn Peers>) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).push(peers);
    }

    pub(crate) fn peers(&self) -> Vec<Arc<dyn Peers>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }

    /// Waits for all work, if some of it may wait for other ranks: the driver would wait for them without end.
    pub(super) fn settle(&self) -> Result {
        match self.peers().is_empty() {
            true => Ok(()),
            false => self.wait_with_ranks(|| self.is_idle(self.stream)),
        }
    }

    /// Waits until something is done, or until it never will be because a rank is missing: an error that is final.
    pub(super) fn wait_with_ranks(&self, is_done: impl Fn() -> Result<bool>) -> Result {
        if let Some(message) = self.lost() {
            return Err(CudaError::Collective { call: "a wait for the device", message });
        }
        wait_for_peers(&self.peers(), is_done).inspect_err(|error| self.lose(error))
    }

    /// An error of a call: the driver's are final, as every further call returns them too.
    pub(crate) fn failed(&self, call: impl Into<String>, error: DriverError) -> CudaError {
        self.fail(CudaError::driver(call, error))
    }

    /// Notes an error that is final, and returns it, or its cause where that is another rank.
    pub(crate) fn fail(&self, error: CudaError) -> CudaError {
        let cause = self.peers().iter().find_map(|peers| peers.fault().err());
        let error = cause.unwrap_or(error);
        self.lose(&error);
        error
    }

    pub(crate) fn ordinal(&self) -> i32 {
        self.ordinal
    }

    /// The stream, for calls that queue work on it.
    pub(super) fn raw_stream(&self) -> CUstream {
        self.stream
    }

    /// The stream of copies to the host in parallel with the work.
    pub(crate) fn copy_stream(&self) -> CUstream {
        self.copies
    }

    /// The stream on which graphs are captured.
    pub(super) fn capture_stream(&self) -> CUstream {
        self.captures
    }

    /// How often the host waited for the work.
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Makes the context the calling thread's.
    pub(crate) fn bind(&self) -> Result {
        // SAFETY: the context is retained while this value lives.
        unsafe { ctx::set_current(self.context) }.map_err(|error| self.failed("cuCtxSetCurrent", error))
    }

    /// Memory with anything in it, or `None` where there is too little.
    pub(super) fn allocate(&self, bytes: usize) -> Result<Option<u64>> {
        self.bind()?;
        // SAFETY: the stream is this value's, and all work is on it.
        match unsafe { result::malloc_async(self.stream, bytes) } {
            Ok(address) => Ok(Some(address)),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
            Err(error) => Err(self.failed("cuMemAllocAsync", error)),
        }
    }

    /// Releases what [`Self::allocate`] returned, after the work that was queued so far.
    pub(super) fn issue_free(&self, address: u64) -> Result {
        // SAFETY: the address is the driver's, and the caller has no other use for it.
        unsafe { result::free_async(address, self.stream) }.map_err(|error| self.failed("cuMemFreeAsync", error))
    }

    /// Copies to the device from pageable memory; the source may change at once.
    pub(super) fn issue_pageable_write(&self, to: u64, bytes: &[u8]) -> Result {
        if bytes.len() > STAGED {
            self.settle()?;
        }
        // SAFETY: the caller has that much memory there, of plain numbers. The driver reads pageable memory before it returns.
        unsafe { result::memcpy_htod_async(to, bytes, self.stream) }
            .map_err(|error| self.failed("cuMemcpyHtoDAsync", error))
    }

    /// Copies to the host; the wait that follows is before anything reads the elements.
    pub(super) fn issue_read<T: Copy>(&self, to: &mut [T], from: u64) -> Result {
        // SAFETY: the caller has that much memory there, of plain numbers.
        unsafe { result::memcpy_dtoh_async(to, from, self.stream) }
            .map_err(|error| self.failed("cuMemcpyDtoHAsync", error))
    }

    /// Whether all work of one of the streams is done.
    fn is_idle(&self, stream: CUstream) -> Result<bool> {
        self.bind()?;
        // SAFETY: the stream is this value's.
        match unsafe { cuStreamQuery(stream) } {
            CUresult::CUDA_SUCCESS => Ok(true),
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => Err(CudaError::driver("cuStreamQuery", DriverError(error))),
        }
    }

    /// Waits for what is queued.
    pub(super) fn wait_for_stream(&self) -> Result {
        self.waits.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the stream is this value's.
        unsafe { stream::synchronize(self.stream) }.map_err(|error| self.failed("cuStreamSynchronize", error))
    }

    /// Waits for the copies in parallel with the work.
    pub(super) fn wait_for_copies(&self) -> Result {
        if !self.peers().is_empty() {
            return self.wait_with_ranks(|| self.is_idle(self.copies));
        }
        // SAFETY: the stream is this value's.
        unsafe { stream::synchronize(self.copies) }.map_err(|error| self.failed("cuStreamSynchronize", error))
    }

    /// Waits for the end of all copies and all work, before what they use is released. False where they may never end: a device is
    /// lost when a rank is missing, too. What they use has to stay then; the process ends soon.
    pub(crate) fn finish(&self) -> bool {
        if self.lost().is_some() || self.bind().is_err() {
            return false;
        }
        for stream in [self.copies, self.stream].into_iter().filter(|stream| !stream.is_null()) {
            // SAFETY: the stream is this value's.
            let _ = unsafe { stream::synchronize(stream) };
        }
        true
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.finish() {
            return;
        }
        let streams = [self.copies, self.stream, self.captures].into_iter().filter(|stream| !stream.is_null());
        // SAFETY: streams and the context are this value's.
        unsafe {
            for stream in streams {
                let _ = stream::destroy(stream);
            }
            let _ = primary_ctx::release(self.device);
        }
    }
}

/// The compute capability of a device on which kernels run: compiled for sm_80 and up, with memory in the order of a stream.
fn check(ordinal: i32, device: CUdevice) -> Result<(i32, i32)> {
    let major = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let pools = attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)?;
    let reason = match (major, pools) {
        (..8, _) => format!("its compute capability is {major}.{minor}; kernels need 8.0"),
        (_, 0) => "its driver has no memory pools".to_owned(),
        _ => return Ok((major, minor)),
    };
    let name = device::get_name(device).unwrap_or_default();
    Err(CudaError::NotSupported { ordinal, name, reason })
}

fn attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<c_int> {
    // SAFETY: the device is the driver's.
    unsafe { device::get_attribute(device, attribute) }
        .map_err(|error| CudaError::driver("cuDeviceGetAttribute", error))
}

//! Memory of the host that the device copies from and to by itself: page-locked, or pageable if no page-locked memory
//! is left.
#![allow(unsafe_code, reason = "page-locked memory is the driver's, made and released here")]

use std::ffi::c_void;
use std::ptr::NonNull;

use cudarc::driver::DriverError;
use cudarc::driver::result;
use cudarc::driver::sys::CUresult;

use super::driver::Driver;
use super::element::Element;
use super::error::Result;

/// Page-locked memory of the host.
pub(crate) struct PageLocked {
    /// `None` without a byte.
    start: Option<NonNull<u8>>,
    len: usize,
}

// SAFETY: memory that any thread may access; references to it follow the rules of references to this value.
unsafe impl Send for PageLocked {}
// SAFETY: the same.
unsafe impl Sync for PageLocked {}

impl PageLocked {
    /// Zeros, for the context of the calling thread.
    pub(crate) fn zeros(len: usize) -> std::result::Result<Self, DriverError> {
        if len == 0 {
            return Ok(Self { start: None, len });
        }
        // SAFETY: released by `drop`.
        let start = NonNull::new(unsafe { result::malloc_host(len, 0) }?.cast::<u8>());
        if let Some(start) = start {
            // SAFETY: the driver returned that many bytes.
            unsafe { start.write_bytes(0, len) };
        }
        Ok(Self { len: start.map_or(0, |_| len), start })
    }

    /// Like [`Self::zeros`], but `None` if no page-locked memory is left. Other errors are final.
    pub(super) fn if_any(driver: &Driver, len: usize) -> Result<Option<Self>> {
        match Self::zeros(len) {
            Ok(memory) => Ok(Some(memory)),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                tracing::warn!(
                    bytes = len,
                    "page-locked memory is not available: copies between host and GPU are slower"
                );
                Ok(None)
            }
            Err(error) => Err(driver.failed("cuMemHostAlloc", error)),
        }
    }

    /// Address of a range of its bytes; `None` beyond the end.
    fn address(&self, from: usize, len: usize) -> Option<NonNull<u8>> {
        let inside = from.checked_add(len).is_some_and(|end| end <= self.len);
        // SAFETY: within the memory.
        self.start.filter(|_| inside).map(|start| unsafe { start.add(from) })
    }

    /// A range of its bytes; empty beyond the end.
    pub(crate) fn part(&self, from: usize, len: usize) -> &[u8] {
        match self.address(from, len) {
            // SAFETY: within the memory, which is initialised; nothing writes while the slice lives.
            Some(start) => unsafe { std::slice::from_raw_parts(start.as_ptr(), len) },
            None => &[],
        }
    }

    /// A mutable range of its bytes, for a copy that writes them.
    #[cfg(test)]
    pub(crate) fn part_mut(&mut self, from: usize, len: usize) -> &mut [u8] {
        match self.address(from, len) {
            // SAFETY: as above, and the only reference, as `self` is.
            Some(start) => unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) },
            None => &mut [],
        }
    }

    /// Overwrites bytes from `at` on.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        if let Some(start) = self.address(at, bytes.len()) {
            // SAFETY: within the memory, and `bytes` are elsewhere. No copy that is under way reads it: the owner has waited for that.
            unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
    }
}

impl Drop for PageLocked {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            // SAFETY: the driver's memory, which only copies of the same owner use: they are done.
            let _ = unsafe { result::free_host(start.as_ptr().cast::<c_void>()) };
        }
    }
}

/// Buffer that copies to the host write.
pub(super) enum HostBuffer {
    PageLocked(PageLocked),
    Pageable(Vec<u64>),
}

impl HostBuffer {
    /// Zeros, for the context of the calling thread: page-locked if there is memory for it.
    pub(crate) fn zeros(driver: &Driver, len: usize) -> Result<Self> {
        let memory = PageLocked::if_any(driver, len)?.map(Self::PageLocked);
        Ok(memory.unwrap_or_else(|| Self::Pageable(vec![0; len.div_ceil(size_of::<u64>())])))
    }

    pub(super) fn is_pageable(&self) -> bool {
        matches!(self, Self::Pageable(_))
    }

    /// The first elements; none where there are fewer.
    pub(crate) fn elements<T: Element>(&self, len: usize) -> &[T] {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let (start, bytes) = match self {
            Self::PageLocked(memory) => {
                (memory.start.map_or(std::ptr::null(), |at| at.as_ptr().cast_const()), memory.len)
            }
            Self::Pageable(words) => (words.as_ptr().cast::<u8>(), size_of_val(&words[..])),
        };
        if start.is_null() || len > bytes / size_of::<T>() {
            return &[];
        }
        // SAFETY: within the memory, which is initialised and aligned to pages or to eight bytes; elements are plain numbers. No copy
        // that is under way writes it: the owner has waited for that.
        unsafe { std::slice::from_raw_parts(start.cast::<T>(), len) }
    }

    /// Mutable elements, for a copy that writes them.
    pub(super) fn elements_mut<T: Element>(&mut self, len: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let (start, bytes) = match self {
            Self::PageLocked(memory) => (memory.start.map_or(std::ptr::null_mut(), NonNull::as_ptr), memory.len),
            Self::Pageable(words) => (words.as_mut_ptr().cast::<u8>(), size_of_val(&words[..])),
        };
        if start.is_null() || len > bytes / size_of::<T>() {
            return &mut [];
        }
        // SAFETY: as above, and the only reference, as `self` is.
        unsafe { std::slice::from_raw_parts_mut(start.cast::<T>(), len) }
    }
}

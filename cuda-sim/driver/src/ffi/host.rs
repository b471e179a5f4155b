//! Host side of streams: memory that copies read or write later, and functions that streams call.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, PoisonError};

use crate::error::{INVALID_VALUE, OUT_OF_MEMORY, Result};

/// Memory of the host that is used when a copy runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostMemory {
    address: usize,
    length: usize,
}

impl HostMemory {
    /// # Safety
    ///
    /// The memory stays valid until the copy has run, as the driver's interface demands.
    pub(crate) unsafe fn new(pointer: *const u8, length: usize) -> Self {
        Self { address: pointer as usize, length }
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    pub(crate) fn read(&self) -> Vec<u8> {
        // SAFETY: valid for reads of this length by the contract of `new`.
        unsafe { std::slice::from_raw_parts(self.address as *const u8, self.length) }.to_vec()
    }

    /// Writes as many bytes as the memory has.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let length = bytes.len().min(self.length);
        // SAFETY: valid for writes of this length by the contract of `new`.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.address as *mut u8, length) };
    }
}

/// A function of the host that a stream calls.
#[derive(Debug, Clone)]
pub(crate) struct HostCall {
    function: unsafe extern "C" fn(*mut c_void),
    data: usize,
    label: String,
    /// If it may wait for others than this process' streams, as a collective does, a number that all such calls of its communicator have.
    pub(crate) group: Option<usize>,
}

impl HostCall {
    /// # Safety
    ///
    /// The function may be called with this argument from any thread, once for each time that the work runs.
    pub(crate) unsafe fn new(function: unsafe extern "C" fn(*mut c_void), data: *mut c_void, label: &str) -> Self {
        Self { function, data: data as usize, label: label.to_owned(), group: None }
    }

    /// Marks the function as one that may wait.
    pub(crate) fn waiting(self, group: usize) -> Self {
        Self { group: Some(group), ..self }
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    pub(crate) fn run(&self) {
        // SAFETY: callable with this argument by the contract of `new`.
        unsafe { (self.function)(self.data as *mut c_void) };
    }
}

/// Page-locked memory: address and bytes. Copies with it run late on both sides.
static PINNED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

const ALIGNMENT: usize = 4096;

fn layout(length: usize) -> Result<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(length.max(1), ALIGNMENT).map_err(|_| INVALID_VALUE)
}

pub(crate) fn allocate_pinned(length: usize) -> Result<*mut c_void> {
    // SAFETY: the layout has a size.
    let pointer = unsafe { std::alloc::alloc_zeroed(layout(length)?) };
    if pointer.is_null() {
        return Err(OUT_OF_MEMORY);
    }
    PINNED.lock().unwrap_or_else(PoisonError::into_inner).insert(pointer as usize, length);
    Ok(pointer.cast())
}

/// Frees what `allocate_pinned` gave.
pub(crate) fn free_pinned(pointer: *mut c_void) -> Result {
    let removed = PINNED.lock().unwrap_or_else(PoisonError::into_inner).remove(&(pointer as usize));
    let layout = layout(removed.ok_or(INVALID_VALUE)?)?;
    // SAFETY: it came from `allocate_pinned` with this layout, and is removed once.
    unsafe { std::alloc::dealloc(pointer.cast(), layout) };
    Ok(())
}

/// Whether an address lies in page-locked memory.
pub(crate) fn is_pinned(pointer: *const u8) -> bool {
    let pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
    let before = pinned.range(..=pointer as usize).next_back();
    before.is_some_and(|(base, length)| (pointer as usize) < base + length)
}

/// Bytes of the host, copied.
///
/// # Safety
///
/// `pointer` is valid for reads of `length` bytes.
pub(crate) unsafe fn bytes(pointer: *const u8, length: usize) -> Result<Vec<u8>> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: valid by the contract of this function.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) }.to_vec())
}

/// A name that ends with a zero.
///
/// # Safety
///
/// `pointer` is null or a string of C.
pub(crate) unsafe fn text(pointer: *const c_char) -> Result<String> {
    if pointer.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: a string of C by the contract of this function.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// Writes a text and a zero, cut to what fits.
///
/// # Safety
///
/// `to` is valid for writes of `capacity` bytes.
pub(crate) unsafe fn put_text(text: &str, to: *mut c_char, capacity: usize) -> Result {
    if to.is_null() || capacity == 0 {
        return Err(INVALID_VALUE);
    }
    let length = text.len().min(capacity - 1);
    // SAFETY: `length + 1` bytes fit in `capacity`.
    unsafe {
        std::ptr::copy(text.as_ptr(), to.cast(), length);
        to.add(length).write(0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_locked_memory_that_is_not_there_is_an_error() {
        assert_eq!(allocate_pinned(1 << 62), Err(OUT_OF_MEMORY));
    }
}

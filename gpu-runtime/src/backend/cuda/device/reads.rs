//! Copies to the host for files, concurrent with the device's work. They run on a stream of their own, from memory that
//! is not being written, into two buffers in turn: while one is filled, the caller reads the other.
#![allow(unsafe_code, reason = "the driver writes page-locked memory after the call")]

use std::io;

use cudarc::driver::result;

use super::driver::Driver;
use super::element::Element;
use super::error::Result;
use super::event::Event;
use super::page_locked::HostBuffer;

/// Bytes of a buffer. Tests have less, so that they fill several.
const CHUNK: usize = if cfg!(test) { 1 << 10 } else { 16 << 20 };

/// Receiver of the elements, chunk after chunk.
pub(super) type ElementSink<'a, T> = dyn FnMut(&[T]) -> io::Result<()> + 'a;

/// A buffer of the host that copies fill.
pub(crate) struct Buffer {
    memory: HostBuffer,
    filled: Event,
    copy: Copying,
}

/// Whether a copy may write a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copying {
    No,
    /// Until the buffer's event, which is not recorded yet.
    Queued,
    /// Until the buffer's event.
    UntilFilled,
}

impl Buffer {
    pub(crate) fn new(driver: &Driver) -> Result<Self> {
        Ok(Self { memory: HostBuffer::zeros(driver, CHUNK)?, filled: Event::new(driver)?, copy: Copying::No })
    }

    /// Begins to fill it with elements.
    fn fill<T: Element>(&mut self, driver: &Driver, from: u64, len: usize) -> Result {
        let to = self.memory.elements_mut::<T>(len);
        self.copy = Copying::Queued;
        // SAFETY: the caller has that many elements there. Nothing reads the buffer before `filled`.
        unsafe { result::memcpy_dtoh_async(to, from, driver.copy_stream()) }
            .map_err(|error| driver.failed("cuMemcpyDtoHAsync", error))?;
        self.filled.record(driver, driver.copy_stream())?;
        self.copy = Copying::UntilFilled;
        Ok(())
    }

    /// Waits until it is filled, if it is being filled.
    fn finish(&mut self, driver: &Driver) -> Result {
        match self.copy {
            Copying::No => return Ok(()),
            Copying::Queued => driver.wait_for_copies()?,
            Copying::UntilFilled => self.filled.wait(driver)?,
        }
        self.copy = Copying::No;
        Ok(())
    }
}

/// Buffers in use: however that ends, no copy is under way then, so that their source may be overwritten or released. Where a rank is
/// missing the copy may wait for it without end: all errors are final then, and nothing is queued that would write the source.
struct Filling<'a>(&'a Driver, &'a mut [Buffer; 2]);

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        // An error is final for the device: whoever uses it next gets it.
        let waited = self.1.iter_mut().map(|buffer| buffer.finish(self.0)).fold(Ok(()), Result::and);
        if waited.is_err() {
            let _ = self.0.wait_for_copies();
        }
    }
}

/// Calls `each` with `len` elements at address `from`, part after part, as they are after an event, and ends with its error. Until then nothing may write them,
/// and their memory may not be released.
pub(crate) fn read<T: Element>(
    driver: &Driver,
    buffers: &mut [Buffer; 2],
    after: &Event,
    from: u64,
    len: usize,
    each: &mut ElementSink<'_, T>,
) -> Result<io::Result<()>> {
    if buffers.iter().any(|buffer| buffer.memory.is_pageable()) {
        // The driver would wait for it within the copy, perhaps without end.
        after.wait(driver)?;
    }
    after.make_stream_wait(driver, driver.copy_stream())?;
    let filling = Filling(driver, buffers);
    let [mut now, mut next] = filling.1.each_mut();
    let most = CHUNK / size_of::<T>();
    let count = |first: usize| most.min(len.saturating_sub(first));
    let fill = |buffer: &mut Buffer, first: usize| match count(first) {
        0 => Ok(()),
        count => buffer.fill::<T>(driver, from + (first * size_of::<T>()) as u64, count),
    };
    fill(now, 0)?;
    for first in (0..len).step_by(most) {
        fill(next, first + most)?;
        now.finish(driver)?;
        if let Err(error) = each(now.memory.elements(count(first))) {
            return Ok(Err(error));
        }
        std::mem::swap(&mut now, &mut next);
    }
    Ok(Ok(()))
}

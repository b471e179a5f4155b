//! Copies to the device through page-locked memory, so that the host continues while they run.
#![allow(unsafe_code, reason = "the driver reads page-locked memory after the call")]

use cudarc::driver::result;

use super::driver::Driver;
use super::error::Result;
use super::event::Event;
use super::page_locked::PageLocked;

/// Parts of the memory, and bytes of each. Tests have less, so that they reach its end.
const PARTS: usize = 4;
const PART: usize = if cfg!(test) { 1 << 10 } else { 4 << 20 };

/// Alignment of the host's bytes that are copied.
const ALIGNMENT: usize = 64;

/// Page-locked memory that copies go through in turn: a part is overwritten once the copies from it are done.
#[derive(Default)]
pub(super) enum Uploads {
    /// The state before the first copy.
    #[default]
    New,
    Ring(Ring),
    /// No page-locked memory is left: the driver copies from pageable memory.
    Pageable,
}

pub(super) struct Ring {
    parts: Vec<Part>,
    current: usize,
    /// Bytes of the current part that copies read.
    used: usize,
}

struct Part {
    memory: PageLocked,
    /// Recorded behind the copies from this part and all work queued before the next part was begun.
    copied: Event,
    is_read: bool,
}

impl Uploads {
    /// The memory, if there is any.
    pub(super) fn ring(&mut self, driver: &Driver) -> Result<Option<&mut Ring>> {
        if matches!(self, Self::New) {
            let mut parts = Vec::with_capacity(PARTS);
            while parts.len() < PARTS
                && let Some(memory) = PageLocked::if_any(driver, PART)?
            {
                parts.push(Part { memory, copied: Event::new(driver)?, is_read: false });
            }
            // With one part the host would wait for each copy.
            *self = if parts.len() < 2 { Self::Pageable } else { Self::Ring(Ring { parts, current: 0, used: 0 }) };
        }
        match self {
            Self::Ring(ring) => Ok(Some(ring)),
            Self::New | Self::Pageable => Ok(None),
        }
    }
}

impl Ring {
    /// Copies the first bytes to the device, as many as fit in a part, and returns their number; the caller may change
    /// them at once. Waits for memory, not for the copy.
    pub(crate) fn write(&mut self, driver: &Driver, to: u64, bytes: &[u8]) -> Result<usize> {
        let room = PART - self.used;
        // What fits in a part is copied at once.
        if room < bytes.len().min(PART) && (bytes.len() <= PART || room == 0) {
            self.turn(driver)?;
        }
        let now = &bytes[..bytes.len().min(PART - self.used)];
        let part = &mut self.parts[self.current];
        part.memory.write(self.used, now);
        // SAFETY: the caller has that much memory there, of plain numbers. What the copy reads is not overwritten before `copied`.
        unsafe { result::memcpy_htod_async(to, part.memory.part(self.used, now.len()), driver.raw_stream()) }
            .map_err(|error| driver.failed("cuMemcpyHtoDAsync", error))?;
        self.used = (self.used + now.len()).next_multiple_of(ALIGNMENT).min(PART);
        Ok(now.len())
    }

    /// Goes on with the next part.
    fn turn(&mut self, driver: &Driver) -> Result {
        let full = &mut self.parts[self.current];
        full.copied.record(driver, driver.raw_stream())?;
        full.is_read = true;
        (self.current, self.used) = ((self.current + 1) % self.parts.len(), 0);
        let next = &mut self.parts[self.current];
        if next.is_read {
            next.copied.wait(driver)?;
            next.is_read = false;
        }
        Ok(())
    }
}

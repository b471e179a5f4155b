//! Copies between the host and a device, and the host memory that they pass through.

use std::io;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use super::driver::Driver;
use super::element::Element;
use super::error::Result;
use super::event::Event;
use super::reads::{Buffer, ElementSink, read};
use super::uploads::Uploads;

/// The driver of a device, and memory for copies from and to the host.
pub(crate) struct Transfers {
    driver: Driver,
    uploads: Mutex<Uploads>,
    buffers: Mutex<Option<[Buffer; 2]>>,
}

impl Deref for Transfers {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        &self.driver
    }
}

impl Transfers {
    pub(crate) fn new(driver: Driver) -> Self {
        Self { driver, uploads: Mutex::default(), buffers: Mutex::default() }
    }

    /// Copies to the device, in the order of its work; the source may change at once.
    pub(super) fn issue_write(&self, mut to: u64, mut bytes: &[u8]) -> Result {
        while !bytes.is_empty() {
            // Other threads copy between the parts of a large array.
            let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
            let copied = match uploads.ring(&self.driver)? {
                Some(ring) => ring.write(&self.driver, to, bytes)?,
                None => return self.driver.issue_pageable_write(to, bytes),
            };
            (to, bytes) = (to + copied as u64, bytes.get(copied..).unwrap_or_default());
        }
        Ok(())
    }

    /// Copies to the host in parallel with the work; see [`read`].
    pub(crate) fn read<T: Element>(
        &self,
        after: &Event,
        from: u64,
        len: usize,
        each: &mut ElementSink<'_, T>,
    ) -> Result<io::Result<()>> {
        self.driver.bind()?;
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let buffers = match &mut *buffers {
            Some(buffers) => buffers,
            none => none.insert([Buffer::new(&self.driver)?, Buffer::new(&self.driver)?]),
        };
        read(&self.driver, buffers, after, from, len, each)
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        // While the context is there.
        let uploads = std::mem::take(self.uploads.get_mut().unwrap_or_else(PoisonError::into_inner));
        let buffers = self.buffers.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if !self.driver.finish() {
            std::mem::forget((uploads, buffers));
        }
    }
}

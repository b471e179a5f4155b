//! Copies between the host and a device, with the memory of the host that they go through.

use std::io;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use super::Result;
use super::driver::Driver;
use super::element::Element;
use super::event::Event;
use super::reads::{Buffer, Part, read};
use super::uploads::Uploads;

/// The driver of a device, and memory for copies from and to the host.
pub(super) struct Transfers {
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
    pub(super) fn new(driver: Driver) -> Self {
        Self { driver, uploads: Mutex::default(), buffers: Mutex::default() }
    }

    /// Copies to the device, in the order of its work; the source may change at once.
    pub(super) fn issue_write(&self, to: u64, bytes: &[u8]) -> Result {
        let mut uploads = self.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        match uploads.ring(&self.driver)? {
            Some(ring) => ring.write(&self.driver, to, bytes),
            None => self.driver.issue_pageable_write(to, bytes),
        }
    }

    /// Copies to the host beside the work, see [`read`].
    pub(super) fn read<T: Element>(
        &self,
        after: &Event,
        of: (u64, usize),
        each: &mut Part<'_, T>,
    ) -> Result<io::Result<()>> {
        self.driver.bind()?;
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let buffers = match &mut *buffers {
            Some(buffers) => buffers,
            none => none.insert([Buffer::new(&self.driver)?, Buffer::new(&self.driver)?]),
        };
        read(&self.driver, buffers, (after, of), each)
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        if self.driver.bind().is_ok() {
            self.driver.finish();
        }
        // While the context is there.
        *self.uploads.get_mut().unwrap_or_else(PoisonError::into_inner) = Uploads::default();
        *self.buffers.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

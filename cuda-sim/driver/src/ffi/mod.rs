//! The C functions of the driver.
//!
//! Pointers are used as NVIDIA's documentation of the driver's interface allows: what a call writes is writable, what it
//! reads is readable, names end with a zero. Handles are numbers that are looked up, so that a wrong one is refused.
#![allow(unsafe_code, reason = "functions that C calls, with its pointers")]
#![allow(non_snake_case, reason = "the names of the driver's functions")]

mod context;
mod control;
mod device;
mod event;
mod graph;
pub(crate) mod host;
mod launch;
mod memory;
mod module;
mod pool;
mod stream;

use crate::driver::{self, Extent};
use crate::error::{INVALID_VALUE, Result};

/// Defines exported functions; their bodies give a `Result`.
macro_rules! exported {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(unused_unsafe, reason = "some functions use no pointer")]
        unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            // SAFETY: the caller keeps the contract of the driver's interface for the pointers that it passes.
            let body = || -> $crate::error::Result { unsafe { $body } };
            match body() {
                Ok(()) => 0,
                Err(code) => code.0,
            }
        }
    )*};
}
pub(crate) use exported;

/// Writes a result where the caller wants it.
///
/// # Safety
///
/// `to` is null or writable.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and writable by the contract of this function.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Gives chance a moment to run something on a device.
fn spontaneous(device: usize) -> Result {
    let steps = driver::with(|driver| driver.device(device).map(|device| device.spontaneous_steps()))?;
    if steps == 0 {
        return Ok(());
    }
    driver::advance(device, Extent::UpTo(steps), |device| Ok(device.is_idle()))
}

/// Waits for everything on a stream.
fn synchronize(device: usize, stream: usize) -> Result {
    driver::advance(device, Extent::Wait, |device| device.is_complete(stream))?;
    driver::with(|driver| {
        driver.device(device)?.host_knows(stream);
        Ok(())
    })
}

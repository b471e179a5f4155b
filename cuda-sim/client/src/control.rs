//! Counters, faults and reports.

use std::ffi::{CString, c_char};

use crate::{Client, ClientError, Result, checked};

type Counter = unsafe extern "C" fn(*const c_char, *const c_char, *mut u64) -> i32;
type Report = unsafe extern "C" fn(*mut c_char, usize) -> i32;

impl Client {
    /// A kernel's counter on the device of the thread's context; the kernel `*` stands for all.
    ///
    /// # Errors
    ///
    /// If the counter does not exist.
    pub fn counter(&self, kernel: &str, name: &str) -> Result<u64> {
        let counter: Counter = self.symbol(b"cudasim_counter")?;
        let [kernel, name] = [kernel, name].map(CString::new);
        let (kernel, name) = (kernel.map_err(|_| ClientError::Name)?, name.map_err(|_| ClientError::Name)?);
        let mut value = 0;
        // SAFETY: two names and a place for a number.
        checked(unsafe { counter(kernel.as_ptr(), name.as_ptr(), &raw mut value) })?;
        Ok(value)
    }

    /// Lets the `nth` allocation from now fail on the device of the thread's context; 0 for none.
    ///
    /// # Errors
    ///
    /// If the thread has no context.
    pub fn fail_allocation(&self, nth: u64) -> Result {
        let fail: unsafe extern "C" fn(u64) -> i32 = self.symbol(b"cudasim_fail_allocation")?;
        // SAFETY: it takes a number.
        checked(unsafe { fail(nth) })
    }

    /// Lets the `nth` launch from now fail on the device of the thread's context; 0 for none.
    ///
    /// # Errors
    ///
    /// If the thread has no context.
    pub fn fail_launch(&self, nth: u64) -> Result {
        let fail: unsafe extern "C" fn(u64) -> i32 = self.symbol(b"cudasim_fail_launch")?;
        // SAFETY: it takes a number.
        checked(unsafe { fail(nth) })
    }

    /// Lets `count` allocations of page-locked memory fail on the device of the thread's context, from the `nth` from now on; 0 for none.
    ///
    /// # Errors
    ///
    /// If the thread has no context.
    pub fn fail_pinned(&self, nth: u64, count: u64) -> Result {
        let fail: unsafe extern "C" fn(u64, u64) -> i32 = self.symbol(b"cudasim_fail_pinned")?;
        // SAFETY: it takes two numbers.
        checked(unsafe { fail(nth, count) })
    }

    /// Lets the `nth` record of an event from now fail on the device of the thread's context; 0 for none.
    ///
    /// # Errors
    ///
    /// If the thread has no context.
    pub fn fail_event(&self, nth: u64) -> Result {
        let fail: unsafe extern "C" fn(u64) -> i32 = self.symbol(b"cudasim_fail_event")?;
        // SAFETY: it takes a number.
        checked(unsafe { fail(nth) })
    }

    /// The report of the error that stopped the device of the thread's context; empty without an error.
    ///
    /// # Errors
    ///
    /// If the thread has no context.
    pub fn report(&self) -> Result<String> {
        let report: Report = self.symbol(b"cudasim_report")?;
        let mut bytes = vec![0u8; 4096];
        // SAFETY: the buffer has this length.
        checked(unsafe { report(bytes.as_mut_ptr().cast(), bytes.len()) })?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

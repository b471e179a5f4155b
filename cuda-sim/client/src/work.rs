//! Work of streams that reads and writes device memory.

use std::ffi::{CString, c_char, c_void};

use crate::{Client, ClientError, Result, checked};

type Call = unsafe extern "C" fn(usize, *const c_char, unsafe extern "C" fn(*mut c_void), *mut c_void) -> i32;
type CallWaiting =
    unsafe extern "C" fn(usize, usize, *const c_char, unsafe extern "C" fn(*mut c_void), *mut c_void) -> i32;
type Read = unsafe extern "C" fn(*mut u8, u64, usize) -> i32;
type Write = unsafe extern "C" fn(u64, *const u8, usize) -> i32;

/// Work that a stream does in its order. It may be called more than once, if a graph captured it.
pub type Work = Box<dyn Fn(&Client) + Send + Sync>;

struct Job {
    client: Client,
    work: Work,
}

unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: `Client::call` passes a job that is never freed.
    let job = unsafe { &*data.cast::<Job>() };
    (job.work)(&job.client);
}

/// Never freed: a graph may call it again.
fn leaked(work: Work) -> Result<*mut c_void> {
    let job = Box::leak(Box::new(Job { client: Client::open()?, work }));
    Ok(std::ptr::from_mut(job).cast())
}

impl Client {
    /// Lets a stream, named by its CUDA handle, call a function in its order.
    ///
    /// # Errors
    ///
    /// If the stream refuses work.
    pub fn call(&self, stream: usize, label: &str, work: Work) -> Result {
        let call: Call = self.symbol(b"cudasim_call")?;
        let label = CString::new(label).map_err(|_| ClientError::Name)?;
        let job = leaked(work)?;
        // SAFETY: `run` may be called with the job at any time, on any thread.
        checked(unsafe { call(stream, label.as_ptr(), run, job) })
    }

    /// Queues a function that may wait for other ranks: it runs on a thread of its own. All such functions of a
    /// communicator have the same group.
    ///
    /// # Errors
    ///
    /// If the stream refuses work.
    pub fn call_waiting(&self, stream: usize, group: usize, label: &str, work: Work) -> Result {
        let call: CallWaiting = self.symbol(b"cudasim_call_waiting")?;
        let label = CString::new(label).map_err(|_| ClientError::Name)?;
        let job = leaked(work)?;
        // SAFETY: `run` may be called with the job at any time, on any thread.
        checked(unsafe { call(stream, group, label.as_ptr(), run, job) })
    }

    /// Waits until no stream runs a function of this group or will.
    ///
    /// # Errors
    ///
    /// If the driver is not the simulator.
    pub fn finish(&self, group: usize) -> Result {
        let finish: unsafe extern "C" fn(usize) -> i32 = self.symbol(b"cudasim_finish")?;
        // SAFETY: it takes a number.
        checked(unsafe { finish(group) })
    }

    /// Reads device memory; only inside work that a stream calls.
    ///
    /// # Errors
    ///
    /// If the bytes are out of bounds, uninitialised, or written by something concurrent: the device stops.
    pub fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let read: Read = self.symbol(b"cudasim_read")?;
        let mut bytes = vec![0; length];
        // SAFETY: the buffer has this length.
        checked(unsafe { read(bytes.as_mut_ptr(), address, length) })?;
        Ok(bytes)
    }

    /// Writes device memory; only inside work that a stream calls.
    ///
    /// # Errors
    ///
    /// If the bytes are out of bounds, or touched by something concurrent: the device stops.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result {
        let write: Write = self.symbol(b"cudasim_write")?;
        // SAFETY: the buffer has this length.
        checked(unsafe { write(address, bytes.as_ptr(), bytes.len()) })
    }

    /// Checks that another device may touch a range of this one's memory directly; only inside work that a stream calls.
    ///
    /// # Errors
    ///
    /// If it may not: the device stops.
    pub fn check_peer(&self, address: u64, length: usize, peer: usize) -> Result {
        let check: unsafe extern "C" fn(u64, usize, usize) -> i32 = self.symbol(b"cudasim_check_peer")?;
        // SAFETY: it takes numbers.
        checked(unsafe { check(address, length, peer) })
    }

    /// The device of the thread's context.
    ///
    /// # Errors
    ///
    /// If the thread has no context.
    pub fn current_device(&self) -> Result<usize> {
        let device: unsafe extern "C" fn(*mut i32) -> i32 = self.symbol(b"cuCtxGetDevice")?;
        let mut number = 0;
        // SAFETY: there is a place for the number.
        checked(unsafe { device(&raw mut number) })?;
        // The simulator numbers devices from 0.
        Ok(number.unsigned_abs() as usize)
    }

    /// Lets the process' other devices do a little, while work waits for one of them.
    ///
    /// # Errors
    ///
    /// If the driver is not the simulator.
    pub fn progress(&self) -> Result {
        let progress: unsafe extern "C" fn() -> i32 = self.symbol(b"cudasim_progress")?;
        // SAFETY: it takes nothing.
        checked(unsafe { progress() })
    }

    /// Lets devices do a little whose streams will come to a function that may wait for other ranks; whether there was anything to do.
    ///
    /// # Errors
    ///
    /// If the driver is not the simulator.
    pub fn progress_waiting(&self) -> Result<bool> {
        let progress: unsafe extern "C" fn(*mut bool) -> i32 = self.symbol(b"cudasim_progress_waiting")?;
        let mut ran = false;
        // SAFETY: there is a place for the answer.
        checked(unsafe { progress(&raw mut ran) })?;
        Ok(ran)
    }
}

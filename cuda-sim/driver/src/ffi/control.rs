//! Functions that the simulator adds to the driver's, all under `cudasim_`. They are for tests, and for the other
//! simulated libraries, which must read and write device memory as operations of a stream.

use std::ffi::{c_char, c_void};

use crate::config::PeerAccess;
use crate::device::Device;
use crate::driver::{self, Extent, calling, try_with, with, with_current};
use crate::error::{Code, INVALID_VALUE, NOT_FOUND, Result};
use crate::ffi::host::{self, HostCall};
use crate::ffi::memory::submit;
use crate::ffi::{exported, put};
use crate::work::Work;
use cuda_sim_ptx::Stop;

/// Reports a stop of the operation that the thread's call belongs to.
fn stopped<T>(device: usize, result: std::result::Result<T, Stop>) -> Result<T> {
    result.map_err(|stop| {
        with(|driver| {
            if let Ok(device) = driver.device(device) {
                device.fail(&stop);
            }
        });
        Code::from(&stop)
    })
}

exported! {
    /// Calls a function in the order of a stream; it may use `cudasim_read` and `cudasim_write`.
    fn cudasim_call(
        stream: usize,
        label: *const c_char,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) {
        let label = host::text(label)?;
        submit(stream, Work::Call(HostCall::new(function, data, &label)))
    }

    /// Queues a function that may wait for other ranks, as a kernel of a collective does: it runs on a thread of its
    /// own. All such functions of a communicator have the same group number.
    fn cudasim_call_waiting(
        stream: usize,
        group: usize,
        label: *const c_char,
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) {
        let label = host::text(label)?;
        submit(stream, Work::Call(HostCall::new(function, data, &label).waiting(group)))
    }

    /// Copies device memory to the host, inside a function that a stream calls.
    fn cudasim_read(to: *mut u8, from: u64, length: usize) {
        let (device, op) = calling().ok_or(INVALID_VALUE)?;
        let read = try_with(|driver| {
            let memory = &mut driver.device(device)?.memory;
            Ok(memory.touch(from, length, false, &op).and_then(|()| memory.read(from, length)))
        })?;
        let bytes = stopped(device, read)?;
        std::ptr::copy(bytes.as_ptr(), to, length);
        Ok(())
    }

    /// Copies host memory to the device, inside a function that a stream calls.
    fn cudasim_write(to: u64, from: *const u8, length: usize) {
        let (device, op) = calling().ok_or(INVALID_VALUE)?;
        let bytes = host::bytes(from, length)?;
        let written = try_with(|driver| {
            let memory = &mut driver.device(device)?.memory;
            Ok(memory.touch(to, length, true, &op).and_then(|()| memory.write(to, &bytes)))
        })?;
        stopped(device, written)
    }

    /// Checks that another device may touch memory of this one, inside a function that a stream calls. Devices that can't
    /// access each other exchange through the host, where each touches its own memory.
    fn cudasim_check_peer(address: u64, length: usize, peer: usize) {
        let (device, _) = calling().ok_or(INVALID_VALUE)?;
        let checked = try_with(|driver| {
            let direct = driver.peer_access != PeerAccess::None && peer != device;
            let own = driver.device(device)?;
            Ok(if direct { own.check_peer(address, length, peer) } else { Ok(()) })
        })?;
        stopped(device, checked)
    }

    /// Runs something on every other device, for a call that waits for another rank of the process.
    fn cudasim_progress() {
        let own = calling().map(|(device, _)| device);
        let count = with(|driver| driver.devices.len());
        for device in (0..count).filter(|device| Some(*device) != own) {
            // An error that stops another device is reported to the users of that device.
            driver::progress(device, |device| !device.is_idle());
        }
        Ok(())
    }

    /// Runs work on every device that will come to a function that may wait for other ranks; sets `ran` if there was
    /// any.
    fn cudasim_progress_waiting(ran: *mut bool) {
        let count = with(|driver| driver.devices.len());
        let devices_that_ran = (0..count).filter(|device| driver::progress(*device, Device::is_awaited)).count();
        put(ran, devices_that_ran > 0)
    }

    /// Waits until no device has a function of this group in a queue or running.
    fn cudasim_finish(group: usize) {
        let count = with(|driver| driver.devices.len());
        for device in 0..count {
            // What a stopped device did not come to, it never will.
            let _ = driver::advance(device, Extent::Wait, |device| Ok(!device.has_calls_of(group)));
        }
        Ok(())
    }

    /// Lets the `nth` allocation from now fail; 0 for none.
    fn cudasim_fail_allocation(nth: u64) {
        with_current(|device| {
            device.faults.set_allocation(nth);
            Ok(())
        })
    }

    /// Lets the `nth` launch from now fail; 0 for none.
    fn cudasim_fail_launch(nth: u64) {
        with_current(|device| {
            device.faults.set_launch(nth);
            Ok(())
        })
    }

    /// Lets `count` allocations of page-locked memory fail, from the `nth` from now on; 0 for none.
    fn cudasim_fail_pinned(nth: u64, count: u64) {
        with_current(|device| {
            device.faults.set_pinned(nth, count);
            Ok(())
        })
    }

    /// Lets the `nth` record of an event from now fail; 0 for none.
    fn cudasim_fail_event(nth: u64) {
        with_current(|device| {
            device.faults.set_event(nth);
            Ok(())
        })
    }

    /// The counter of a kernel on the thread's device, by their names; `*` sums all kernels.
    fn cudasim_counter(kernel: *const c_char, counter: *const c_char, value: *mut u64) {
        let (kernel, counter) = (host::text(kernel)?, host::text(counter)?);
        let total = with_current(|device| {
            let mut total = cuda_sim_ptx::Counters::default();
            for (name, counters) in &device.counters {
                if kernel == "*" || *name == kernel {
                    total += *counters;
                }
            }
            Ok(total)
        })?;
        let found = total.fields().into_iter().find(|(name, _)| *name == counter);
        put(value, found.ok_or(NOT_FOUND)?.1)
    }

    /// Forgets all counters of the thread's device.
    fn cudasim_reset_counters() {
        with_current(|device| {
            device.counters.clear();
            Ok(())
        })
    }

    /// Copies the report of the error that stopped the thread's device; empty without an error.
    fn cudasim_report(to: *mut c_char, capacity: usize) {
        let device = driver::current()?;
        let report = try_with(|driver| Ok(driver.device(device)?.report.clone()))?;
        host::put_text(&report, to, capacity)
    }
}

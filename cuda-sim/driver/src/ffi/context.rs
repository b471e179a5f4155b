//! Contexts: every device has its primary one, whose handle is the device's number plus one.

use std::ffi::{c_int, c_uint};

use crate::driver::{self, Extent};
use crate::error::{INVALID_CONTEXT, INVALID_DEVICE};
use crate::ffi::{exported, put};

exported! {
    fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) {
        let index = usize::try_from(device).map_err(|_| INVALID_DEVICE)?;
        driver::try_with(|driver| driver.device(index).map(|_| ())).map_err(|_| INVALID_DEVICE)?;
        put(context, index + 1)
    }

    fn cuDevicePrimaryCtxRelease_v2(_device: c_int) {
        Ok(())
    }

    fn cuCtxSetCurrent(context: usize) {
        if context == 0 {
            driver::set_current(None);
            return Ok(());
        }
        driver::try_with(|driver| driver.device(context - 1).map(|_| ())).map_err(|_| INVALID_CONTEXT)?;
        driver::set_current(Some(context - 1));
        Ok(())
    }

    fn cuCtxGetCurrent(context: *mut usize) {
        put(context, driver::current().map_or(0, |device| device + 1))
    }

    fn cuCtxGetDevice(device: *mut c_int) {
        put(device, driver::current()? as c_int)
    }

    fn cuCtxSetFlags(_flags: c_uint) {
        Ok(())
    }

    fn cuCtxSynchronize() {
        let index = driver::current()?;
        driver::advance(index, Extent::Wait, |device| Ok(device.is_idle()))?;
        driver::try_with(|driver| {
            driver.device(index)?.host_knows_all();
            Ok(())
        })
    }

    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        put(least, 0)?;
        put(greatest, 0)
    }
}

//! Panics within the engine, caught at the boundary of the requests that they concern.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use trainyard_protocol::OpError;

/// A panic that was caught. Its cause is in the log.
#[derive(Clone, Copy, Debug)]
pub struct Fault;

/// What a panic carries where a device refused an op.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(test, feature = "cuda")), allow(dead_code, reason = "of other devices than the processor"))]
pub(crate) struct DeviceFault {
    /// What it said.
    pub(crate) message: String,
}

impl Fault {
    /// The error of the request that caused it.
    pub(crate) fn error(self) -> OpError {
        OpError::server("internal error in the engine; the server's log has the details")
    }
}

/// Calls `f`; a panic is logged and returned. The caller has to repair what `f` was changing.
pub(crate) fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        tracing::error!(what, cause = panic_text(&*panic), "the engine panicked");
        Fault
    })
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .or_else(|| panic.downcast_ref::<DeviceFault>().map(|fault| fault.message.as_str()))
        .unwrap_or("no message")
}

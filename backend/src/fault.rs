//! Panics within the engine, caught at the boundary of the requests that they concern.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use serde::{Deserialize, Serialize};
use trainyard_protocol::OpError;

use crate::interrupt;

/// A caught panic. Its cause is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// An error in the program, or a device that is lost.
    Panic,
    /// The device had too little memory; it remains usable.
    OutOfMemory,
    /// Nobody waited for the result, and what was being changed is incomplete.
    Interrupted,
}

/// Payload of a panic after a device refused an op.
#[derive(Clone, Debug)]
pub struct DeviceFault {
    /// Fault that the requests fail with.
    pub fault: Fault,
    /// Message of the panic.
    pub message: String,
}

impl Fault {
    /// The error of the request that caused it.
    pub fn error(self) -> OpError {
        OpError::server(match self {
            Self::Interrupted => return interrupt::ended(),
            Self::Panic => "internal error in the engine; the server's log has the details",
            Self::OutOfMemory => {
                "out of device memory: the request needs more than the GPU has left; send smaller requests, or try \
                 again when fewer models are loaded; the server's log has the details"
            }
        })
    }
}

/// Calls `f`; a panic is logged and returned. The caller has to repair what `f` was changing.
pub fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let fault = fault_of(&*panic);
        let cause = panic_text(&*panic);
        match fault {
            Fault::Panic => tracing::error!(what, cause, "the engine panicked"),
            Fault::OutOfMemory => tracing::error!(what, cause, "the device is out of memory"),
            Fault::Interrupted => tracing::debug!(what, cause, "interrupted"),
        }
        fault
    })
}

/// Calls `f`; `None` where the device had too little memory for it, which the caller handles: the log has nothing of that. Any
/// other panic goes on.
pub fn if_memory_suffices<T>(f: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(panic) if fault_of(&*panic) == Fault::OutOfMemory => None,
        Err(panic) => resume_unwind(panic),
    }
}

fn fault_of(panic: &(dyn Any + Send)) -> Fault {
    panic.downcast_ref::<DeviceFault>().map_or(Fault::Panic, |refused| refused.fault)
}

/// Text of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .or_else(|| panic.downcast_ref::<DeviceFault>().map(|fault| fault.message.as_str()))
        .unwrap_or("no message")
}

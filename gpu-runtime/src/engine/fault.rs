//! Panics within the engine, caught where it is known what they concern.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use trainyard_protocol::OpError;

/// A panic that was caught.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    cause: String,
}

impl Fault {
    /// What the request at fault is told.
    pub(super) fn error(&self) -> OpError {
        OpError::server(format!("internal error in the engine: {}", self.cause))
    }
}

/// Calls `f`; a panic is logged and returned. Whoever calls brings what `f` changes in order.
pub(super) fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| {
        let cause = panic_text(&*panic).to_owned();
        tracing::error!(what, cause, "the engine panicked");
        Fault { cause }
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

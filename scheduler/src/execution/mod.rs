//! The path of a request from the queue to the worker and back, and the handling of failed executions.

mod cancel;
pub(crate) mod cancellations;
pub(crate) mod crashes;
mod dispatch;
mod drain;
mod ended;
pub(crate) mod memory_waits;
mod payloads;
pub(crate) mod prefetch;
pub(crate) mod quarantine;
mod queue_effects;
pub(crate) mod rejection;
mod run_snapshots;

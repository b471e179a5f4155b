//! State shared by all parts of a scheduler: the state of the process, its clock, its options and its errors.

pub(crate) mod actor;
pub(crate) mod caches;
pub(crate) mod client_waiters;
pub(crate) mod clock;
pub(crate) mod core;
pub(crate) mod database_clock;
pub(crate) mod error;
pub(crate) mod lock;
pub(crate) mod options;
pub(crate) mod origin;
pub(crate) mod session_heartbeats;
pub(crate) mod trace_context;
pub(crate) mod waiters;
pub(crate) mod wakeup;
pub(crate) mod work_log;

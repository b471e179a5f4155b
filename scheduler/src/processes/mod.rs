//! Processes that share a database: locks, notifications, and refusal of an outdated program.

pub(crate) mod clock;
pub(crate) mod database_lock;
pub(crate) mod notifications;
mod outdated;
pub(crate) mod progress_exchange;
pub(crate) mod schema_watch;
pub(crate) mod signals;

//! Tokens of samples in execution: the tasks that wait for them, and their way between processes.

mod lines;
mod outbox;
mod watches;

pub(crate) use lines::{decode, encode};
pub(crate) use outbox::ProgressOutbox;
pub(crate) use watches::ProgressWatches;
pub use watches::WatchedSample;

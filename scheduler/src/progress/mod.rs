//! Tokens of samples in execution: the tasks that wait for them, and their path between processes.

mod exchange;
mod lines;
mod outbox;
mod watches;

pub(crate) use exchange::Progress;
pub(crate) use lines::{decode, encode};
pub use watches::WatchedSample;

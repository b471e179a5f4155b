//! Tokens of samples while they are executed: who waits for them, and how they travel between processes.

mod lines;
mod outbox;
mod watches;

pub(crate) use lines::{decode, encode};
pub(crate) use outbox::ProgressOutbox;
pub(crate) use watches::ProgressWatches;
pub use watches::WatchedSample;

//! Sessions, their sampling sessions and custom losses.

mod create;
mod custom_losses;
mod end;
mod finish;
mod heartbeat;
mod sampling;
mod search;

pub use custom_losses::MAX_CUSTOM_LOSSES;
pub(crate) use end::EndSession;
pub(crate) use heartbeat::ensure_alive;

//! Sessions and sampling sessions.

mod create;
mod end;
mod heartbeat;
mod sampling;
mod search;

pub(crate) use end::EndSession;
pub(crate) use heartbeat::ensure_alive;

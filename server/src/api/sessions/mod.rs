//! Sessions of clients, and their traces.

pub(super) mod create_session;
pub(super) mod session;
pub(super) mod session_finish;
pub(super) mod session_heartbeat;
pub(super) mod session_project;
#[allow(clippy::module_inception, reason = "a file has the name of its handler, a folder that of its tag")]
pub(super) mod sessions;
pub(super) mod sessions_search;
pub(super) mod trace_download;
pub(super) mod trace_export;

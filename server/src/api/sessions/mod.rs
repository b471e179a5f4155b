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

use crate::endpoint::table::endpoints;

endpoints! {
    keyed {
        post "/api/v1/create_session" create_session: AnyChange, [];
        post "/api/v1/session_heartbeat" session_heartbeat: AnyChange, [Missing, Over];
        get "/api/v1/sessions" sessions: Nothing, [];
        get "/api/v1/sessions/{session_id}" session: Nothing, [Missing];
        post "/api/v1/sessions/search" sessions_search: Nothing, [];
        put "/api/v1/sessions/{session_id}/project" session_project: AnyChange, [Missing];
        get "/api/v1/sessions/{session_id}/trace_export" trace_export: Nothing, [Missing];
        post "/api/v1/sessions/{session_id}/finish" session_finish: AnyChange, [Missing];
    }
    open {
        get "/api/v1/traces/{session_id}" trace_download: [Missing];
    }
}

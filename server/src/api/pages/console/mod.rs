//! The console: pages for browsers, which call the API with the session that a login starts.
//!
//! The folder `server/console` contains the page's files. They are part of the binary, which sends their modules as one
//! script. Data that only the pages need is under `/console/data`.

mod agents;
mod assets;
mod bundle;
mod events;
mod hosted;
mod login;
mod overview;
mod requests;
mod run;
mod runs;
mod samples;

use axum::Router;
use axum::routing::{get, post};

pub(in crate::api) use self::assets::{missing_page, page};
use crate::state::AppState;

/// Returns the routes that need no session.
pub(crate) fn open() -> Router<AppState> {
    Router::new()
        .route("/console", get(assets::to_page))
        .route("/console/", get(assets::to_page))
        .route("/console/{file}", get(assets::asset))
        .route("/console/session", get(login::session))
        .route("/console/login", post(login::login))
        .route("/console/logout", post(login::logout))
        .route("/sessions", get(hosted::sessions))
        .route("/sessions/{session_id}", get(hosted::session))
        .route("/runs", get(hosted::runs))
        .route("/runs/{run_id}", get(hosted::run))
        .route("/runs/{run_id}/samples", get(hosted::samples))
        .route("/agent_sessions", get(hosted::agent_sessions))
        .route("/agent_sessions/{agent_session_id}", get(hosted::agent_session))
        .route("/training_runs/{run_id}", get(hosted::training_run))
        .route("/checkpoints/{run_id}/{checkpoint_id}", get(hosted::checkpoint))
        .route("/playground", get(hosted::playground))
        .route("/keys", get(hosted::keys))
        .route("/keys/{key_id}", get(hosted::keys))
}

/// Returns the routes that need a session or a key.
pub(crate) fn keyed() -> Router<AppState> {
    Router::new()
        .route("/console/data/overview", get(overview::overview))
        .route("/console/data/runs", get(runs::runs))
        .route("/console/data/runs/{run_id}", get(run::run))
        .route("/console/data/runs/{run_id}/requests", get(requests::requests))
        .route("/console/data/runs/{run_id}/samples", get(samples::samples).delete(samples::delete))
        .route("/console/data/agent_sessions/{agent_session_id}", get(agents::session))
        .route("/console/data/events", get(events::events))
}

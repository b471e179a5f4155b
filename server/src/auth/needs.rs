//! The scopes that endpoints need. Endpoints that only read need none; an endpoint that no rule covers needs one that
//! changes something.

use axum::http::Method;
use trainyard_scheduler::Scope;

/// Endpoints with a body that only read, or concern the client itself.
const READING: [&str; 10] = [
    "/api/v1/client/config",
    "/api/v1/client/dynamic_config",
    "/api/v1/telemetry",
    "/api/v1/auth/token",
    "/api/v1/get_info",
    "/api/v1/weights_info",
    "/api/v1/retrieve_future",
    "/api/v1/retrieve_futures",
    "/api/v1/sessions/search",
    "/api/v1/checkpoints/search",
];
const TRAINING: [&str; 9] = [
    "/api/v1/create_model",
    "/api/v1/forward",
    "/api/v1/forward_backward",
    "/api/v1/create_custom_loss",
    "/api/v1/optim_step",
    "/api/v1/load_weights",
    "/api/v1/save_weights",
    "/api/v1/save_weights_for_sampler",
    "/api/v1/save_weights_external",
];
const SAMPLING: [&str; 3] = ["/api/v1/asample", "/api/v1/create_sampling_session", "/api/v1/join_sampling_session"];
/// Prefixes of the endpoints for an organisation's admins, whatever the method.
const ADMINISTRATION: [&str; 3] = ["/api/v1/admin/", "/api/v1/audit", "/api/v1/billing/"];
/// The prefix of the endpoints that start and finish an upload.
const UPLOAD: &str = "/api/v1/external_weights_upload_";
/// The endpoint of a caller's own key, which every holder may revoke.
const OWN_KEY: &str = "/api/v1/auth/apikey/me";

/// Returns the scopes of which a call needs one; none when the list is empty. `path` is the route's, as in the table
/// of endpoints.
pub(super) fn needed(method: &Method, path: &str) -> &'static [Scope] {
    let reads = matches!(*method, Method::GET | Method::HEAD) || READING.contains(&path) || path == OWN_KEY;
    if ADMINISTRATION.iter().any(|prefix| path.starts_with(prefix)) {
        &[Scope::Admin]
    } else if reads {
        &[]
    } else if TRAINING.contains(&path) {
        &[Scope::Train]
    } else if SAMPLING.contains(&path) || !path.starts_with("/api/v1/") {
        &[Scope::Sample]
    } else if path.contains("/checkpoints/") || path.starts_with(UPLOAD) {
        &[Scope::Checkpoints]
    } else {
        &[Scope::Train, Scope::Sample, Scope::Checkpoints]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_something_needs_a_scope() {
        let checkpoint = "/api/v1/training_runs/{run_id}/checkpoints/{kind}/{name}";
        for (method, path, scopes) in [
            (Method::GET, "/api/v1/training_runs", &[][..]),
            (Method::GET, "/hf/{*path}", &[]),
            (Method::POST, "/api/v1/retrieve_future", &[]),
            (Method::DELETE, "/api/v1/auth/apikey/me", &[]),
            (Method::POST, "/api/v1/optim_step", &[Scope::Train]),
            (Method::POST, "/api/v1/asample", &[Scope::Sample]),
            (Method::POST, "/v1/chat/completions", &[Scope::Sample]),
            (Method::DELETE, checkpoint, &[Scope::Checkpoints]),
            (Method::GET, checkpoint, &[]),
            (Method::POST, "/api/v1/external_weights_upload_start", &[Scope::Checkpoints]),
            (Method::POST, "/api/v1/checkpoints/search", &[]),
            (Method::GET, "/api/v1/admin/keys", &[Scope::Admin]),
            (Method::POST, "/api/v1/admin/keys", &[Scope::Admin]),
            (Method::GET, "/api/v1/audit", &[Scope::Admin]),
            (Method::POST, "/api/v1/create_session", &[Scope::Train, Scope::Sample, Scope::Checkpoints]),
            (Method::POST, "/api/v1/unheard_of", &[Scope::Train, Scope::Sample, Scope::Checkpoints]),
        ] {
            assert_eq!(needed(&method, path), scopes, "{method} {path}");
        }
    }
}

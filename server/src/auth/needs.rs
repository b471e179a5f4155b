//! The scopes that calls require on paths outside the tables of endpoints. Paths that are only read require none; a
//! path that no rule covers requires a scope that changes something.

use axum::http::Method;
use trainyard_scheduler::Scope;

use crate::endpoint::Needs;

/// Returns the scopes of which a call needs one; an empty list stands for no requirement. `path` is the route's.
pub(super) fn needed(method: &Method, path: &str) -> &'static [Scope] {
    let needs = if matches!(*method, Method::GET | Method::HEAD) {
        Needs::Nothing
    } else if !path.starts_with("/api/v1/") {
        Needs::Sample
    } else if path.contains("/checkpoints/") {
        Needs::Checkpoints
    } else {
        Needs::AnyChange
    };
    needs.scopes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_something_needs_a_scope() {
        let checkpoint = "/api/v1/training_runs/{run_id}/checkpoints/{kind}";
        for (method, path, scopes) in [
            (Method::GET, "/hf/{*path}", &[][..]),
            (Method::GET, checkpoint, &[]),
            (Method::DELETE, checkpoint, &[Scope::Checkpoints]),
            (Method::POST, "/console/unheard_of", &[Scope::Sample]),
            (Method::POST, "/api/v1/unheard_of", &[Scope::Train, Scope::Sample, Scope::Checkpoints]),
        ] {
            assert_eq!(needed(&method, path), scopes, "{method} {path}");
        }
    }
}

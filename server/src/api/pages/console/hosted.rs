//! The paths of the hosted service's console, to which `get_console_url()` of the SDK leads: the same path on this server
//! shows the same thing.

use axum::extract::{Path, Query};
use axum::response::Redirect;
use serde::Deserialize;

/// `GET /sessions`: the list of runs.
pub(super) async fn sessions() -> Redirect {
    Redirect::temporary("/#/runs")
}

/// `GET /sessions/{session_id}`: its runs.
pub(super) async fn session(Path(session): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/#/runs?q={}", encoded(&session)))
}

/// `GET /training_runs/{run_id}`: the page of the run.
pub(super) async fn training_run(Path(run): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/#/run/{}", encoded(&run)))
}

/// `GET /checkpoints/{run_id}/{checkpoint_id}`: the run, which lists it.
pub(super) async fn checkpoint(Path((run, _)): Path<(String, String)>) -> Redirect {
    Redirect::temporary(&format!("/#/run/{}", encoded(&run)))
}

/// Query of `GET /playground`.
#[derive(Deserialize)]
pub(super) struct PlaygroundQuery {
    #[serde(default)]
    checkpoint: String,
}

/// `GET /playground?checkpoint=…`: the playground with this model.
pub(super) async fn playground(Query(query): Query<PlaygroundQuery>) -> Redirect {
    Redirect::temporary(&format!("/#/playground?model={}", encoded(&query.checkpoint)))
}

/// `GET /keys` and `GET /keys/{key_id}`.
pub(super) async fn keys() -> Redirect {
    Redirect::temporary("/#/admin")
}

/// Percent-encodes a text, so that it is one part of an address whatever it contains.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn addresses_of_the_hosted_console_lead_to_pages_of_this_one() {
        let server = Server::start().await;
        for (path, page) in [
            ("/sessions", "/#/runs"),
            ("/sessions/a-1", "/#/runs?q=a-1"),
            ("/training_runs/a:train:0", "/#/run/a:train:0"),
            ("/checkpoints/a%3Atrain%3A0/weights%2Fb", "/#/run/a:train:0"),
            (
                "/playground?mode=checkpoint&checkpoint=tinker%3A%2F%2Fa%3Atrain%3A0%2Fsampler_weights%2Fb",
                "/#/playground?model=tinker:%2F%2Fa:train:0%2Fsampler_weights%2Fb",
            ),
            ("/keys?new_key=true", "/#/admin"),
            ("/keys/7", "/#/admin"),
            ("/sessions/a%22%3E%0D%0Ab", "/#/runs?q=a%22%3E%0D%0Ab"),
        ] {
            let got = server.send(Request::get(path).body(Body::empty()).unwrap()).await;
            assert_eq!((got.status.as_u16(), got.headers["location"].to_str().unwrap()), (307, page), "{path}");
        }
    }
}

//! Paths that lead to pages: those of the hosted service's console, to which `get_console_url()` of the SDK points and
//! which show the same objects here, and short ones to share.

use axum::extract::{Path, Query, RawQuery};
use axum::response::Redirect;
use serde::Deserialize;

/// `GET /sessions`: the list of runs.
pub(super) async fn sessions() -> Redirect {
    Redirect::temporary("/#/runs")
}

/// `GET /sessions/{session_id}`: the runs of the session.
pub(super) async fn session(Path(session): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/#/runs?q={}", encoded(&session)))
}

/// `GET /runs`: the list of runs, with the filter and the order of the query.
pub(super) async fn runs(RawQuery(query): RawQuery) -> Redirect {
    Redirect::temporary(&format!("/#/runs{}", with(query)))
}

/// `GET /runs/{run_id}`: the page of the run, beside the runs of the query.
pub(super) async fn run(Path(run): Path<String>, RawQuery(query): RawQuery) -> Redirect {
    Redirect::temporary(&format!("/#/run/{}{}", encoded(&run), with(query)))
}

/// `GET /runs/{run_id}/samples`: the samples of the run.
pub(super) async fn samples(Path(run): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/#/samples/{}", encoded(&run)))
}

/// `GET /agent_sessions`: the list of agent sessions.
pub(super) async fn agent_sessions() -> Redirect {
    Redirect::temporary("/#/agents")
}

/// `GET /agent_sessions/{agent_session_id}`: the page of the session.
pub(super) async fn agent_session(Path(session): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/#/agent/{}", encoded(&session)))
}

/// Appends a query as it is, but for bytes that a header can't have.
fn with(query: Option<String>) -> String {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return String::new() };
    query.bytes().fold("?".to_owned(), |mut text, byte| {
        match byte.is_ascii_graphic() {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
        text
    })
}

/// `GET /training_runs/{run_id}`: the page of the run.
pub(super) async fn training_run(Path(run): Path<String>) -> Redirect {
    Redirect::temporary(&format!("/#/run/{}", encoded(&run)))
}

/// `GET /checkpoints/{run_id}/{checkpoint_id}`: the run, which lists it.
pub(super) async fn checkpoint(Path((run, _)): Path<(String, String)>) -> Redirect {
    Redirect::temporary(&format!("/#/run/{}", encoded(&run)))
}

/// Query parameters of `GET /playground`.
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

/// Percent-encodes a text, so that it is one segment of a path whatever it contains.
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
    async fn addresses_lead_to_pages() {
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
            ("/runs", "/#/runs"),
            ("/runs?q=project%3Da&sort=steps", "/#/runs?q=project%3Da&sort=steps"),
            ("/runs/a:train:0", "/#/run/a:train:0"),
            ("/runs/a%3Atrain%3A0?with=b%3Atrain%3A0,c:train:1", "/#/run/a:train:0?with=b%3Atrain%3A0,c:train:1"),
            ("/runs/a:train:0/samples", "/#/samples/a:train:0"),
            ("/agent_sessions", "/#/agents"),
            ("/agent_sessions/a-1", "/#/agent/a-1"),
            ("/sessions/a%22%3E%0D%0Ab", "/#/runs?q=a%22%3E%0D%0Ab"),
        ] {
            let got = server.send(Request::get(path).body(Body::empty()).unwrap()).await;
            assert_eq!((got.status.as_u16(), got.headers["location"].to_str().unwrap()), (307, page), "{path}");
        }
        assert_eq!(super::with(Some("q=é\r\nb".to_owned())), "?q=%C3%A9%0D%0Ab");
    }
}

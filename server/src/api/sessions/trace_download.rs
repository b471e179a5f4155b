//! Handler of `GET traces/{session_id}`.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use trainyard_http::answer::full_response;
use trainyard_protocol::{SessionId, TenantId};

use super::trace_export::{FILE, object};
use crate::api::catalogue::download::{EXPIRED, FORGED, Signature};
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::{Binary, Refusals};
use crate::error::ApiError;
use crate::perfetto;
use crate::signed_urls::Grant;
use crate::state::AppState;

/// Downloads the current timeline of a session as a Perfetto trace. The URL contains its authorisation.
#[utoipa::path(
    get, path = "/api/v1/traces/{session_id}", tag = "sessions", security(()),
    params(("session_id" = String, Path), Signature),
    responses(
        (status = 200, description = "the trace", body = inline(Binary), content_type = "application/octet-stream"),
        Refusals,
    ),
)]
pub(in crate::api) async fn trace_download(
    State(state): State<AppState>,
    ApiPath(session_id): ApiPath<String>,
    query: Result<ApiQuery<Signature>, ApiError>,
) -> Result<Response, ApiError> {
    let Ok(ApiQuery(query)) = query else { return Err(FORGED) };
    let tenant = TenantId::new(query.tenant);
    let grant = Grant { tenant: &tenant, object: &object(&session_id), file: FILE, expires: query.expires };
    if !state.signer.verify(grant, &query.signature) {
        return Err(FORGED);
    }
    let now = state.clock.now();
    if now.as_millis() / 1_000 >= query.expires {
        return Err(EXPIRED);
    }
    let session = SessionId::new(session_id);
    let timeline = state.scheduler.session_timeline(&tenant, &session).await?;
    let trace = perfetto::trace(&session, &timeline, now);
    Ok(full_response(StatusCode::OK, "application/octet-stream", trace))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use axum::body::Body;
    use axum::http::Request;

    use crate::api::tests::testing::*;

    #[tokio::test]
    async fn a_trace_is_read_without_a_key_until_its_url_expires() {
        let server = Server::start().await;
        let run = server.run().await;
        let session = run.split(':').next().unwrap();
        let export = server.get(&format!("sessions/{session}/trace_export")).await.json();
        assert_eq!(export["status"], "ready");
        let url = export["url"].as_str().unwrap().strip_prefix("http://trainyard.test:8000").unwrap().to_owned();
        let fetch = async |path: &str| server.send(Request::get(path).body(Body::empty()).unwrap()).await;
        let trace = fetch(&url).await;
        assert_eq!(trace.status, 200);
        let text = String::from_utf8_lossy(&trace.body).into_owned();
        assert!(text.contains("create_model 0") && text.contains("train:0"), "{text}");
        for changed in [url.replace(session, "other"), url.replace("tenant=local", "tenant=x"), format!("{url}x")] {
            fetch(&changed).await.refused(403);
        }
        fetch(&format!("/api/v1/traces/{session}")).await.refused(403);
        server.get("sessions/none/trace_export").await.refused(404);
        server.clock.advance(3_600);
        fetch(&url).await.refused(403);
    }
}

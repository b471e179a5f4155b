//! Handler of `GET sessions/{session_id}/trace_export`.

use axum::extract::State;
use axum::http::HeaderMap;
use trainyard_protocol::SessionId;
use trainyard_wire::session_search::TraceExportResponse;

use crate::api::catalogue::download::encode_component;
use crate::api::catalogue::external_weights_urls::base_url;
use crate::api::request::extract::ApiPath;
use crate::api::request::refusals::Refusals;
use crate::api::request::respond::{Answer, Reply};
use crate::auth::Tenant;
use crate::signed_urls::Grant;
use crate::state::AppState;

/// Returns the URL of a session's timeline as a Perfetto trace. The URL contains its authorisation.
#[utoipa::path(
    get, path = "/api/v1/sessions/{session_id}/trace_export", tag = "sessions", params(("session_id" = String, Path)),
    responses((status = 200, description = "success", body = TraceExportResponse), Refusals),
)]
pub(in crate::api) async fn trace_export(
    State(state): State<AppState>,
    Tenant(tenant): Tenant,
    headers: HeaderMap,
    ApiPath(session_id): ApiPath<String>,
) -> Reply<TraceExportResponse> {
    state.scheduler.session(&tenant, &SessionId::new(session_id.as_str())).await?;
    let expires = state.clock.now().plus(state.limits.download_url_lifetime).as_millis() / 1_000;
    let object = object(&session_id);
    let signature = state.signer.sign(Grant { tenant: &tenant, object: &object, file: FILE, expires });
    let url = format!(
        "{}/api/v1/traces/{}?tenant={}&expires={expires}&signature={signature}",
        base_url(&state, &headers)?,
        encode_component(&session_id),
        encode_component(tenant.as_str()),
    );
    Ok(Answer(TraceExportResponse { status: "ready".to_owned(), url }))
}

/// Returns the object that the URL of a session's trace is signed for.
pub(crate) fn object(session_id: &str) -> String {
    format!("session:{session_id}")
}

/// Name of the file that the URL is signed for.
pub(crate) const FILE: &str = "trace.pftrace";

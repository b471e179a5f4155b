//! Handler of `GET downloads/{run_id}/{kind}/{name}/{file}`.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use trainyard_http::peer::{self, Peer};
use trainyard_protocol::{TenantId, TinkerPath};
use trainyard_scheduler::{Actor, AuditCategory, NewAuditEntry};
use trainyard_storage::Pieces;
use utoipa::IntoParams;

use crate::api::request::extract::{ApiPath, ApiQuery, checkpoint_path};
use crate::api::request::refusals::{Binary, Refusals};
use crate::error::ApiError;
use crate::signed_urls::Grant;
use crate::state::AppState;

/// Parameters of a download URL that authorise it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Signature {
    /// Tenant that the URL was signed for.
    pub(crate) tenant: String,
    /// Time at which the URL expires, in seconds since 1970.
    pub(crate) expires: i64,
    /// HMAC-SHA256 of the other parameters and the path.
    pub(crate) signature: String,
}

/// Refusal of a URL that this server did not sign.
pub(crate) const FORGED: ApiError = ApiError::Forbidden("the signature of this URL is wrong");
/// Refusal of a URL that has expired.
pub(crate) const EXPIRED: ApiError = ApiError::Forbidden("this URL has expired; ask for a new one");

/// Downloads a file of a checkpoint's weights. The URL contains its authorisation.
#[utoipa::path(
    get, path = "/api/v1/downloads/{run_id}/{kind}/{name}/{file}", tag = "catalogue", security(()),
    params(
        ("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path), ("file" = String, Path),
        Signature,
    ),
    responses(
        (status = 200, description = "the file", body = inline(Binary), content_type = "application/octet-stream"),
        Refusals,
    ),
)]
pub(in crate::api) async fn download(
    State(state): State<AppState>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    ApiPath((run, kind, name, file)): ApiPath<(String, String, String, String)>,
    query: Result<ApiQuery<Signature>, ApiError>,
) -> Result<Response, ApiError> {
    let Ok(ApiQuery(query)) = query else { return Err(FORGED) };
    let path = checkpoint_path(run, kind, name)?;
    let tenant = TenantId::new(query.tenant);
    let grant = Grant { tenant: &tenant, object: &path.to_string(), file: &file, expires: query.expires };
    if !state.signer.verify(grant, &query.signature) {
        return Err(FORGED);
    }
    if state.clock.now().as_millis() / 1_000 >= query.expires {
        return Err(EXPIRED);
    }
    let checkpoint = state.scheduler.checkpoint(&tenant, &path).await?;
    // Only the names of files that are there can be asked for, so a name can't lead out of the folder.
    if !state.storage.files(&checkpoint.dir).await?.contains_key(&file) {
        return Err(ApiError::NotFound { what: "file", id: file });
    }
    let address = peer::describe(peer.map(|Extension(peer)| peer), &headers);
    let holder = Actor { name: "the holder of a signed URL".to_owned(), key: None, user: None, address };
    let entry = checkpoint_entry(&tenant, &path, "checkpoint_read", "file", Value::from(file.as_str()));
    // Each piece that a client asks for is a call; an entry for each would let the holder fill the store.
    holder.scope(state.scheduler.audit_once_an_hour(entry, &query.signature)).await?;
    let (size, pieces) = state.storage.read(&checkpoint.dir, &file).await?;
    Ok(send(size, pieces))
}

/// Returns the entry of the audit log for a checkpoint that leaves the service.
pub(super) fn checkpoint_entry(
    tenant: &TenantId,
    path: &TinkerPath,
    event: &'static str,
    name: &str,
    value: Value,
) -> NewAuditEntry {
    NewAuditEntry {
        organisation: tenant.clone(),
        category: AuditCategory::Checkpoints,
        event,
        subject: path.to_string(),
        details: [(name.to_owned(), value)].into_iter().collect(),
    }
}

/// Sends a file in pieces. The response has its length, from which clients compute their progress.
fn send(size: u64, pieces: Pieces) -> Response {
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    response
}

/// Percent-encodes all characters that have a meaning in a URL.
pub(crate) fn encode_component(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

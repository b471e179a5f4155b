//! `GET downloads/{run_id}/{kind}/{name}/{file}`.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::BytesMut;
use futures::stream;
use serde::Deserialize;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use trainyard_protocol::TenantId;
use utoipa::IntoParams;

use super::extract::{ApiPath, ApiQuery, checkpoint_path};
use crate::error::ApiError;
use crate::openapi::Refusals;
use crate::signed_urls::Grant;
use crate::state::AppState;

/// Bytes read from a file at a time.
const CHUNK: usize = 256 << 10;

/// What a download URL carries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Signature {
    /// For whom it was signed.
    tenant: String,
    /// When it ends, in seconds since the epoch.
    expires: i64,
    /// HMAC-SHA256 of all the rest.
    signature: String,
}

/// A file of an exported checkpoint. The URL is its own authorisation.
#[utoipa::path(
    get, path = "/api/v1/downloads/{run_id}/{kind}/{name}/{file}", tag = "catalogue", security(()),
    params(
        ("run_id" = String, Path), ("kind" = String, Path), ("name" = String, Path), ("file" = String, Path),
        Signature,
    ),
    responses(
        (status = 200, description = "the file", body = Vec<u8>, content_type = "application/octet-stream"),
        Refusals,
    ),
)]
pub(super) async fn download(
    State(state): State<AppState>,
    ApiPath((run, kind, name, file)): ApiPath<(String, String, String, String)>,
    ApiQuery(query): ApiQuery<Signature>,
) -> Result<Response, ApiError> {
    let path = checkpoint_path((run, kind, name))?;
    let tenant = TenantId::new(query.tenant);
    let grant = Grant { tenant: &tenant, path: &path, file: &file, expires: query.expires };
    if !state.signer.verify(grant, &query.signature) {
        return Err(ApiError::Forbidden("the signature of this URL is wrong"));
    }
    if state.clock.now().as_millis() / 1_000 >= query.expires {
        return Err(ApiError::Forbidden("this URL has expired; ask for a new one"));
    }
    let checkpoint = state.scheduler.checkpoint(&tenant, &path).await?;
    let size = list_files(&checkpoint.dir).await?.remove(&file);
    let missing = || ApiError::NotFound { what: "file", id: file.clone() };
    size.ok_or_else(missing)?;
    let opened = File::open(checkpoint.dir.join(&file)).await.map_err(|_| missing())?;
    send(opened).await
}

/// Sends a file in pieces, its length first: clients show their progress by it.
async fn send(file: File) -> Result<Response, ApiError> {
    let size = file.metadata().await.map_err(|error| ApiError::Internal(format!("a download: {error}")))?.len();
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = BytesMut::with_capacity(CHUNK);
        let read = file.read_buf(&mut piece).await?;
        Ok::<_, io::Error>((read > 0).then(|| (piece.freeze(), file)))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    Ok(response)
}

/// The regular files of a checkpoint's folder with their sizes. Only these can be asked for, so a name
/// can't lead out of the folder.
pub(super) async fn list_files(dir: &Path) -> Result<BTreeMap<String, u64>, ApiError> {
    let failed = |error: io::Error| ApiError::Internal(format!("{} could not be listed: {error}", dir.display()));
    let mut entries = tokio::fs::read_dir(dir).await.map_err(failed)?;
    let mut files = BTreeMap::new();
    while let Some(entry) = entries.next_entry().await.map_err(failed)? {
        let metadata = entry.metadata().await.map_err(failed)?;
        if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
            files.insert(name, metadata.len());
        }
    }
    Ok(files)
}

/// Percent-encodes everything that has a meaning in a URL.
pub(super) fn encode_component(text: &str) -> String {
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

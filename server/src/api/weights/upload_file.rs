//! Handler of `PUT uploads/{upload_id}/{file}`.

use std::path::PathBuf;

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::TryStreamExt;
use sha2::{Digest, Sha256};
use trainyard_protocol::{TenantId, UploadId};
use trainyard_storage::Storage;
use trainyard_wire::uploads::UploadedFileResponse;

use super::external_weights_upload_start::CONFIG_FILE;
use crate::api::catalogue::download::{EXPIRED, FORGED, Signature};
use crate::api::request::content_range::{CONTENT_DIGEST, Part, REPR_DIGEST, sha256};
use crate::api::request::extract::{ApiPath, ApiQuery};
use crate::api::request::refusals::{Binary, Refusals};
use crate::api::request::respond::Answer;
use crate::bodies::BodyPieces;
use crate::bodies::Paced;
use crate::budgets::{UPLOADED_CONFIG_BYTES, UPLOADED_TENSOR_BYTES};
use crate::error::ApiError;
use crate::signed_urls::Grant;
use crate::state::AppState;
use crate::upload_digests::content;

/// Uploads a file of an adapter, or a part of one. The URL contains its authorisation.
///
/// Without `Content-Range`, the body is the whole file and replaces what arrived before. With `Content-Range: bytes
/// <first>-<last>/<total>`, it is a part. Its first byte may lie at or before the end of what arrived; bytes that are
/// already there are skipped. What arrived is kept if the connection breaks. `Content-Range: bytes */<total>` with an
/// empty body asks how much that is. Status 200 means that the file is complete, 308 that more is missing; the header
/// `Range` contains what arrived. `Content-Digest` (of the body) and `Repr-Digest` (of the whole file) are checked if
/// they contain `sha-256`.
#[utoipa::path(
    put, path = "/api/v1/uploads/{upload_id}/{file}", tag = "weights", security(()),
    params(("upload_id" = String, Path), ("file" = String, Path), Signature),
    request_body(content = inline(Binary), content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "the file is complete", body = UploadedFileResponse),
        (status = 308, description = "more is missing", body = UploadedFileResponse),
        Refusals,
    ),
)]
pub(in crate::api) async fn upload_file(
    State(state): State<AppState>,
    ApiPath((upload, file)): ApiPath<(String, String)>,
    query: Result<ApiQuery<Signature>, ApiError>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let Ok(ApiQuery(query)) = query else { return Err(FORGED) };
    let tenant = TenantId::new(query.tenant);
    let grant = Grant { tenant: &tenant, object: &format!("upload:{upload}"), file: &file, expires: query.expires };
    if !state.signer.verify(grant, &query.signature) {
        return Err(FORGED);
    }
    if state.clock.now().as_millis() / 1_000 >= query.expires {
        return Err(EXPIRED);
    }
    if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(ApiError::UnsupportedMediaType("Content-Encoding: expected an unencoded file".to_owned()));
    }
    let target = Target { state, tenant, upload: UploadId::new(upload), file };
    // What arrived is stored even when the connection breaks, which drops this call.
    let put = tokio::spawn(async move { target.put(&headers, body).await });
    put.await.map_err(|error| ApiError::Internal(format!("failed to store an upload: {error}")))?
}

/// Waits for work that occupies a thread.
async fn on_its_own_thread<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, ApiError> {
    let runtime = tokio::runtime::Handle::current();
    let done = tokio::task::spawn_blocking(move || runtime.block_on(work)).await;
    done.map_err(|error| ApiError::Internal(format!("hashing an upload: {error}")))
}

async fn hash_pieces(storage: Storage, dir: PathBuf, pieces: Vec<String>) -> Result<[u8; 32], ApiError> {
    let mut hash = Sha256::new();
    for piece in pieces {
        let (_, mut bytes) = storage.read(&dir, &piece).await?;
        while let Some(bytes) = bytes.try_next().await? {
            hash.update(&bytes);
        }
    }
    Ok(hash.finalize().into())
}

/// Maximum number of bytes of a refused body that are read.
const MOST_DRAINED: usize = 16 << 20;

/// Part of the file that a request writes.
struct Plan {
    part: Part,
    /// Offset in the file at which the body begins.
    start: u64,
    /// Current length of the file.
    received: u64,
    /// Greatest offset at which the body may end.
    most: u64,
    content_digest: Option<[u8; 32]>,
    whole_digest: Option<[u8; 32]>,
}

/// File that a request writes.
struct Target {
    state: AppState,
    tenant: TenantId,
    upload: UploadId,
    file: String,
}

impl Target {
    async fn put(&self, headers: &HeaderMap, body: Body) -> Result<Response, ApiError> {
        let planned = match self.plan(headers, body.size_hint().exact()).await {
            Ok(planned) => planned,
            Err(error) => {
                self.drain(body).await;
                return Err(error);
            }
        };
        let Some(plan) = planned else { return self.answer().await };
        let (end, digest) = self.receive(body, &plan).await?;
        if let Part::Range { end: expected, .. } = plan.part
            && end != expected
        {
            return Err(ApiError::invalid(format!("Content-Range: the body ended at byte {end}, expected {expected}")));
        }
        if plan.content_digest.is_some_and(|expected| expected != digest) {
            self.begin(None, plan.received).await?;
            return Err(ApiError::invalid("Content-Digest: the SHA-256 of the body does not match; send it again"));
        }
        if plan.part == Part::Whole {
            self.state.scheduler.end_upload_file(&self.tenant, &self.upload, &self.file).await?;
        }
        if let Some(expected) = plan.whole_digest {
            self.check_whole(expected).await?;
        }
        self.answer().await
    }

    /// Decides what to do with a body of up to `length` bytes before it is read; `None` if the request only asks for
    /// the state.
    async fn plan(&self, headers: &HeaderMap, length: Option<u64>) -> Result<Option<Plan>, ApiError> {
        let part = Part::of(headers)?;
        let (content_digest, whole_digest) = (sha256(headers, &CONTENT_DIGEST)?, sha256(headers, &REPR_DIGEST)?);
        let (start, total) = match part {
            Part::Status { total } => return self.check_size(total).map(|()| None),
            Part::Whole => (0, length),
            Part::Range { start, end, total } => {
                if let Some(length) = length.filter(|length| *length != end - start) {
                    let range = end - start;
                    return Err(ApiError::invalid(format!(
                        "Content-Range: covers {range} bytes, but the body has {length}"
                    )));
                }
                (start, total)
            }
        };
        let most = match part {
            Part::Range { end, .. } => end,
            _ => total.unwrap_or(self.most()),
        };
        self.check_size(Some(most))?;
        self.check_size(total)?;
        self.state.disks.admit()?;
        let received = self.begin(total, if part == Part::Whole { 0 } else { u64::MAX }).await?;
        if start > received {
            return Err(ApiError::invalid(format!(
                "Content-Range: expected the bytes from {received} on, found {start}"
            )));
        }
        Ok(Some(Plan { part, start, received, most, content_digest, whole_digest }))
    }

    /// Reads and discards the rest of a refused body: a client that is still sending when the connection closes would
    /// not see the refusal.
    async fn drain(&self, body: Body) {
        let (mut paced, mut drained) = (Paced::new(body, self.state.receiving.limits()), 0);
        while let Ok(Some(frame)) = paced.next().await
            && drained < MOST_DRAINED
        {
            drained += frame.len();
        }
    }

    /// Stores the part of a body that is not there yet. Returns the offset at which it ended, and its SHA-256.
    async fn receive(&self, body: Body, plan: &Plan) -> Result<(u64, [u8; 32]), ApiError> {
        let Plan { start, received, most, .. } = *plan;
        let (mut at, mut hash) = (start, Sha256::new());
        let mut pieces = BodyPieces::new(&self.state.receiving, body, &self.tenant).await?;
        loop {
            let piece = pieces.next().await;
            hash.update(&piece.bytes);
            let end = at.saturating_add(piece.bytes.len() as u64);
            if end > most {
                return Err(match most >= self.most() {
                    true => ApiError::TooLarge { limit: usize::try_from(self.most()).unwrap_or(usize::MAX) },
                    false => ApiError::invalid(format!("{}: received more bytes than announced", self.file)),
                });
            }
            let skipped = received.saturating_sub(at).min(piece.bytes.len() as u64);
            self.append(at + skipped, piece.bytes.slice(skipped as usize..)).await?;
            at = end;
            if !piece.more? {
                return Ok((at, hash.finalize().into()));
            }
            pieces.restart();
        }
    }

    async fn append(&self, at: u64, bytes: Bytes) -> Result<(), ApiError> {
        if !bytes.is_empty() {
            let scheduler = &self.state.scheduler;
            scheduler.append_to_upload(&self.tenant, &self.upload, &self.file, at, bytes).await?;
        }
        Ok(())
    }

    async fn begin(&self, total: Option<u64>, keep: u64) -> Result<u64, ApiError> {
        Ok(self.state.scheduler.begin_upload_file(&self.tenant, &self.upload, &self.file, total, keep).await?)
    }

    /// Compares the SHA-256 of a complete file. A file with another SHA-256 is discarded.
    async fn check_whole(&self, expected: [u8; 32]) -> Result<(), ApiError> {
        let upload = self.state.scheduler.upload(&self.tenant, &self.upload).await?;
        let Some(file) = upload.files.get(&self.file).filter(|file| file.is_complete()) else { return Ok(()) };
        let pieces: Vec<String> = file.pieces.iter().map(|(piece, _)| piece.clone()).collect();
        let name = content(&upload.dir.to_string_lossy(), pieces.iter().map(String::as_str));
        let (storage, dir) = (self.state.storage.clone(), upload.dir.clone());
        // Hashing gigabytes would keep a thread from serving others.
        let hash = || async { on_its_own_thread(hash_pieces(storage, dir, pieces)).await? };
        if self.state.upload_digests.get(name, hash).await? == expected {
            return Ok(());
        }
        self.begin(None, 0).await?;
        Err(ApiError::invalid(
            "Repr-Digest: the SHA-256 of the file does not match; the file was discarded; send it again",
        ))
    }

    /// Returns how much of the file is there.
    async fn answer(&self) -> Result<Response, ApiError> {
        let upload = self.state.scheduler.upload(&self.tenant, &self.upload).await?;
        let file = upload.files.get(&self.file);
        let file = file.ok_or_else(|| ApiError::NotFound { what: "file", id: self.file.clone() })?;
        let (received, complete) = (file.received(), file.is_complete());
        let content = UploadedFileResponse { received_bytes: received, total_bytes: file.total, complete };
        let mut response = Answer(content).into_response();
        if !complete {
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            if let Some(last) = received.checked_sub(1)
                && let Ok(range) = HeaderValue::from_str(&format!("bytes=0-{last}"))
            {
                response.headers_mut().insert(header::RANGE, range);
            }
        }
        Ok(response)
    }

    fn most(&self) -> u64 {
        if self.file == CONFIG_FILE { UPLOADED_CONFIG_BYTES } else { UPLOADED_TENSOR_BYTES }
    }

    fn check_size(&self, total: Option<u64>) -> Result<(), ApiError> {
        let limit = self.most();
        match total.filter(|total| *total > limit) {
            Some(_) => Err(ApiError::TooLarge { limit: usize::try_from(limit).unwrap_or(usize::MAX) }),
            None => Ok(()),
        }
    }
}

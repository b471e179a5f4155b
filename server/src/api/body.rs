//! Reading request bodies: bounded before and after decompression.

use std::io::Read;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::state::AppState;
use crate::wire::json;

/// Bodies up to so many bytes are decoded where they are read.
const INLINE_DECODING: usize = 1 << 20;

/// The content types that endpoints tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Protobuf,
    Other,
}

/// A decompressed body.
pub(super) struct RawBody {
    pub(super) bytes: Bytes,
    pub(super) media: Media,
}

impl RawBody {
    /// The same body, read as JSON whatever its content type says.
    pub(super) fn into_json(self) -> Self {
        Self { media: Media::Json, ..self }
    }
}

/// A body of JSON, whatever its content type says.
pub(super) struct JsonBody<T>(pub(super) T);

impl FromRequest<AppState> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let limit = state.limits.max_body_bytes;
        let (parts, body) = request.into_parts();
        let encoding = encoding(&parts.headers)?;
        let bytes = read(body, limit).await?;
        let bytes = match encoding {
            Encoding::Identity => bytes,
            Encoding::Zstd => decompress(bytes, limit).await?,
        };
        Ok(Self { bytes, media: media(&parts.headers) })
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let body = RawBody::from_request(request, state).await?;
        Ok(Self(decode(body.bytes, |bytes| json::parse(bytes)).await??))
    }
}

enum Encoding {
    Identity,
    Zstd,
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, ApiError> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(Encoding::Identity) };
    let name = value.to_str().unwrap_or_default().trim().to_ascii_lowercase();
    match name.as_str() {
        "" | "identity" => Ok(Encoding::Identity),
        "zstd" => Ok(Encoding::Zstd),
        _ => Err(ApiError::UnsupportedMediaType(format!(
            "content-encoding {name:?} is not supported; send the body plain or with zstd"
        ))),
    }
}

fn media(headers: &HeaderMap) -> Media {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Media::Json,
        "application/x-protobuf" => Media::Protobuf,
        _ => Media::Other,
    }
}

/// Reads a body of at most `limit` bytes. Of a longer one as much again is read and dropped: a client
/// that is still sending when the connection closes would not see the refusal.
async fn read(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    let mut stream = body.into_data_stream();
    let mut kept = BytesMut::new();
    let mut total = 0_usize;
    while let Some(frame) = stream.next().await {
        let frame = frame.map_err(|error| ApiError::invalid(format!("the body could not be read: {error}")))?;
        total = total.saturating_add(frame.len());
        if total <= limit {
            kept.extend_from_slice(&frame);
        } else {
            kept = BytesMut::new();
        }
        if total > limit.saturating_mul(2) {
            break;
        }
    }
    if total > limit { Err(ApiError::TooLarge { limit }) } else { Ok(kept.freeze()) }
}

/// Decodes a body, on a thread of its own when it is large.
pub(super) async fn decode<T: Send + 'static>(
    bytes: Bytes,
    read: impl FnOnce(&Bytes) -> T + Send + 'static,
) -> Result<T, ApiError> {
    if bytes.len() <= INLINE_DECODING {
        return Ok(read(&bytes));
    }
    let done = tokio::task::spawn_blocking(move || read(&bytes)).await;
    done.map_err(|error| ApiError::Internal(format!("decoding did not finish: {error}")))
}

async fn decompress(body: Bytes, limit: usize) -> Result<Bytes, ApiError> {
    let done = tokio::task::spawn_blocking(move || decompress_now(&body, limit)).await;
    done.unwrap_or_else(|error| Err(ApiError::Internal(format!("decompression did not finish: {error}"))))
}

/// Decodes one byte beyond the limit at most, so that a small body can't fill the memory.
fn decompress_now(body: &[u8], limit: usize) -> Result<Bytes, ApiError> {
    let invalid = |error: std::io::Error| ApiError::invalid(format!("the body is not valid zstd: {error}"));
    let decoder = zstd::stream::read::Decoder::with_buffer(body).map_err(invalid)?;
    let mut out = Vec::new();
    decoder.take((limit as u64).saturating_add(1)).read_to_end(&mut out).map_err(invalid)?;
    if out.len() > limit { Err(ApiError::TooLarge { limit }) } else { Ok(out.into()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_bomb_is_refused_without_being_unpacked() {
        let bomb = zstd::encode_all(std::io::repeat(0).take(64 << 20), 19).unwrap();
        assert!(bomb.len() < 64 << 10);
        assert!(matches!(decompress_now(&bomb, 1 << 20), Err(ApiError::TooLarge { limit }) if limit == 1 << 20));
    }

    #[test]
    fn truncated_and_foreign_bodies_are_refused() {
        let whole = zstd::encode_all(&b"some text that is long enough"[..], 3).unwrap();
        assert_eq!(decompress_now(&whole, 100).unwrap(), &b"some text that is long enough"[..]);
        assert!(matches!(decompress_now(&whole[..whole.len() - 4], 100), Err(ApiError::Invalid(_))));
        assert!(matches!(decompress_now(b"plain", 100), Err(ApiError::Invalid(_))));
    }

    #[tokio::test]
    async fn the_limit_is_exact() {
        assert_eq!(read(Body::from("12345"), 5).await.unwrap(), "12345");
        assert!(matches!(read(Body::from("123456"), 5).await, Err(ApiError::TooLarge { limit: 5 })));
    }
}

//! Reads request bodies, which are bounded before and after decompression.

use std::io::Read;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use trainyard_wire::json;
use zstd::zstd_safe;

use super::body_limits::BodyBounds;
use crate::bodies::{INLINE_DECODING, Memory, Reservation};
use crate::error::ApiError;
use crate::state::AppState;

/// Content types that endpoints distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Protobuf,
    Other,
}

/// A body after decompression.
pub(crate) struct RawBody {
    pub(crate) bytes: Bytes,
    pub(crate) media: Media,
    /// Reservation that is held until the body is decoded.
    reservation: Option<Reservation>,
    /// Memory that is held until the body is processed.
    _memory: Memory,
}

impl RawBody {
    /// Returns the same body, to be read as JSON whatever its content type is.
    pub(crate) fn into_json(self) -> Self {
        Self { media: Media::Json, ..self }
    }

    /// Decodes the body, on a separate thread if it is large.
    pub(crate) async fn decode<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&Bytes) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (bytes, reservation) = (self.bytes.clone(), self.reservation.take());
        // The thread continues after the client has disconnected, so it owns the reservation.
        beside(bytes.len(), move || {
            let _reservation = reservation;
            read(&bytes)
        })
        .await
    }
}

/// Runs work whose duration depends on this many bytes, on a separate thread if they are many.
pub(crate) async fn beside<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if bytes <= INLINE_DECODING {
        return Ok(work());
    }
    let done = tokio::task::spawn_blocking(work);
    done.await.map_err(|error| ApiError::Internal(format!("failed to process a large body: {error}")))
}

/// A body of JSON, whatever its content type is.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl FromRequest<AppState> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let bounds = BodyBounds::of(parts.uri.path());
        let limit = bounds.bytes(state.limits.max_body_bytes);
        let admit = |size| if bounds.needs_space(size) { state.disks.admit() } else { Ok(()) };
        let (bytes, memory) = state.receiving.receive(body, limit, parts.extensions.get(), admit).await?;
        // Not before the body is read: a client's next request would find the connection closed.
        let encoding = encoding(&parts.headers)?;
        let (bytes, reservation) = match encoding {
            Encoding::Identity => {
                let reservation = state.decoding.reserve(bytes.len()).await?;
                (bytes, reservation)
            }
            Encoding::Zstd => {
                let limit = decompressed_limit(&bytes, limit);
                decompress(bytes, limit, state.decoding.reserve(limit).await?).await?
            }
        };
        admit(bytes.len())?;
        let counted = bytes.clone();
        beside(bytes.len(), move || bounds.check_values(&counted)).await??;
        let media = media(&parts.headers);
        Ok(Self { bytes, media, reservation: Some(reservation), _memory: memory })
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let mut body = RawBody::from_request(request, state).await?;
        Ok(Self(body.decode(|bytes| json::parse(bytes)).await??))
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

/// Returns the maximum size to which a compressed body is decompressed, up to `limit`: the size in its frame's header,
/// if it has one.
fn decompressed_limit(body: &[u8], limit: usize) -> usize {
    if zstd_safe::find_frame_compressed_size(body) != Ok(body.len()) {
        return limit;
    }
    match zstd_safe::get_frame_content_size(body) {
        Ok(Some(size)) => usize::try_from(size).map_or(limit, |size| size.min(limit)),
        Ok(None) | Err(_) => limit,
    }
}

/// Decompresses a body under a reservation of `limit` bytes, and releases the unused part.
async fn decompress(body: Bytes, limit: usize, mut reservation: Reservation) -> Result<(Bytes, Reservation), ApiError> {
    let done = tokio::task::spawn_blocking(move || {
        let bytes = decompress_now(&body, limit)?;
        reservation.shrink(bytes.len());
        Ok((bytes, reservation))
    });
    done.await.unwrap_or_else(|error| Err(ApiError::Internal(format!("failed to decompress a body: {error}"))))
}

/// Decompresses at most one byte more than the limit, so that a small body can't fill the memory.
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
    use crate::bodies::DecodingBudget;

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

    #[test]
    fn a_frame_says_what_it_holds() {
        let frame = zstd::bulk::compress(&[0; 5_000], 3).unwrap();
        assert_eq!(decompressed_limit(&frame, 1 << 20), 5_000);
        assert_eq!(decompressed_limit(&frame, 4_000), 4_000);
        assert_eq!(decompressed_limit(&[frame.clone(), frame].concat(), 1 << 20), 1 << 20);
        let stream = zstd::encode_all(&[0; 5_000][..], 3).unwrap();
        assert_eq!(decompressed_limit(&stream, 1 << 20), 1 << 20);
        assert_eq!(decompressed_limit(b"none", 1 << 20), 1 << 20);
    }

    #[tokio::test]
    async fn the_room_is_given_back_once_a_body_is_decoded() {
        let budget = DecodingBudget::default();
        let bytes = vec![0; 2 << 20].into();
        let mut body = RawBody {
            bytes,
            media: Media::Other,
            reservation: Some(budget.reserve(2 << 20).await.unwrap()),
            _memory: Memory::default(),
        };
        let inside = budget.clone();
        assert!(body.decode(move |_| inside.available()).await.unwrap() < DecodingBudget::default().available());
        assert_eq!(budget.available(), DecodingBudget::default().available());
    }
}

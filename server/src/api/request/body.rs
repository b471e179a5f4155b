//! Reading request bodies: bounded before and after decompression.

use std::io::Read;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use trainyard_wire::json;
use zstd::zstd_safe;

use crate::bodies::{INLINE_DECODING, Memory, Reservation};
use crate::error::ApiError;
use crate::state::AppState;

/// Endpoints that store their bodies, with the most bytes of a body accepted while the disk is almost full. Those that
/// create runs or save are refused then whatever their size.
const STORED: [(&str, usize); 10] = [
    ("/api/v1/asample", SMALL_WORK),
    ("/api/v1/forward", SMALL_WORK),
    ("/api/v1/forward_backward", SMALL_WORK),
    ("/oai/api/v1/completions", SMALL_WORK),
    ("/oai/api/v1/chat/completions", SMALL_WORK),
    ("/anthropic/api/v1/messages", SMALL_WORK),
    ("/api/v1/create_session", SMALL_SESSION),
    ("/api/v1/create_sampling_session", SMALL_SESSION),
    ("/api/v1/create_custom_loss", SMALL_SESSION),
    ("/api/v1/copy_weights", SMALL_SESSION),
];

/// Most bytes of a small body that submits work.
const SMALL_WORK: usize = 64 << 10;
/// Most bytes of a small body about sessions, which are stored for long.
const SMALL_SESSION: usize = 4 << 10;

/// Endpoints with tokens and tensors, whose bodies may be as large as the server accepts.
const BULK: [&str; 3] = ["/api/v1/asample", "/api/v1/forward", "/api/v1/forward_backward"];

/// Endpoints whose bodies contain text.
const TEXTS: [&str; 4] = [
    "/oai/api/v1/completions",
    "/oai/api/v1/chat/completions",
    "/anthropic/api/v1/messages",
    "/anthropic/api/v1/messages/count_tokens",
];

/// Most bytes of a body of text: JSON takes many times as much in memory.
const MAX_TEXT_BODY: usize = 16 << 20;

/// Most bytes of any other body.
const MAX_SMALL_BODY: usize = 4 << 20;

/// The content types that endpoints distinguish.
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
    /// Held until the body is decoded.
    reservation: Option<Reservation>,
    /// Held until the body is processed.
    _memory: Memory,
}

impl RawBody {
    /// The same body, read as JSON whatever its content type says.
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
    done.await.map_err(|error| ApiError::Internal(format!("a large body was not processed: {error}")))
}

/// A body of JSON, whatever its content type says.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl FromRequest<AppState> for RawBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let limit = state.limits.max_body_bytes.min(most_bytes(parts.uri.path()));
        let small = STORED.iter().find(|(path, _)| *path == parts.uri.path()).map_or(usize::MAX, |(_, small)| *small);
        let admit = |size| if size > small { state.disks.admit() } else { Ok(()) };
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
        Ok(Self { bytes, media: media(&parts.headers), reservation: Some(reservation), _memory: memory })
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let mut body = RawBody::from_request(request, state).await?;
        Ok(Self(body.decode(|bytes| json::parse(bytes)).await??))
    }
}

/// Most bytes of a body on this path, before and after decompression.
fn most_bytes(path: &str) -> usize {
    if BULK.contains(&path) {
        usize::MAX
    } else if TEXTS.contains(&path) {
        MAX_TEXT_BODY
    } else {
        MAX_SMALL_BODY
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

/// Most bytes to which a compressed body is decompressed, up to `limit`: the size in its frame's header, if it has one.
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
    done.await.unwrap_or_else(|error| Err(ApiError::Internal(format!("decompression did not finish: {error}"))))
}

/// Decodes at most one byte beyond the limit, so that a small body can't fill the memory.
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

    #[test]
    fn only_bodies_of_data_are_large() {
        for (path, most) in [
            ("/api/v1/forward_backward", usize::MAX),
            ("/api/v1/asample", usize::MAX),
            ("/oai/api/v1/chat/completions", 16 << 20),
            ("/anthropic/api/v1/messages/count_tokens", 16 << 20),
            ("/api/v1/retrieve_futures", 4 << 20),
            ("/api/v1/unheard_of", 4 << 20),
        ] {
            assert_eq!(most_bytes(path), most, "{path}");
        }
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

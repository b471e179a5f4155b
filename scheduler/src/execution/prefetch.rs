//! Decoding of payloads that are prefetched from the store.

use std::sync::OnceLock;

use bytes::Bytes;
use tokio::task::spawn_blocking;

use crate::{Decoded, PrefetchDecoder, RequestKind};

/// Decodes one payload at a time, because the worker takes them one by one.
#[derive(Default)]
pub(crate) struct Prefetch {
    decoder: OnceLock<PrefetchDecoder>,
    /// Held while a payload is decoded.
    decoding: tokio::sync::Mutex<()>,
}

impl Prefetch {
    /// Sets the decoder. The first one stays.
    pub(crate) fn decode_with(&self, decoder: PrefetchDecoder) {
        let _ = self.decoder.set(decoder);
    }

    /// Decodes a payload, if there is a decoder and `keeps` confirms that the decoded payload will be kept.
    pub(super) async fn decode(
        &self,
        kind: RequestKind,
        base_model: String,
        payload: Bytes,
        keeps: impl FnOnce(usize) -> bool,
    ) -> Decoded {
        let Some(decoder) = self.decoder.get().cloned() else { return Decoded::default() };
        let _one_at_a_time = self.decoding.lock().await;
        if !keeps(payload.len()) {
            return Decoded::default();
        }
        // After a panic the worker decodes the payload, and handles the panic there.
        spawn_blocking(move || decoder(kind, &base_model, payload)).await.unwrap_or_default()
    }
}

//! Decoding stored requests before their turn, off the worker's thread.

use std::sync::Arc;

use bytes::Bytes;
use trainyard_protocol::{DecodedImages, OpError, Prepare, PreparedContent, RawBatch};
use trainyard_scheduler::{Decoded, PrefetchDecoder, RequestKind};

use trainyard_wire::payload::Payload;
use trainyard_wire::training;

use super::model_images::ModelImages;

/// Decodes samples and checks the examples of training requests. Other requests are small and decoded by the worker, and
/// examples with images are left to the pool, so that one tenant's images do not delay the requests of others.
pub fn prefetch(preparer: Arc<dyn Prepare>, images: Arc<ModelImages>) -> PrefetchDecoder {
    Arc::new(move |kind, base_model, payload| match kind {
        RequestKind::Forward | RequestKind::ForwardBackward => match raw_batch(&images, base_model, payload) {
            Ok(batch) if has_images(&batch) => Decoded::default(),
            batch => Decoded::new(PreparedContent::Batch(batch.and_then(|batch| preparer.prepare(base_model, batch)))),
        },
        RequestKind::Sample => decode_sample(&payload),
        _ => Decoded::default(),
    })
}

/// The examples of a stored `forward` or `forward_backward`, with images that are not decoded.
///
/// # Errors
/// The user's, by field.
pub(super) fn raw_batch(images: &ModelImages, base_model: &str, payload: Bytes) -> Result<RawBatch, OpError> {
    training::stored_batch(payload, images.rules(base_model)?)
}

/// Whether any example has an image.
pub(super) fn has_images(batch: &RawBatch) -> bool {
    batch.data.iter().any(|datum| !datum.images.is_empty())
}

/// Decodes a stored sample. An unreadable one is left to the worker, which logs it.
fn decode_sample(payload: &Bytes) -> Decoded {
    match Payload::decode(payload) {
        Ok(Payload::Sample { sample, .. }) => {
            Decoded::new(PreparedContent::Sample { sample, images: DecodedImages::new() })
        }
        _ => Decoded::default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{Category, ModelExtents, PreparedBatch};
    use trainyard_wire::images::ImageLimits;
    use trainyard_wire::proto;

    use super::*;
    use crate::engine::testing::{EXTENTS, model, preparer};

    fn images() -> Arc<ModelImages> {
        Arc::new(ModelImages::new(&[model()], ImageLimits::default()))
    }

    /// Makes a training pass over one token.
    fn pass(token: u8) -> Bytes {
        let chunk = proto::EncodedTextChunk { tokens: vec![token, 0, 0, 0].into() };
        let targets = proto::Tensor {
            encoding: Some(proto::tensor::Encoding::Dense(vec![1, 0, 0, 0, 0, 0, 0, 0].into())),
            dtype: proto::DType::Int64.into(),
            shape: vec![1],
        };
        let datum = proto::Datum {
            model_input: vec![proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(chunk)) }],
            loss_fn_inputs: [("target_tokens".to_owned(), targets)].into(),
            ..proto::Datum::default()
        };
        training::encode(&proto::ForwardBackwardRequest {
            model_id: "r".to_owned(),
            data: vec![datum],
            loss_fn: "cross_entropy".to_owned(),
            ..proto::ForwardBackwardRequest::default()
        })
    }

    fn prefetched(base_model: &str, payload: Bytes) -> Result<PreparedBatch, OpError> {
        match prefetch(preparer(), images())(RequestKind::ForwardBackward, base_model, payload).take() {
            Some(PreparedContent::Batch(batch)) => batch,
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn the_examples_of_a_pass_are_checked() {
        let batch = prefetched("acme/tiny", pass(2)).unwrap();
        assert_eq!((batch.data.len(), batch.extents), (1, EXTENTS));
        assert_eq!(batch.extents, ModelExtents { vocab_size: 100, context: 64 });
        let refused = |base_model, token| prefetched(base_model, pass(token)).unwrap_err();
        assert!(refused("acme/tiny", 100).message.contains("vocabulary of 100"));
        assert_eq!(refused("another", 2).category, Category::Server);
    }

    #[test]
    fn a_malformed_pass_says_what_is_wrong() {
        let error = prefetched("acme/tiny", Bytes::from_static(b"\xff")).unwrap_err();
        assert!(error.message.contains("not a valid ForwardBackwardRequest"), "{error}");
    }

    #[test]
    fn what_is_small_or_unreadable_is_left_to_the_worker() {
        let payload = Payload::LoadWeights {
            path: "tinker://a".to_owned(),
            with_optimizer: true,
            create: None,
            reader: None,
            checkpoint_base: None,
        };
        let prefetch = prefetch(preparer(), images());
        let left = |kind, payload| assert_eq!(prefetch(kind, "acme/tiny", payload).take(), None);
        left(RequestKind::LoadWeights, payload.encode().unwrap());
        left(RequestKind::Sample, Bytes::from_static(b"{"));
        left(RequestKind::Sample, payload.encode().unwrap());
    }
}

//! Reading stored requests before their turn, so that the worker's thread finds them ready.

use std::sync::Arc;

use bytes::Bytes;
use trainyard_gpu_runtime::loss::prepare_ahead;
use trainyard_protocol::BaseModel;
use trainyard_scheduler::{Decoded, ReadAhead, RequestKind};

use crate::codec::Payload;
use crate::wire::training;

/// Reads requests to these models: decodes them, and checks the examples of passes and brings them into the form that
/// the engine reads.
pub fn read_ahead(models: Vec<BaseModel>) -> ReadAhead {
    Arc::new(move |kind, base_model, payload| match kind {
        RequestKind::Forward | RequestKind::ForwardBackward => {
            let model = models.iter().find(|model| model.name == *base_model);
            read_pass(payload, model)
        }
        kind if kind.is_upkeep() => Decoded::default(),
        _ => Payload::decode(&payload).map(Decoded::new).unwrap_or_default(),
    })
}

fn read_pass(payload: Bytes, model: Option<&BaseModel>) -> Decoded {
    let mut pass = training::decode(payload).and_then(training::operation);
    if let (Ok(pass), Some(model)) = (&mut pass, model) {
        prepare_ahead(pass, model);
    }
    Decoded::new(pass)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::{Ahead, ForwardBackward, OpError};

    use super::*;
    use crate::wire::proto;

    fn reader() -> ReadAhead {
        read_ahead(vec![BaseModel {
            name: "m".to_owned(),
            arch: "llama".to_owned(),
            max_context_length: 8,
            vocab_size: 10,
            parameters: 1,
        }])
    }

    /// A pass over one token.
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

    fn read(base_model: &str, payload: Bytes) -> Result<ForwardBackward, OpError> {
        reader()(RequestKind::ForwardBackward, base_model, payload).take::<Result<ForwardBackward, OpError>>().unwrap()
    }

    #[test]
    fn the_examples_of_a_pass_are_checked() {
        let read = read("m", pass(2)).unwrap();
        assert!(read.data.is_empty());
        assert_ne!(read.ahead, Ahead::default());
    }

    #[test]
    fn what_can_not_be_checked_is_decoded_and_left_to_the_engine() {
        // A model that this worker has not, and a token that its model has not.
        for (base_model, token) in [("n", 2), ("m", 99)] {
            let read = read(base_model, pass(token)).unwrap();
            assert_eq!((read.data.len(), read.ahead), (1, Ahead::default()));
        }
    }

    #[test]
    fn a_malformed_pass_says_what_is_wrong() {
        let error = read("m", Bytes::from_static(b"\xff")).unwrap_err();
        assert!(error.message.contains("not a valid ForwardBackwardRequest"), "{error}");
    }

    #[test]
    fn other_requests_are_decoded_and_what_is_unreadable_is_left_alone() {
        let payload = Payload::LoadWeights { path: "tinker://a".to_owned(), with_optimizer: true, create: None };
        let decoded = reader()(RequestKind::LoadWeights, "m", payload.encode().unwrap());
        assert_eq!(decoded.take::<Payload>(), Some(payload));
        let unreadable = reader()(RequestKind::Sample, "", Bytes::from_static(b"{"));
        assert_eq!(unreadable.take::<Payload>(), None);
    }
}

//! The body of `forward_backward`: the fields of `tinker_public.proto` that a short example needs.

use std::collections::BTreeMap;

use prost::Message;

/// Value of `DType` in the protocol.
const FLOAT32: i32 = 1;
const INT64: i32 = 2;

/// Message `ForwardBackwardRequest` of the protocol.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TrainingRequest {
    #[prost(string, tag = "1")]
    model_id: String,
    #[prost(int32, tag = "2")]
    pub(super) seq_id: i32,
    #[prost(message, repeated, tag = "3")]
    data: Vec<Example>,
    #[prost(string, tag = "4")]
    loss_fn: String,
}

/// Message `Datum` of the protocol.
#[derive(Clone, PartialEq, Message)]
struct Example {
    #[prost(message, repeated, tag = "1")]
    model_input: Vec<Chunk>,
    #[prost(btree_map = "string, message", tag = "2")]
    loss_fn_inputs: BTreeMap<String, Tensor>,
}

/// Message `Chunk` with text.
#[derive(Clone, PartialEq, Message)]
struct Chunk {
    #[prost(message, tag = "1")]
    encoded_text: Option<EncodedTextChunk>,
}

/// Tokens as little-endian `int32`.
#[derive(Clone, PartialEq, Message)]
struct EncodedTextChunk {
    #[prost(bytes = "vec", tag = "1")]
    tokens: Vec<u8>,
}

/// Message `Tensor` with dense elements.
#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(bytes = "vec", tag = "1")]
    dense: Vec<u8>,
    #[prost(int32, tag = "3")]
    dtype: i32,
    #[prost(int64, repeated, tag = "4")]
    shape: Vec<i64>,
}

impl TrainingRequest {
    /// Builds a request for cross-entropy on one example whose targets are its input tokens.
    pub(super) fn new(model_id: String, tokens: &[i32]) -> Self {
        let shape = vec![tokens.len() as i64];
        let text = EncodedTextChunk { tokens: tokens.iter().flat_map(|token| token.to_le_bytes()).collect() };
        let targets = tokens.iter().flat_map(|&token| i64::from(token).to_le_bytes()).collect();
        let weights = tokens.iter().flat_map(|_| 1f32.to_le_bytes()).collect();
        let inputs = [
            ("target_tokens".to_owned(), Tensor { dense: targets, dtype: INT64, shape: shape.clone() }),
            ("weights".to_owned(), Tensor { dense: weights, dtype: FLOAT32, shape }),
        ];
        let model_input = vec![Chunk { encoded_text: Some(text) }];
        let example = Example { model_input, loss_fn_inputs: inputs.into() };
        Self { model_id, seq_id: 1, data: vec![example], loss_fn: "cross_entropy".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;
    use trainyard_wire::images::ImageRules;
    use trainyard_wire::training;

    use super::super::client::example_tokens;
    use super::TrainingRequest;

    /// These message types must match the server's.
    #[test]
    fn a_server_reads_the_training_request() {
        let body = TrainingRequest::new("s:train:0".to_owned(), &example_tokens()).encode_to_vec();
        assert_eq!(
            training::proto_ids(&body).map(|(run, seq_id)| (run.to_string(), seq_id)),
            Some(("s:train:0".to_owned(), 1))
        );
        let batch =
            training::decode(body.into()).and_then(|request| training::batch(request, &ImageRules::text_only("m")));
        assert!(batch.is_ok_and(|batch| batch.data[0].tokens.len() == 16 && batch.data[0].loss_fn_inputs.len() == 2));
    }
}

//! The protobuf messages of the protocol that this client uses (`openapi/tinker_public.proto`).

use std::collections::BTreeMap;

/// Number of the element type float32.
pub(crate) const FLOAT32: i32 = 1;
pub(crate) const INT64: i32 = 2;
pub(crate) const INT32: i32 = 3;

/// Number of the `StopReason` for reaching the length limit.
pub(crate) const STOPPED_BY_LENGTH: i32 = 1;

/// Request body of `forward_backward`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ForwardBackwardRequest {
    #[prost(string, tag = "1")]
    pub(crate) model_id: String,
    #[prost(int32, tag = "2")]
    pub(crate) seq_id: i32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) data: Vec<Datum>,
    #[prost(string, tag = "4")]
    pub(crate) loss_fn: String,
    #[prost(bool, tag = "6")]
    pub(crate) forward_only: bool,
    #[prost(btree_map = "string, message", tag = "7")]
    pub(crate) loss_fn_config_v2: BTreeMap<String, LossConfigValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct LossConfigValue {
    #[prost(oneof = "Setting", tags = "1, 2")]
    pub(crate) value: Option<Setting>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Setting {
    #[prost(double, tag = "1")]
    Number(f64),
    #[prost(string, tag = "2")]
    Text(String),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Datum {
    #[prost(message, repeated, tag = "1")]
    pub(crate) model_input: Vec<Chunk>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) loss_fn_inputs: BTreeMap<String, Tensor>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Chunk {
    #[prost(oneof = "ChunkContent", tags = "1, 2")]
    pub(crate) content: Option<ChunkContent>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum ChunkContent {
    #[prost(message, tag = "1")]
    EncodedText(EncodedTextChunk),
    #[prost(message, tag = "2")]
    Image(ImageChunk),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ImageChunk {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    #[prost(string, tag = "2")]
    pub(crate) format: String,
    #[prost(int32, optional, tag = "3")]
    pub(crate) expected_tokens: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct EncodedTextChunk {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) tokens: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Tensor {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(crate) dense: Option<Vec<u8>>,
    #[prost(int32, tag = "3")]
    pub(crate) dtype: i32,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) shape: Vec<i64>,
}

/// Result of `forward` and `forward_backward`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ForwardBackwardOutput {
    #[prost(message, repeated, tag = "2")]
    pub(crate) loss_fn_outputs: Vec<ArrayRecord>,
    #[prost(btree_map = "string, double", tag = "3")]
    pub(crate) metrics: BTreeMap<String, f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ArrayRecord {
    #[prost(btree_map = "string, message", tag = "2")]
    pub(crate) fields: BTreeMap<String, BatchedTensor>,
    #[prost(int64, tag = "3")]
    pub(crate) num_datums: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct BatchedTensor {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) data: Vec<u8>,
    /// Byte offsets as int64, one more than there are datums.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) offsets: Vec<u8>,
    #[prost(int32, tag = "3")]
    pub(crate) dtype: i32,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) trailing_shape: Vec<i64>,
}

/// Result message of `asample`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SampleResponse {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sequences: Vec<SampledSequence>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) prompt_logprobs: Option<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    pub(crate) topk_prompt_logprobs: Option<TopkLogprobs>,
    #[prost(int32, tag = "4")]
    pub(crate) prompt_cache_hit_tokens: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SampledSequence {
    #[prost(int32, tag = "1")]
    pub(crate) stop_reason: i32,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) tokens: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(crate) logprobs: Option<Vec<u8>>,
    #[prost(message, optional, tag = "4")]
    pub(crate) topk_sampled_logprobs: Option<TopkLogprobs>,
}

/// Candidates per token. An empty cell is token 0 with log-probability -99999.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TopkLogprobs {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) token_ids: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) logprobs: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub(crate) k: u32,
}

//! The protobuf messages of the protocol, package `tinker_public`.
//!
//! `openapi/tinker_public.proto` documents them; the two change together. All byte arrays are
//! little-endian, densely packed and row-major.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Element types. 0 is invalid on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DType {
    /// Not set.
    Unspecified = 0,
    /// IEEE 754 binary32.
    Float32 = 1,
    /// Signed 64-bit.
    Int64 = 2,
    /// Signed 32-bit.
    Int32 = 3,
    /// The upper half of a binary32.
    Bfloat16 = 4,
}

/// Why a sampled sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum StopReason {
    /// An end token or a stop matched.
    Stop = 0,
    /// `max_tokens` or the context limit.
    Length = 1,
}

/// The ids of a training request alone, readable even when the rest of the message is malformed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrainingIds {
    /// The run.
    #[prost(string, tag = "1")]
    pub model_id: String,
    /// Its position in the run's order.
    #[prost(int32, tag = "2")]
    pub seq_id: i32,
}

/// Body of `forward_backward`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ForwardBackwardRequest {
    /// The run.
    #[prost(string, tag = "1")]
    pub model_id: String,
    /// Its position in the run's order, from 1.
    #[prost(int32, tag = "2")]
    pub seq_id: i32,
    /// Training examples.
    #[prost(message, repeated, tag = "3")]
    pub data: Vec<Datum>,
    /// Name of the loss function.
    #[prost(string, tag = "4")]
    pub loss_fn: String,
    /// Legacy mirror of the numeric settings.
    #[prost(btree_map = "string, double", tag = "5")]
    pub loss_fn_config: BTreeMap<String, f64>,
    /// Leave the accumulated gradient alone.
    #[prost(bool, tag = "6")]
    pub forward_only: bool,
    /// Settings of the loss function; authoritative when not empty.
    #[prost(btree_map = "string, message", tag = "7")]
    pub loss_fn_config_v2: BTreeMap<String, LossConfigValue>,
}

/// A setting of a loss function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LossConfigValue {
    /// Number or text.
    #[prost(oneof = "loss_config_value::Value", tags = "1, 2")]
    pub value: Option<loss_config_value::Value>,
}

/// The alternatives of [`LossConfigValue`].
pub mod loss_config_value {
    /// Number or text.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// A number.
        #[prost(double, tag = "1")]
        Number(f64),
        /// A text.
        #[prost(string, tag = "2")]
        Text(String),
    }
}

/// One training example.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Datum {
    /// The input, piece by piece.
    #[prost(message, repeated, tag = "1")]
    pub model_input: Vec<Chunk>,
    /// Inputs of the loss function by name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub loss_fn_inputs: BTreeMap<String, Tensor>,
    /// Where the input tokens came from.
    #[prost(message, repeated, tag = "3")]
    pub model_input_spans: Vec<ProvenanceSpan>,
    /// Where the rows of `target_tokens` came from.
    #[prost(message, repeated, tag = "4")]
    pub loss_fn_input_spans: Vec<ProvenanceSpan>,
}

/// Where a run of tokens came from.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProvenanceSpan {
    /// A prompt or a sample.
    #[prost(oneof = "provenance_span::Span", tags = "1, 2")]
    pub span: Option<provenance_span::Span>,
}

/// The alternatives of [`ProvenanceSpan`].
pub mod provenance_span {
    /// A prompt or a sample.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Span {
        /// Part of a sample's prompt.
        #[prost(message, tag = "1")]
        PromptTokens(super::TokenSpan),
        /// Part of a sampled sequence.
        #[prost(message, tag = "2")]
        SampledTokens(super::TokenSpan),
    }
}

/// `PromptProvenanceSpan` and `SampledProvenanceSpan`, which have the same fields.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TokenSpan {
    /// The sampled sequence.
    #[prost(string, tag = "1")]
    pub sequence_id: String,
    /// First token.
    #[prost(int64, tag = "2")]
    pub offset: i64,
    /// Number of tokens.
    #[prost(int64, tag = "3")]
    pub length: i64,
}

/// A piece of a model input.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Chunk {
    /// Its content.
    #[prost(oneof = "chunk::Content", tags = "1, 2, 3")]
    pub chunk: Option<chunk::Content>,
}

/// The alternatives of [`Chunk`].
pub mod chunk {
    /// A chunk's content.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Content {
        /// Tokens.
        #[prost(message, tag = "1")]
        EncodedText(super::EncodedTextChunk),
        /// A picture.
        #[prost(message, tag = "2")]
        Image(super::ImageChunk),
        /// Audio.
        #[prost(message, tag = "3")]
        Dmel(super::DmelChunk),
    }
}

/// Tokens.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EncodedTextChunk {
    /// `int32` each.
    #[prost(bytes = "bytes", tag = "1")]
    pub tokens: Bytes,
}

/// A picture.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImageChunk {
    /// The file.
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    /// `png` or `jpeg`.
    #[prost(string, tag = "2")]
    pub format: String,
    /// Its length in tokens, as the client believes.
    #[prost(int32, optional, tag = "3")]
    pub expected_tokens: Option<i32>,
    /// Scale it to this size.
    #[prost(message, optional, tag = "4")]
    pub override_dimensions: Option<ImageDimensions>,
}

/// Pixels.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImageDimensions {
    /// Columns.
    #[prost(uint32, tag = "1")]
    pub width: u32,
    /// Rows.
    #[prost(uint32, tag = "2")]
    pub height: u32,
}

/// Audio.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DmelChunk {
    /// A serialized tensor container.
    #[prost(bytes = "bytes", tag = "1")]
    pub dmel: Bytes,
}

/// A tensor, dense or compressed by rows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tensor {
    /// The elements.
    #[prost(oneof = "tensor::Encoding", tags = "1, 2")]
    pub encoding: Option<tensor::Encoding>,
    /// Type of the elements.
    #[prost(enumeration = "DType", tag = "3")]
    pub dtype: i32,
    /// Extents, outermost first; empty means one-dimensional.
    #[prost(int64, repeated, tag = "4")]
    pub shape: Vec<i64>,
}

/// The alternatives of [`Tensor`].
pub mod tensor {
    /// Layout of the elements.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Encoding {
        /// All elements.
        #[prost(bytes = "bytes", tag = "1")]
        Dense(bytes::Bytes),
        /// Listed elements of a matrix.
        #[prost(message, tag = "2")]
        SparseCsr(super::SparseCsr),
    }
}

/// Listed elements of a matrix, row by row.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseCsr {
    /// In the tensor's type.
    #[prost(bytes = "bytes", tag = "1")]
    pub values: Bytes,
    /// `int64`, rows + 1 entries.
    #[prost(bytes = "bytes", tag = "2")]
    pub crow_indices: Bytes,
    /// `int64`, one per value.
    #[prost(bytes = "bytes", tag = "3")]
    pub col_indices: Bytes,
}

/// Result of `forward` and `forward_backward`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ForwardBackwardOutput {
    /// Free text; the part after the last `:` is shown.
    #[prost(string, tag = "1")]
    pub loss_fn_output_type: String,
    /// Datums in request order, in rectangular groups.
    #[prost(message, repeated, tag = "2")]
    pub loss_fn_outputs: Vec<ArrayRecord>,
    /// Keys `name:reduction`.
    #[prost(btree_map = "string, double", tag = "3")]
    pub metrics: BTreeMap<String, f64>,
}

/// Consecutive datums whose fields have the same trailing shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArrayRecord {
    /// Free text.
    #[prost(string, tag = "1")]
    pub type_tag: String,
    /// Fields by name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub fields: BTreeMap<String, BatchedTensor>,
    /// Datums in this record.
    #[prost(int64, tag = "3")]
    pub num_datums: i64,
}

/// A field's values for several datums, one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchedTensor {
    /// All elements.
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    /// `int64` byte offsets into `data`, one more than there are datums.
    #[prost(bytes = "bytes", tag = "2")]
    pub offsets: Bytes,
    /// Type of the elements.
    #[prost(enumeration = "DType", tag = "3")]
    pub dtype: i32,
    /// A datum's shape without its first extent.
    #[prost(int64, repeated, tag = "4")]
    pub trailing_shape: Vec<i64>,
}

/// Result of `asample`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SampleResponse {
    /// In the order of the submission's sequence ids.
    #[prost(message, repeated, tag = "1")]
    pub sequences: Vec<SampledSequence>,
    /// `float32`, one per prompt token; NaN where there is none.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub prompt_logprobs: Option<Bytes>,
    /// One row per prompt token.
    #[prost(message, optional, tag = "3")]
    pub topk_prompt_logprobs: Option<TopkLogprobs>,
    /// Prompt tokens served from the prefix cache.
    #[prost(int32, tag = "4")]
    pub prompt_cache_hit_tokens: i32,
    /// `float32` in the request's shape and layout.
    #[prost(message, optional, tag = "5")]
    pub target_prompt_logprobs: Option<Tensor>,
    /// Tokens sampled at every prompt position after the first.
    #[prost(message, optional, tag = "6")]
    pub prompt_alt_tokens: Option<PromptAltTokens>,
}

/// One completion.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SampledSequence {
    /// Why it ended.
    #[prost(enumeration = "StopReason", tag = "1")]
    pub stop_reason: i32,
    /// `int32` each.
    #[prost(bytes = "bytes", tag = "2")]
    pub tokens: Bytes,
    /// `float32`, one per token.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub logprobs: Option<Bytes>,
    /// One row per token.
    #[prost(message, optional, tag = "4")]
    pub topk_sampled_logprobs: Option<TopkLogprobs>,
}

/// Most likely candidates per position; an empty cell is token 0 with log-probability -99999.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TopkLogprobs {
    /// `int32`, `[length, k]`.
    #[prost(bytes = "bytes", tag = "1")]
    pub token_ids: Bytes,
    /// `float32`, `[length, k]`.
    #[prost(bytes = "bytes", tag = "2")]
    pub logprobs: Bytes,
    /// Candidates per position.
    #[prost(uint32, tag = "3")]
    pub k: u32,
    /// Positions.
    #[prost(uint32, tag = "4")]
    pub length: u32,
}

/// Tokens sampled independently per prompt position.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptAltTokens {
    /// `int32`, `[len(prompt) - 1, k]`.
    #[prost(message, optional, tag = "1")]
    pub tokens: Option<Tensor>,
    /// `float32`, the same shape.
    #[prost(message, optional, tag = "2")]
    pub logprobs: Option<Tensor>,
}

#[cfg(test)]
#[path = "proto_tests.rs"]
mod tests;

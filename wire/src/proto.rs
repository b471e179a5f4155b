//! Protobuf messages of the protocol, in the package `tinker_public`.
//!
//! `openapi/tinker_public.proto` documents them; both change together. All byte arrays are little-endian, densely
//! packed and row-major.

use std::collections::BTreeMap;

use bytes::Bytes;

/// Element types of tensors. 0 is invalid on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DType {
    /// No type was set.
    Unspecified = 0,
    /// Floating-point number of 32 bits (IEEE 754 binary32).
    Float32 = 1,
    /// Signed integer of 64 bits.
    Int64 = 2,
    /// Signed integer of 32 bits.
    Int32 = 3,
    /// Upper half of a binary32.
    Bfloat16 = 4,
}

/// Reason why a sampled sequence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum StopReason {
    /// An end token or a stop condition matched.
    Stop = 0,
    /// The sequence reached `max_tokens` or the context limit.
    Length = 1,
}

/// The ids of a training request, which can be read even if the rest of the message is malformed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrainingIds {
    /// Id of the run.
    #[prost(string, tag = "1")]
    pub model_id: String,
    /// Position in the run's order.
    #[prost(int32, tag = "2")]
    pub seq_id: i32,
}

/// Request body of `forward_backward`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ForwardBackwardRequest {
    /// Id of the run.
    #[prost(string, tag = "1")]
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[prost(int32, tag = "2")]
    pub seq_id: i32,
    /// Training examples of the batch.
    #[prost(message, repeated, tag = "3")]
    pub data: Vec<Datum>,
    /// Name of the loss function.
    #[prost(string, tag = "4")]
    pub loss_fn: String,
    /// Numeric settings of the loss function, for older clients.
    #[prost(btree_map = "string, double", tag = "5")]
    pub loss_fn_config: BTreeMap<String, f64>,
    /// Whether to compute only the forward pass, which leaves the accumulated gradient unchanged.
    #[prost(bool, tag = "6")]
    pub forward_only: bool,
    /// Settings of the loss function; if not empty, they replace the numeric ones.
    #[prost(btree_map = "string, message", tag = "7")]
    pub loss_fn_config_v2: BTreeMap<String, LossConfigValue>,
}

/// Value of a setting of a loss function.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LossConfigValue {
    /// Either a number or a text.
    #[prost(oneof = "loss_config_value::Value", tags = "1, 2")]
    pub value: Option<loss_config_value::Value>,
}

/// Alternatives within a [`LossConfigValue`].
pub mod loss_config_value {
    /// Either a number or a text.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// A number, for numeric settings.
        #[prost(double, tag = "1")]
        Number(f64),
        /// A text, for other settings.
        #[prost(string, tag = "2")]
        Text(String),
    }
}

/// A training example with the inputs of its loss.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Datum {
    /// Input of the model, as a list of pieces.
    #[prost(message, repeated, tag = "1")]
    pub model_input: Vec<Chunk>,
    /// Inputs of the loss function, by name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub loss_fn_inputs: BTreeMap<String, Tensor>,
    /// Origin of the input tokens.
    #[prost(message, repeated, tag = "3")]
    pub model_input_spans: Vec<ProvenanceSpan>,
    /// Origin of the rows of `target_tokens`.
    #[prost(message, repeated, tag = "4")]
    pub loss_fn_input_spans: Vec<ProvenanceSpan>,
}

/// Origin of consecutive tokens.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProvenanceSpan {
    /// Part of a prompt or of a sampled sequence.
    #[prost(oneof = "provenance_span::Span", tags = "1, 2")]
    pub span: Option<provenance_span::Span>,
}

/// Alternatives within a [`ProvenanceSpan`].
pub mod provenance_span {
    /// Part of a prompt or of a sampled sequence.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Span {
        /// Part of the prompt of a sample.
        #[prost(message, tag = "1")]
        PromptTokens(super::TokenSpan),
        /// Part of a sampled sequence.
        #[prost(message, tag = "2")]
        SampledTokens(super::TokenSpan),
    }
}

/// Fields of `PromptProvenanceSpan` and `SampledProvenanceSpan`, which are the same.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TokenSpan {
    /// Id of the sampled sequence.
    #[prost(string, tag = "1")]
    pub sequence_id: String,
    /// Index of the first token.
    #[prost(int64, tag = "2")]
    pub offset: i64,
    /// Number of tokens in the span.
    #[prost(int64, tag = "3")]
    pub length: i64,
}

/// A piece of a model input.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Chunk {
    /// Content of the piece.
    #[prost(oneof = "chunk::Content", tags = "1, 2, 3")]
    pub chunk: Option<chunk::Content>,
}

/// Alternatives within a [`Chunk`].
pub mod chunk {
    /// Content of a piece.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Content {
        /// Token ids of encoded text.
        #[prost(message, tag = "1")]
        EncodedText(super::EncodedTextChunk),
        /// An image, for models with a vision tower.
        #[prost(message, tag = "2")]
        Image(super::ImageChunk),
        /// Audio, which is refused.
        #[prost(message, tag = "3")]
        Dmel(super::DmelChunk),
    }
}

/// Token ids of encoded text.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EncodedTextChunk {
    /// Token ids, `int32` each.
    #[prost(bytes = "bytes", tag = "1")]
    pub tokens: Bytes,
}

/// An image within a model input.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImageChunk {
    /// Bytes of the image file.
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    /// File format: `png` or `jpeg`.
    #[prost(string, tag = "2")]
    pub format: String,
    /// Number of tokens that the client expects the image to take.
    #[prost(int32, optional, tag = "3")]
    pub expected_tokens: Option<i32>,
    /// Size from which tokens are counted, and to which the image is resized, instead of the file's.
    #[prost(message, optional, tag = "4")]
    pub override_dimensions: Option<ImageDimensions>,
}

/// Size of an image, in pixels.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ImageDimensions {
    /// Width: the number of columns.
    #[prost(uint32, tag = "1")]
    pub width: u32,
    /// Height: the number of rows.
    #[prost(uint32, tag = "2")]
    pub height: u32,
}

/// Audio within a model input.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DmelChunk {
    /// Serialized container of tensors.
    #[prost(bytes = "bytes", tag = "1")]
    pub dmel: Bytes,
}

/// A tensor, either dense or as compressed sparse rows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Tensor {
    /// Elements of the tensor.
    #[prost(oneof = "tensor::Encoding", tags = "1, 2")]
    pub encoding: Option<tensor::Encoding>,
    /// Type of the elements.
    #[prost(enumeration = "DType", tag = "3")]
    pub dtype: i32,
    /// Extents, outermost first. An empty list stands for one dimension.
    #[prost(int64, repeated, tag = "4")]
    pub shape: Vec<i64>,
}

/// Alternatives within a [`Tensor`].
pub mod tensor {
    /// Layout of the elements.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Encoding {
        /// All elements, in row-major order.
        #[prost(bytes = "bytes", tag = "1")]
        Dense(bytes::Bytes),
        /// Some elements of a matrix, as compressed sparse rows.
        #[prost(message, tag = "2")]
        SparseCsr(super::SparseCsr),
    }
}

/// Some elements of a matrix, as compressed sparse rows.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseCsr {
    /// Values, in the tensor's element type.
    #[prost(bytes = "bytes", tag = "1")]
    pub values: Bytes,
    /// Row pointers: rows + 1 entries, `int64` each.
    #[prost(bytes = "bytes", tag = "2")]
    pub crow_indices: Bytes,
    /// Columns: one `int64` per value.
    #[prost(bytes = "bytes", tag = "3")]
    pub col_indices: Bytes,
}

/// Result of `forward` and `forward_backward`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ForwardBackwardOutput {
    /// Free text, of which clients show the part after the last `:`.
    #[prost(string, tag = "1")]
    pub loss_fn_output_type: String,
    /// Outputs of the datums in the order of the request, grouped by shape.
    #[prost(message, repeated, tag = "2")]
    pub loss_fn_outputs: Vec<ArrayRecord>,
    /// Metrics, with keys of the form `name:reduction`.
    #[prost(btree_map = "string, double", tag = "3")]
    pub metrics: BTreeMap<String, f64>,
}

/// Outputs of consecutive datums whose fields have the same trailing shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ArrayRecord {
    /// Free text that clients ignore.
    #[prost(string, tag = "1")]
    pub type_tag: String,
    /// Fields of the outputs, by name.
    #[prost(btree_map = "string, message", tag = "2")]
    pub fields: BTreeMap<String, BatchedTensor>,
    /// Number of datums in this record.
    #[prost(int64, tag = "3")]
    pub num_datums: i64,
}

/// Values of a field for several datums, one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchedTensor {
    /// Elements of all datums.
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    /// Offsets of the datums in `data`, in bytes: `int64` each, one more than there are datums.
    #[prost(bytes = "bytes", tag = "2")]
    pub offsets: Bytes,
    /// Type of the elements.
    #[prost(enumeration = "DType", tag = "3")]
    pub dtype: i32,
    /// Shape of each datum, without its first extent.
    #[prost(int64, repeated, tag = "4")]
    pub trailing_shape: Vec<i64>,
}

/// Result of `asample`, which `retrieve_future` returns.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SampleResponse {
    /// Sequences in the order of the submission's sequence ids.
    #[prost(message, repeated, tag = "1")]
    pub sequences: Vec<SampledSequence>,
    /// Log-probabilities of the prompt: a `float32` per token; NaN for the first one.
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub prompt_logprobs: Option<Bytes>,
    /// Most likely candidates: a row per prompt token.
    #[prost(message, optional, tag = "3")]
    pub topk_prompt_logprobs: Option<TopkLogprobs>,
    /// Number of prompt tokens that the prefix cache served.
    #[prost(int32, tag = "4")]
    pub prompt_cache_hit_tokens: i32,
    /// Log-probabilities of the target tokens: `float32` each, in the shape and layout of the request.
    #[prost(message, optional, tag = "5")]
    pub target_prompt_logprobs: Option<Tensor>,
    /// Tokens that were sampled at every prompt position after the first.
    #[prost(message, optional, tag = "6")]
    pub prompt_alt_tokens: Option<PromptAltTokens>,
}

/// A completion that was sampled.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SampledSequence {
    /// Reason why the sequence ended.
    #[prost(enumeration = "StopReason", tag = "1")]
    pub stop_reason: i32,
    /// Sampled token ids, `int32` each.
    #[prost(bytes = "bytes", tag = "2")]
    pub tokens: Bytes,
    /// Log-probabilities: a `float32` per token.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub logprobs: Option<Bytes>,
    /// Most likely candidates: a row per token.
    #[prost(message, optional, tag = "4")]
    pub topk_sampled_logprobs: Option<TopkLogprobs>,
}

/// Most likely candidates per position. An empty cell contains token 0 and the log-probability -99999.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TopkLogprobs {
    /// Token ids: `int32` in the shape `[length, k]`.
    #[prost(bytes = "bytes", tag = "1")]
    pub token_ids: Bytes,
    /// Log-probabilities: `float32` in the shape `[length, k]`.
    #[prost(bytes = "bytes", tag = "2")]
    pub logprobs: Bytes,
    /// Number of candidates per position.
    #[prost(uint32, tag = "3")]
    pub k: u32,
    /// Number of positions, the rows.
    #[prost(uint32, tag = "4")]
    pub length: u32,
}

/// Tokens that were sampled independently for each prompt position.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PromptAltTokens {
    /// Token ids: `int32` in the shape `[len(prompt) - 1, k]`.
    #[prost(message, optional, tag = "1")]
    pub tokens: Option<Tensor>,
    /// Log-probabilities: `float32` in the same shape.
    #[prost(message, optional, tag = "2")]
    pub logprobs: Option<Tensor>,
}

#[cfg(test)]
#[path = "proto_tests.rs"]
mod tests;

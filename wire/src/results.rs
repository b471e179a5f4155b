//! Results of samples and training passes in JSON, converted from the protobuf form that is stored.
//!
//! Floats are written as the doubles that equal them, so that both forms contain the same numbers to the bit. Numbers
//! that are not finite, such as the log-probability of a prompt's first token, become null.

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use trainyard_protocol::limits::MAX_DATUMS;
use utoipa::ToSchema;

use super::futures::{FailedResponse, TryAgainResponse};
use super::proto::{self, DType};
use super::tensor::{TensorData, TensorDtype};
use super::training;

/// Cell without a candidate in a row of top-k candidates.
const EMPTY_CELL: (i32, f32) = (0, -99_999.0);

/// Token ids and log-probabilities of the candidates for each position, or `None` for a position without candidates.
type Candidates = Vec<Option<Vec<(i32, f64)>>>;

/// Error when reading a stored result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The bytes are not valid protobuf.
    #[error("stored result: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// The content contradicts itself.
    #[error("stored result: {0} does not match its other fields")]
    Content(&'static str),
    /// The JSON form can't be written.
    #[error("stored result: {0}")]
    Json(#[from] serde_json::Error),
}

/// Converts a result from protobuf to JSON.
///
/// # Errors
///
/// An error if the bytes are not a result.
pub fn to_json(payload: &Bytes) -> Result<Bytes, ResultError> {
    let json = if training::is_output(payload) {
        serde_json::to_vec(&TrainingResult::new(&proto::ForwardBackwardOutput::decode(payload.clone())?)?)?
    } else {
        serde_json::to_vec(&SampleResult::new(&proto::SampleResponse::decode(payload.clone())?)?)?
    };
    Ok(json.into())
}

/// JSON answers of `retrieve_future`, for the API's description: the first that fits.
#[derive(ToSchema)]
#[schema(as = RetrieveFutureResponse)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its description is used")]
pub enum RetrieveFutureResponse {
    /// The result is pending: poll again.
    TryAgain(TryAgainResponse),
    /// The request has failed.
    Failed(FailedResponse),
    /// Result of `asample`, in JSON.
    Sample(Box<SampleResult<'static>>),
    /// Result of `forward` and `forward_backward`, in JSON.
    Training(TrainingResult<'static>),
    /// Result of any other request: the object that it created, or its metrics.
    Other(BTreeMap<String, serde_json::Value>),
}

/// Result of `forward` and `forward_backward`.
#[derive(Serialize, ToSchema)]
pub struct TrainingResult<'a> {
    /// Type of the outputs.
    loss_fn_output_type: &'a str,
    /// Outputs of each datum in the order of the request: `logprobs`, `elementwise_loss`, `entropies` if a datum has
    /// `entropy_weights`, and `kl` if one has `kl_weights`.
    #[schema(value_type = Vec<BTreeMap<String, TensorData>>)]
    loss_fn_outputs: Vec<BTreeMap<&'a str, TensorResult<'a>>>,
    /// Metrics, with keys of the form `name:reduction`, such as `loss:sum`.
    metrics: &'a BTreeMap<String, f64>,
}

impl<'a> TrainingResult<'a> {
    fn new(output: &'a proto::ForwardBackwardOutput) -> Result<Self, ResultError> {
        let mut loss_fn_outputs = Vec::new();
        for record in &output.loss_fn_outputs {
            let datums = usize::try_from(record.num_datums).map_err(|_| ResultError::Content("num_datums"))?;
            let mut outputs = vec![BTreeMap::new(); datums.min(MAX_DATUMS)];
            for (name, field) in &record.fields {
                for (datum, output) in outputs.iter_mut().enumerate() {
                    output.insert(name.as_str(), TensorResult::of_datum(field, datum)?);
                }
            }
            loss_fn_outputs.append(&mut outputs);
        }
        Ok(Self { loss_fn_output_type: &output.loss_fn_output_type, loss_fn_outputs, metrics: &output.metrics })
    }
}

/// Result of `asample`, which `retrieve_future` returns.
#[derive(Serialize, ToSchema)]
pub struct SampleResult<'a> {
    /// Always the text `sample`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Sequences in the order of the submission's sequence ids.
    #[schema(value_type = Vec<SequenceResult>)]
    sequences: Vec<SequenceResult<'a>>,
    /// Log-probabilities of the prompt, one per token; null for the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<f32>>>)]
    prompt_logprobs: Option<Elements<'a>>,
    /// Up to k pairs of token id and log-probability for each prompt token; null for the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<Vec<Vec<f64>>>>>)]
    topk_prompt_logprobs: Option<Candidates>,
    /// Number of prompt tokens that the prefix cache served.
    prompt_cache_hit_tokens: i32,
    /// Log-probabilities of the target tokens, in the shape and layout of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TensorData>)]
    target_prompt_logprobs: Option<TensorResult<'a>>,
    /// Tokens that were sampled at every prompt position after the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PromptAltTokensResult>)]
    prompt_alt_tokens: Option<PromptAltTokensResult<'a>>,
}

/// A completion that was sampled.
#[derive(Serialize, ToSchema)]
pub(crate) struct SequenceResult<'a> {
    /// Why the sequence ended: `stop` or `length`.
    stop_reason: &'static str,
    /// Ids of the sampled tokens.
    #[schema(value_type = Vec<i32>)]
    tokens: Elements<'a>,
    /// Log-probabilities of the sampled tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<f32>>)]
    logprobs: Option<Elements<'a>>,
    /// Up to k pairs of token id and log-probability for each sampled token, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<Vec<Vec<f64>>>>>)]
    topk_logprobs: Option<Candidates>,
}

/// Tokens that were sampled independently for each prompt position.
#[derive(Serialize, ToSchema)]
pub(crate) struct PromptAltTokensResult<'a> {
    /// Token ids in the shape `[len(prompt) - 1, k]`.
    #[schema(value_type = TensorData)]
    tokens: TensorResult<'a>,
    /// Log-probabilities of the tokens, in the same shape.
    #[schema(value_type = TensorData)]
    logprobs: TensorResult<'a>,
}

impl<'a> SampleResult<'a> {
    fn new(response: &'a proto::SampleResponse) -> Result<Self, ResultError> {
        let alternatives = |found: &'a proto::PromptAltTokens| {
            let tensor = |tensor: &'a Option<proto::Tensor>| {
                TensorResult::new(tensor.as_ref().ok_or(ResultError::Content("prompt_alt_tokens"))?)
            };
            Ok::<_, ResultError>(PromptAltTokensResult {
                tokens: tensor(&found.tokens)?,
                logprobs: tensor(&found.logprobs)?,
            })
        };
        Ok(Self {
            kind: "sample",
            sequences: response.sequences.iter().map(SequenceResult::new).collect::<Result<_, _>>()?,
            prompt_logprobs: response.prompt_logprobs.as_deref().map(Elements::F32),
            topk_prompt_logprobs: response.topk_prompt_logprobs.as_ref().map(topk).transpose()?,
            prompt_cache_hit_tokens: response.prompt_cache_hit_tokens,
            target_prompt_logprobs: response.target_prompt_logprobs.as_ref().map(TensorResult::new).transpose()?,
            prompt_alt_tokens: response.prompt_alt_tokens.as_ref().map(alternatives).transpose()?,
        })
    }
}

impl<'a> SequenceResult<'a> {
    fn new(sequence: &'a proto::SampledSequence) -> Result<Self, ResultError> {
        let stop_reason = match sequence.stop_reason() {
            proto::StopReason::Stop => "stop",
            proto::StopReason::Length => "length",
        };
        Ok(Self {
            stop_reason,
            tokens: Elements::I32(&sequence.tokens),
            logprobs: sequence.logprobs.as_deref().map(Elements::F32),
            topk_logprobs: sequence.topk_sampled_logprobs.as_ref().map(topk).transpose()?,
        })
    }
}

/// Returns the candidates for each position, or `None` for a position without candidates.
fn topk(rows: &proto::TopkLogprobs) -> Result<Candidates, ResultError> {
    let (k, length) = (rows.k as usize, rows.length as usize);
    let (ids, _) = rows.token_ids.as_chunks::<4>();
    let (logprobs, _) = rows.logprobs.as_chunks::<4>();
    if k == 0 {
        return Ok(Vec::new());
    }
    if ids.len() != logprobs.len() || ids.len() != k.saturating_mul(length) {
        return Err(ResultError::Content("topk_logprobs"));
    }
    let row = |(ids, logprobs): (&[[u8; 4]], &[[u8; 4]])| {
        let cells =
            ids.iter().zip(logprobs).map(|(id, logprob)| (i32::from_le_bytes(*id), f32::from_le_bytes(*logprob)));
        let found: Vec<_> = cells.filter(|cell| *cell != EMPTY_CELL).map(|(id, value)| (id, value.into())).collect();
        (!found.is_empty()).then_some(found)
    };
    Ok(ids.chunks(k).zip(logprobs.chunks(k)).map(row).collect())
}

/// A tensor in the form of [`TensorData`].
#[derive(Clone, Serialize)]
struct TensorResult<'a> {
    data: Elements<'a>,
    dtype: TensorDtype,
    shape: Vec<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse_crow_indices: Option<Elements<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse_col_indices: Option<Elements<'a>>,
}

impl<'a> TensorResult<'a> {
    fn new(tensor: &'a proto::Tensor) -> Result<Self, ResultError> {
        let (values, indices) = match &tensor.encoding {
            Some(proto::tensor::Encoding::Dense(values)) => (values, None),
            Some(proto::tensor::Encoding::SparseCsr(csr)) => (&csr.values, Some(csr)),
            None => return Err(ResultError::Content("tensor")),
        };
        let (data, dtype) = Elements::new(tensor.dtype(), values)?;
        Ok(Self {
            data,
            dtype,
            shape: tensor.shape.clone(),
            sparse_crow_indices: indices.map(|csr| Elements::I64(&csr.crow_indices)),
            sparse_col_indices: indices.map(|csr| Elements::I64(&csr.col_indices)),
        })
    }

    /// Returns the part of a field that belongs to a datum.
    fn of_datum(field: &'a proto::BatchedTensor, datum: usize) -> Result<Self, ResultError> {
        let wrong = || ResultError::Content("offsets");
        let (offsets, _) = field.offsets.as_chunks::<8>();
        let at = |index: usize| {
            let offset = offsets.get(index).ok_or_else(wrong)?;
            usize::try_from(i64::from_le_bytes(*offset)).map_err(|_| wrong())
        };
        let bytes = field.data.get(at(datum)?..at(datum + 1)?).ok_or_else(wrong)?;
        let (data, dtype) = Elements::new(field.dtype(), bytes)?;
        let row: i64 = field.trailing_shape.iter().product();
        let rows = (data.len() as i64).checked_div(row).unwrap_or(0);
        let shape = [&[rows][..], &field.trailing_shape].concat();
        Ok(Self { data, dtype, shape, sparse_crow_indices: None, sparse_col_indices: None })
    }
}

/// Little-endian elements that become a list of JSON numbers.
#[derive(Clone, Copy)]
enum Elements<'a> {
    F32(&'a [u8]),
    I32(&'a [u8]),
    I64(&'a [u8]),
}

impl<'a> Elements<'a> {
    fn new(dtype: DType, bytes: &'a [u8]) -> Result<(Self, TensorDtype), ResultError> {
        match dtype {
            DType::Float32 => Ok((Self::F32(bytes), TensorDtype::Float32)),
            DType::Int32 => Ok((Self::I32(bytes), TensorDtype::Int64)),
            DType::Int64 => Ok((Self::I64(bytes), TensorDtype::Int64)),
            DType::Bfloat16 | DType::Unspecified => Err(ResultError::Content("dtype")),
        }
    }

    fn len(self) -> usize {
        match self {
            Self::F32(bytes) | Self::I32(bytes) => bytes.len() / 4,
            Self::I64(bytes) => bytes.len() / 8,
        }
    }
}

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        match *self {
            Self::F32(bytes) => {
                let (words, _) = bytes.as_chunks();
                words.iter().try_for_each(|word| list.serialize_element(&f64::from(f32::from_le_bytes(*word))))?;
            }
            Self::I32(bytes) => {
                let (words, _) = bytes.as_chunks();
                words.iter().try_for_each(|word| list.serialize_element(&i32::from_le_bytes(*word)))?;
            }
            Self::I64(bytes) => {
                let (words, _) = bytes.as_chunks();
                words.iter().try_for_each(|word| list.serialize_element(&i64::from_le_bytes(*word)))?;
            }
        }
        list.end()
    }
}

#[cfg(test)]
#[path = "results_tests.rs"]
mod tests;

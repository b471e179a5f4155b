//! Results of samples and training passes in JSON, made of the protobuf form that is stored.
//!
//! Floats are written as the doubles that equal them, so that both forms give the same numbers to the bit; what is
//! not finite, as the log-probability of a prompt's first token, is null.

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

/// The cell of top-k rows that holds no candidate.
const EMPTY_CELL: (i32, f32) = (0, -99_999.0);

/// For each position its token ids and log-probabilities, or `None`.
type Candidates = Vec<Option<Vec<(i32, f64)>>>;

/// A stored result that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// Its framing is wrong.
    #[error("stored result: {0}")]
    Protobuf(#[from] prost::DecodeError),
    /// Its content contradicts itself.
    #[error("stored result: {0} does not fit the rest")]
    Content(&'static str),
    /// It can't be written.
    #[error("stored result: {0}")]
    Json(#[from] serde_json::Error),
}

/// The JSON form of a result in protobuf.
///
/// # Errors
/// When the bytes are no result.
pub fn to_json(payload: &Bytes) -> Result<Bytes, ResultError> {
    let json = if training::is_output(payload) {
        serde_json::to_vec(&TrainingResult::new(&proto::ForwardBackwardOutput::decode(payload.clone())?)?)?
    } else {
        serde_json::to_vec(&SampleResult::new(&proto::SampleResponse::decode(payload.clone())?)?)?
    };
    Ok(json.into())
}

/// The JSON answers of `retrieve_future`, for the API's description: the first that fits.
#[derive(ToSchema)]
#[schema(as = RetrieveFutureResponse)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its description is used")]
pub enum RetrieveFutureResponse {
    /// Poll again.
    TryAgain(TryAgainResponse),
    /// The request failed.
    Failed(FailedResponse),
    /// Of `asample`.
    Sample(Box<SampleResult<'static>>),
    /// Of `forward` and `forward_backward`.
    Training(TrainingResult<'static>),
    /// Of any other request: what it created, or its metrics.
    Other(BTreeMap<String, serde_json::Value>),
}

/// Result of `forward` and `forward_backward`.
#[derive(Serialize, ToSchema)]
pub struct TrainingResult<'a> {
    /// The kind of the outputs.
    loss_fn_output_type: &'a str,
    /// `logprobs` and `elementwise_loss` of each datum, in the request's order.
    #[schema(value_type = Vec<BTreeMap<String, TensorData>>)]
    loss_fn_outputs: Vec<BTreeMap<&'a str, TensorResult<'a>>>,
    /// Keys `name:reduction`, e.g. `loss:sum`.
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

/// Result of `asample`.
#[derive(Serialize, ToSchema)]
pub struct SampleResult<'a> {
    /// `sample`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// In the order of the submission's sequence ids.
    #[schema(value_type = Vec<SequenceResult>)]
    sequences: Vec<SequenceResult<'a>>,
    /// One number per prompt token; null where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<f32>>>)]
    prompt_logprobs: Option<Elements<'a>>,
    /// For each prompt token up to k pairs of token id and log-probability, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<Vec<Vec<f64>>>>>)]
    topk_prompt_logprobs: Option<Candidates>,
    /// Prompt tokens served from the prefix cache.
    prompt_cache_hit_tokens: i32,
    /// In the request's shape and layout.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<TensorData>)]
    target_prompt_logprobs: Option<TensorResult<'a>>,
    /// Tokens sampled at every prompt position after the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PromptAltTokensResult>)]
    prompt_alt_tokens: Option<PromptAltTokensResult<'a>>,
}

/// One completion.
#[derive(Serialize, ToSchema)]
pub(crate) struct SequenceResult<'a> {
    /// `stop` or `length`.
    stop_reason: &'static str,
    /// Sampled token ids.
    #[schema(value_type = Vec<i32>)]
    tokens: Elements<'a>,
    /// One per token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<f32>>)]
    logprobs: Option<Elements<'a>>,
    /// For each token up to k pairs of token id and log-probability, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Option<Vec<Vec<f64>>>>>)]
    topk_logprobs: Option<Candidates>,
}

/// Tokens sampled independently per prompt position.
#[derive(Serialize, ToSchema)]
pub(crate) struct PromptAltTokensResult<'a> {
    /// Token ids.
    #[schema(value_type = TensorData)]
    tokens: TensorResult<'a>,
    /// Their log-probabilities.
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

/// The candidates of each position, or `None` where there are none at all.
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

/// A tensor, as [`TensorData`] is written.
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

    /// The part of a field that belongs to a datum.
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

/// Little-endian elements, which become a list of JSON numbers.
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

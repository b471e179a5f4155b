//! `create_sampling_session`, `samplers` and `asample`: JSON requests in, protobuf results out.

use bytes::Bytes;
use prost::Message;
use serde::{Deserialize, Deserializer, Serialize};
use trainyard_protocol::limits::{
    MAX_CHUNKS, MAX_NUM_SAMPLES, MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, MAX_STOP_TOKENS, MAX_TARGETS,
    MAX_TOPK_LOGPROBS, MIN_TEMPERATURE, check_targets,
};
use trainyard_protocol::{
    OpError, PromptAltTokens, SampleResult, SampledSequence, Stop, StopReason, Tensor, TensorValues, TopkLogprobs,
};
use utoipa::ToSchema;

use super::json;
use super::proto::{self, DType};
use super::tensor::{self, ExpansionBudget, TensorData};
use crate::codec::SamplePayload;

/// Body of `create_sampling_session`. With both, the path wins and the base must match.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateSamplingSessionRequest {
    /// The client's session.
    pub session_id: String,
    /// Counts the session's sampling sessions.
    pub sampling_session_seq_id: i64,
    /// A base model to sample from.
    #[serde(default)]
    pub base_model: Option<String>,
    /// A sampler checkpoint to sample from.
    #[serde(default)]
    pub model_path: Option<String>,
}

/// Answer of `create_sampling_session`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateSamplingSessionResponse {
    /// `<session>:sample:<n>`.
    pub sampling_session_id: String,
}

/// Answer of `samplers/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SamplerResponse {
    /// The sampling session.
    pub sampler_id: String,
    /// Its base model.
    pub base_model: String,
    /// Its checkpoint, unless it samples from a base model or from memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_path: Option<String>,
}

/// A model input, piece by piece.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ModelInput {
    /// The pieces, in order; empty ones are allowed.
    #[serde(deserialize_with = "chunks")]
    pub chunks: Vec<InputChunk>,
}

/// A piece of a model input. Only `encoded_text` is supported.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct InputChunk {
    /// `encoded_text`; `image`, `image_asset_pointer` and `dmel` are refused.
    #[serde(rename = "type", default = "encoded_text")]
    pub kind: String,
    /// Token ids of `encoded_text`.
    #[serde(default)]
    pub tokens: Option<Vec<i64>>,
}

fn chunks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<InputChunk>, D::Error> {
    let bounds =
        json::Bounds { most: MAX_CHUNKS, noun: "chunks", most_parts: MAX_CHUNKS, parts: |_| 0, parts_noun: "parts" };
    bounds.read(deserializer)
}

fn encoded_text() -> String {
    "encoded_text".to_owned()
}

impl ModelInput {
    /// All tokens; `field` is the input's path for errors.
    pub fn tokens(self, field: &str) -> Result<Vec<i64>, OpError> {
        let mut all = Vec::new();
        for (index, chunk) in self.chunks.into_iter().enumerate() {
            let at = || format!("{field}.chunks[{index}]");
            if chunk.kind != "encoded_text" {
                let message = format!("{}: {:?} chunks are not supported by this model", at(), chunk.kind);
                return Err(OpError::user(message));
            }
            let tokens = chunk.tokens.ok_or_else(|| OpError::user(format!("{}: missing field `tokens`", at())))?;
            if all.is_empty() {
                all = tokens;
            } else {
                all.extend(tokens);
            }
        }
        Ok(all)
    }
}

/// Body of `asample`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct SampleRequest {
    /// The sampling session.
    pub sampling_session_id: String,
    /// Identifies the request within the sampling session.
    pub seq_id: i64,
    /// Completions to draw.
    #[serde(default = "one")]
    pub num_samples: u32,
    /// What to complete.
    #[serde(deserialize_with = "json::object")]
    pub prompt: ModelInput,
    /// How to draw.
    #[serde(default, deserialize_with = "json::object_or_default")]
    pub sampling_params: SamplingParams,
    /// Return the prompt's log-probabilities.
    #[serde(default, deserialize_with = "json::or_default")]
    pub prompt_logprobs: bool,
    /// Candidates per prompt position; 0 is off.
    #[serde(default, deserialize_with = "json::or_default")]
    pub topk_prompt_logprobs: u32,
    /// Candidates per sampled token; 0 is off.
    #[serde(default, deserialize_with = "json::or_default")]
    pub topk_sample_logprobs: u32,
    /// `int64` token ids `[len(prompt) - 1, K]` whose log-probabilities to return; -1 skips a cell.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub target_prompt_logprobs: Option<TensorData>,
    /// Independent draws per prompt position; 0 is off.
    #[serde(default, deserialize_with = "json::or_default")]
    pub prompt_alt_tokens_k: u32,
    /// Only the last `n` prompt positions.
    #[serde(default)]
    pub prompt_logprobs_last_n: Option<u32>,
    /// Accepted and ignored: stability records are not kept.
    #[serde(default, deserialize_with = "json::or_default")]
    pub record_stability_info: bool,
}

fn one() -> u32 {
    1
}

/// How tokens are drawn. Unknown fields are refused: a setting that is ignored would mislead.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingParams {
    /// Most tokens to draw; up to the context limit when null.
    pub max_tokens: Option<u32>,
    /// Makes the draws repeatable.
    #[serde(deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// A string, strings, token ids, or an empty list to switch all stopping off; the model's end tokens when
    /// null.
    #[schema(value_type = Option<serde_json::Value>)]
    pub stop: Option<StopBody>,
    /// Divides the logits; 0 is greedy.
    pub temperature: f64,
    /// Keep the `k` most likely; -1 is off.
    pub top_k: i64,
    /// Keep the smallest set whose probability reaches `p`; 1 is off.
    pub top_p: f64,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self { max_tokens: None, seed: None, stop: None, temperature: 1.0, top_k: -1, top_p: 1.0 }
    }
}

/// `stop` as clients write it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a string, a list of strings or a list of token ids")]
pub enum StopBody {
    /// One string.
    Text(String),
    /// Token ids; the empty list also lands here.
    Tokens(Vec<i64>),
    /// Several strings.
    Texts(Vec<String>),
}

impl SampleRequest {
    /// Checks the request and makes it what is stored. `draw` makes a seed when the client gave none.
    pub fn into_payload(self, draw: impl FnOnce() -> u64) -> Result<SamplePayload, OpError> {
        between("num_samples", self.num_samples, 1, MAX_NUM_SAMPLES)?;
        between("topk_prompt_logprobs", self.topk_prompt_logprobs, 0, MAX_TOPK_LOGPROBS)?;
        between("topk_sample_logprobs", self.topk_sample_logprobs, 0, MAX_TOPK_LOGPROBS)?;
        between("prompt_alt_tokens_k", self.prompt_alt_tokens_k, 0, MAX_TOPK_LOGPROBS)?;
        let prompt = self.prompt.tokens("prompt")?;
        if prompt.is_empty() {
            return Err(OpError::user("prompt: at least one token is required"));
        }
        if let Some(last) = self.prompt_logprobs_last_n {
            check_last_n(last, self.prompt_logprobs, prompt.len())?;
        }
        if let Some(target) = &self.target_prompt_logprobs {
            target_tensor(target, prompt.len())?;
        }
        let params = self.sampling_params.checked()?;
        Ok(SamplePayload {
            prompt,
            num_samples: self.num_samples,
            max_tokens: params.max_tokens,
            seed_drawn: params.seed.is_none(),
            seed: params.seed.map_or_else(|| json::fold_seed(draw().into()), json::fold_seed),
            stop: stop(params.stop)?,
            temperature: temperature(params.temperature),
            top_k: u32::try_from(params.top_k).ok(),
            top_p: params.top_p as f32,
            prompt_logprobs: self.prompt_logprobs,
            prompt_logprobs_last_n: self.prompt_logprobs_last_n,
            topk_prompt_logprobs: self.topk_prompt_logprobs,
            topk_sample_logprobs: self.topk_sample_logprobs,
            target_prompt_logprobs: self.target_prompt_logprobs,
            prompt_alt_tokens_k: self.prompt_alt_tokens_k,
        })
    }
}

/// Lower temperatures than the least mean greedy decoding.
fn temperature(given: f64) -> f32 {
    if given < f64::from(MIN_TEMPERATURE) { 0.0 } else { given as f32 }
}

impl SamplingParams {
    fn checked(self) -> Result<Self, OpError> {
        let refuse = |message: String| Err(OpError::user(format!("sampling_params.{message}")));
        if self.max_tokens == Some(0) {
            return refuse("max_tokens: must be at least 1".to_owned());
        }
        if !(self.temperature >= 0.0 && (self.temperature as f32).is_finite()) {
            return refuse(format!("temperature: {} is not a finite number from 0", self.temperature));
        }
        if self.top_k != -1 && !(1..=i64::from(u32::MAX)).contains(&self.top_k) {
            return refuse(format!("top_k: {} is neither -1 (off) nor at least 1", self.top_k));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return refuse(format!("top_p: {} is not above 0 and at most 1", self.top_p));
        }
        Ok(self)
    }
}

fn between(field: &str, value: u32, least: u32, most: u32) -> Result<(), OpError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(OpError::user(format!("{field}: {value} is not between {least} and {most}")))
}

fn check_last_n(last: u32, prompt_logprobs: bool, prompt: usize) -> Result<(), OpError> {
    if !prompt_logprobs {
        return Err(OpError::user("prompt_logprobs_last_n: needs prompt_logprobs"));
    }
    if last == 0 || last as usize >= prompt {
        let most = prompt - 1;
        return Err(OpError::user(format!("prompt_logprobs_last_n: {last} is not between 1 and {most}")));
    }
    Ok(())
}

fn stop(stop: Option<StopBody>) -> Result<Stop, OpError> {
    let refuse = |message: String| Err(OpError::user(format!("sampling_params.stop: {message}")));
    let texts = match stop {
        None => return Ok(Stop::Default),
        Some(StopBody::Tokens(tokens)) if tokens.is_empty() => return Ok(Stop::Nothing),
        Some(StopBody::Tokens(tokens)) if tokens.len() > MAX_STOP_TOKENS => {
            return refuse(format!("{} token ids, at most {MAX_STOP_TOKENS} are allowed", tokens.len()));
        }
        Some(StopBody::Tokens(tokens)) => return Ok(Stop::Tokens(tokens)),
        Some(StopBody::Text(text)) => vec![text],
        Some(StopBody::Texts(texts)) => texts,
    };
    if texts.len() > MAX_STOP_STRINGS {
        return refuse(format!("{} strings, at most {MAX_STOP_STRINGS} are allowed", texts.len()));
    }
    if texts.iter().any(String::is_empty) {
        return refuse("an empty string would stop everything".to_owned());
    }
    if texts.iter().any(|text| text.len() > MAX_STOP_STRING_BYTES) {
        return refuse(format!("a string is longer than {MAX_STOP_STRING_BYTES} bytes"));
    }
    Ok(Stop::Strings(texts))
}

/// Refuses a `target_prompt_logprobs` of more columns than a model of this vocabulary takes.
pub(crate) fn check_columns(target: &TensorData, vocab_size: usize) -> Result<(), OpError> {
    let refused = |text| OpError::user(format!("target_prompt_logprobs: {text}"));
    check_targets(target.columns(), vocab_size).map_err(refused)
}

/// Token ids to score, dense, -1 where nothing is asked; checked against the prompt's length.
pub(crate) fn target_tensor(target: &TensorData, prompt: usize) -> Result<Tensor, OpError> {
    let refuse = |message: String| OpError::user(format!("target_prompt_logprobs: {message}"));
    check_columns(target, MAX_TARGETS)?;
    let wire = target.to_proto().map_err(|error| refuse(error.to_string()))?;
    let dense =
        tensor::densify(&wire, -1, &mut ExpansionBudget::default()).map_err(|error| refuse(error.to_string()))?;
    let TensorValues::I64(ids) = &dense.values else {
        return Err(refuse("dtype must be int64".to_owned()));
    };
    if dense.shape.len() != 2 || dense.shape[0] + 1 != prompt {
        let rows = prompt.saturating_sub(1);
        return Err(refuse(format!("shape is {:?}, expected [{rows}, K]", dense.shape)));
    }
    if ids.iter().all(|&id| id == -1) {
        return Err(refuse("at least one token id is required".to_owned()));
    }
    Ok(dense)
}

/// Writes a result. `target` is the request's `target_prompt_logprobs`, whose layout the answer repeats.
pub fn encode_result(result: &SampleResult, target: Option<&TensorData>) -> Bytes {
    let response = proto::SampleResponse {
        sequences: result.sequences.iter().map(sequence).collect(),
        prompt_logprobs: result.prompt_logprobs.as_deref().map(tensor::f32_bytes),
        topk_prompt_logprobs: result.topk_prompt_logprobs.as_ref().map(topk),
        prompt_cache_hit_tokens: i32::try_from(result.prompt_cache_hit_tokens).unwrap_or(i32::MAX),
        target_prompt_logprobs: result.target_prompt_logprobs.as_ref().map(|scores| like_request(scores, target)),
        prompt_alt_tokens: result.prompt_alt_tokens.as_ref().map(alt_tokens),
    };
    response.encode_to_vec().into()
}

fn sequence(sequence: &SampledSequence) -> proto::SampledSequence {
    let stop_reason = match sequence.stop_reason {
        StopReason::Stop => proto::StopReason::Stop,
        StopReason::Length => proto::StopReason::Length,
    };
    proto::SampledSequence {
        stop_reason: stop_reason.into(),
        tokens: tensor::token_bytes(&sequence.tokens),
        logprobs: Some(tensor::f32_bytes(&sequence.logprobs)),
        topk_sampled_logprobs: sequence.topk.as_ref().map(topk),
    }
}

fn topk(rows: &TopkLogprobs) -> proto::TopkLogprobs {
    proto::TopkLogprobs {
        token_ids: tensor::token_bytes(&rows.token_ids),
        logprobs: tensor::f32_bytes(&rows.logprobs),
        k: rows.k as u32,
        length: rows.token_ids.len().checked_div(rows.k).unwrap_or(0) as u32,
    }
}

/// Scores in the shape and layout of the request: dense, or the cells that it listed.
fn like_request(scores: &Tensor, target: Option<&TensorData>) -> proto::Tensor {
    let values = match &scores.values {
        TensorValues::F32(values) => values.as_slice(),
        TensorValues::I64(_) => &[],
    };
    let shape: Vec<i64> = scores.shape.iter().map(|&extent| extent as i64).collect();
    let csr = target.and_then(|target| target.sparse_crow_indices.as_ref().zip(target.sparse_col_indices.as_ref()));
    let encoding = match csr {
        None => proto::tensor::Encoding::Dense(tensor::f32_bytes(values)),
        Some((crow, col)) => proto::tensor::Encoding::SparseCsr(proto::SparseCsr {
            values: tensor::f32_bytes(&listed(values, crow, col, scores.shape.get(1).copied().unwrap_or(0))),
            crow_indices: tensor::i64_bytes(crow),
            col_indices: tensor::i64_bytes(col),
        }),
    };
    proto::Tensor { encoding: Some(encoding), dtype: DType::Float32.into(), shape }
}

/// The listed cells of a matrix; the indices were checked with the request.
fn listed(values: &[f32], crow: &[i64], col: &[i64], columns: usize) -> Vec<f32> {
    let mut cells = Vec::with_capacity(col.len());
    for (row, bounds) in crow.windows(2).enumerate() {
        let range = bounds[0].max(0) as usize..bounds[1].max(0) as usize;
        for &column in col.get(range).unwrap_or_default() {
            cells.push(values.get(row * columns + column.max(0) as usize).copied().unwrap_or(0.0));
        }
    }
    cells
}

fn alt_tokens(draws: &PromptAltTokens) -> proto::PromptAltTokens {
    let rows = draws.tokens.len().checked_div(draws.k).unwrap_or(0);
    let shape = vec![rows as i64, draws.k as i64];
    let dense = |bytes, dtype: DType| proto::Tensor {
        encoding: Some(proto::tensor::Encoding::Dense(bytes)),
        dtype: dtype.into(),
        shape: shape.clone(),
    };
    proto::PromptAltTokens {
        tokens: Some(dense(tensor::token_bytes(&draws.tokens), DType::Int32)),
        logprobs: Some(dense(tensor::f32_bytes(&draws.logprobs), DType::Float32)),
    }
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;

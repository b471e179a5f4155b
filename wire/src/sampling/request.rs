//! `asample`: its body, and the checks that need no model.

use serde::Deserialize;
use trainyard_protocol::limits::{MAX_NUM_SAMPLES, MAX_TOPK_LOGPROBS, MIN_TEMPERATURE};
use trainyard_protocol::{self as protocol, OpError, Sample};
use utoipa::ToSchema;

use super::controls::{LogitBias, controls};

use super::super::json;
use super::super::model_input::ModelInput;
use super::super::tensor::TensorData;
use super::stop::{self, StopBody};
use super::targets::prompt_targets;

/// Body of `asample`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct SampleRequest {
    /// The sampling session.
    pub sampling_session_id: String,
    /// Identifies the request within the sampling session.
    #[schema(minimum = 0)]
    pub seq_id: i64,
    /// Completions to sample.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1024)]
    pub num_samples: u32,
    /// What to complete.
    #[serde(deserialize_with = "json::object")]
    pub prompt: ModelInput,
    /// How to sample.
    #[serde(default, deserialize_with = "json::object_or_default")]
    pub sampling_params: SamplingParams,
    /// Return the prompt's log-probabilities.
    #[serde(default, deserialize_with = "json::or_default")]
    pub prompt_logprobs: bool,
    /// Candidates per prompt position; 0 is off.
    #[serde(default, deserialize_with = "json::or_default")]
    #[schema(minimum = 0, maximum = 1024)]
    pub topk_prompt_logprobs: u32,
    /// Candidates per sampled token; 0 is off.
    #[serde(default, deserialize_with = "json::or_default")]
    #[schema(minimum = 0, maximum = 1024)]
    pub topk_sample_logprobs: u32,
    /// `int64` token ids `[len(prompt) - 1, K]` whose log-probabilities to return; -1 skips a cell.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub target_prompt_logprobs: Option<TensorData>,
    /// Tokens sampled independently per prompt position; 0 is off.
    #[serde(default, deserialize_with = "json::or_default")]
    #[schema(minimum = 0, maximum = 1024)]
    pub prompt_alt_tokens_k: u32,
    /// Only the last `n` prompt positions.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub prompt_logprobs_last_n: Option<u32>,
    /// Keep the log-probabilities of the sampled tokens, so that training requests may name them by `sequence_id`: until a
    /// day after the last use.
    #[serde(default, deserialize_with = "json::or_default")]
    pub record_stability_info: bool,
}

fn one() -> u32 {
    1
}

/// How tokens are sampled. Unknown fields are refused: a setting that is ignored would mislead.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingParams {
    /// Most tokens to sample; up to the context limit when null.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// Makes sampling repeatable.
    #[serde(deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// A string, strings, token ids, or an empty list to switch all stopping off; the model's end tokens when
    /// null.
    #[schema(value_type = Option<serde_json::Value>)]
    pub stop: Option<StopBody>,
    /// Divides the logits; 0 is greedy.
    #[schema(minimum = 0)]
    pub temperature: f64,
    /// Keep the `k` most likely; -1 is off.
    #[schema(minimum = -1)]
    pub top_k: i64,
    /// Keep the smallest set whose probability reaches `p`; 1 is off.
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub top_p: f64,
    /// Tokens less likely than this fraction of the most likely one are not sampled; 0 is off.
    #[schema(minimum = 0, maximum = 1)]
    pub min_p: f64,
    /// Subtracted from the logits of tokens that the completion holds.
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: f64,
    /// Subtracted from the logits of tokens each time that the completion holds them.
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: f64,
    /// Divides positive logits of tokens that prompt or completion hold, and multiplies negative ones; 1 is off.
    #[schema(exclusive_minimum = 0, maximum = 100)]
    pub repetition_penalty: f64,
    /// Added to the logits of tokens, by token id, each between -100 and 100.
    #[schema(value_type = Option<serde_json::Value>)]
    pub logit_bias: Option<LogitBias>,
    /// A JSON schema that the completion follows.
    #[schema(value_type = Option<serde_json::Value>)]
    pub json_schema: Option<serde_json::Value>,
}

impl Default for SamplingParams {
    fn default() -> Self {
        Self {
            max_tokens: None,
            seed: None,
            stop: None,
            temperature: 1.0,
            top_k: -1,
            top_p: 1.0,
            min_p: 0.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            repetition_penalty: 1.0,
            logit_bias: None,
            json_schema: None,
        }
    }
}

impl SampleRequest {
    /// Checks all of the request that needs no model. `random` makes a seed when the client gave none; the second value is
    /// whether it did.
    ///
    /// # Errors
    /// The user's, by field.
    pub fn into_sample(self, random: impl FnOnce() -> u64) -> Result<(Sample, bool), OpError> {
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
        let targets = self.target_prompt_logprobs.map(|targets| prompt_targets(targets, prompt.len())).transpose()?;
        let server_seed = self.sampling_params.seed.is_none();
        let sample = Sample {
            prompt,
            num_samples: self.num_samples,
            params: self.sampling_params.checked(random)?,
            prompt_logprobs: self.prompt_logprobs,
            prompt_logprobs_last_n: self.prompt_logprobs_last_n,
            topk_prompt_logprobs: self.topk_prompt_logprobs,
            topk_sample_logprobs: self.topk_sample_logprobs,
            target_prompt_logprobs: targets,
            prompt_alt_tokens_k: self.prompt_alt_tokens_k,
        };
        Ok((sample, server_seed))
    }
}

/// Lower temperatures than the least mean greedy decoding.
fn temperature(given: f64) -> f32 {
    if given < f64::from(MIN_TEMPERATURE) { 0.0 } else { given as f32 }
}

impl SamplingParams {
    fn checked(self, random: impl FnOnce() -> u64) -> Result<protocol::SamplingParams, OpError> {
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
        let controls = controls(&self)?;
        Ok(protocol::SamplingParams {
            max_tokens: self.max_tokens,
            seed: self.seed.map_or_else(|| json::fold_seed(random().into()), json::fold_seed),
            stop: stop::checked(self.stop)?,
            temperature: temperature(self.temperature),
            top_k: u32::try_from(self.top_k).ok(),
            top_p: self.top_p as f32,
            controls,
        })
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

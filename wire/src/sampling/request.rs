//! Body of `asample`, and the checks that do not need the model.

use serde::Deserialize;
use trainyard_protocol::limits::{MAX_NUM_SAMPLES, MAX_TOPK_LOGPROBS, MIN_TEMPERATURE};
use trainyard_protocol::{self as protocol, OpError, Sample, SamplingControls};
use utoipa::ToSchema;

use super::controls::LogitBias;

use super::super::images::{InputTokens, RequestImages};
use super::super::json;
use super::super::model_input::ModelInput;
use super::super::tensor::TensorData;
use super::stop::{self, StopBody};
use super::targets::prompt_targets;

/// Request body of `asample`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct SampleRequest {
    /// Id of the sampling session.
    pub sampling_session_id: String,
    /// Identifies the request within the sampling session.
    #[schema(minimum = 0)]
    pub seq_id: i64,
    /// Number of completions to sample, 1 by default.
    #[serde(default = "one")]
    #[schema(minimum = 1, maximum = 1024)]
    pub num_samples: u32,
    /// Prompt: the tokens to complete.
    #[serde(deserialize_with = "json::object")]
    pub prompt: ModelInput,
    /// How tokens are sampled and when a completion ends.
    #[serde(default, deserialize_with = "json::object_or_default")]
    pub sampling_params: SamplingParams,
    /// Whether to return the log-probabilities of the prompt.
    #[serde(default, deserialize_with = "json::or_default")]
    pub prompt_logprobs: bool,
    /// Number of candidates to return per prompt position; 0 turns this off.
    #[serde(default, deserialize_with = "json::or_default")]
    #[schema(minimum = 0, maximum = 1024)]
    pub topk_prompt_logprobs: u32,
    /// Number of candidates to return per sampled token; 0 turns this off.
    #[serde(default, deserialize_with = "json::or_default")]
    #[schema(minimum = 0, maximum = 1024)]
    pub topk_sample_logprobs: u32,
    /// Token ids to score, `int64` in the shape `[len(prompt) - 1, K]`; -1 skips a cell.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub target_prompt_logprobs: Option<TensorData>,
    /// Number of tokens to sample independently per prompt position; 0 turns this off.
    #[serde(default, deserialize_with = "json::or_default")]
    #[schema(minimum = 0, maximum = 1024)]
    pub prompt_alt_tokens_k: u32,
    /// Limits the log-probabilities to the last `n` prompt positions.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub prompt_logprobs_last_n: Option<u32>,
    /// Whether to keep the log-probabilities of the sampled tokens, so that training requests can refer to them by
    /// `sequence_id`. They are deleted a day after their last use.
    #[serde(default, deserialize_with = "json::or_default")]
    pub record_stability_info: bool,
}

fn one() -> u32 {
    1
}

/// How tokens are sampled. Unknown fields are refused, because a setting that is ignored would mislead.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingParams {
    /// Maximum number of tokens to sample; by default, up to the context limit.
    #[schema(minimum = 1)]
    pub max_tokens: Option<u32>,
    /// Seed that makes sampling repeatable.
    #[serde(deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// Stop condition: a string, strings or token ids. An empty list turns all stopping off; by default, the model's
    /// end tokens stop.
    #[schema(value_type = Option<serde_json::Value>)]
    pub stop: Option<StopBody>,
    /// Divisor of the logits; 0 decodes greedily.
    #[schema(minimum = 0)]
    pub temperature: f64,
    /// Samples only from this many most likely tokens; -1 turns this off.
    #[schema(minimum = -1)]
    pub top_k: i64,
    /// Samples only from the smallest set of tokens whose total probability reaches this value; 1 turns this off.
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub top_p: f64,
    /// Excludes tokens that are less likely than this fraction of the most likely one; 0 turns this off.
    #[schema(minimum = 0, maximum = 1)]
    pub min_p: f64,
    /// Subtracted from a token's logit if the token occurs in the completion.
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: f64,
    /// Subtracted from a token's logit for each time that the token occurs in the completion.
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: f64,
    /// Divides positive logits, and multiplies negative ones, of tokens in the prompt or the completion; 1 turns this
    /// off.
    #[schema(exclusive_minimum = 0, maximum = 100)]
    pub repetition_penalty: f64,
    /// Values between -100 and 100 that are added to the logits of tokens, by token id.
    #[schema(value_type = Option<serde_json::Value>)]
    pub logit_bias: Option<LogitBias>,
    /// JSON schema that the completion must follow.
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
    /// Checks everything that needs only the model's rules for images, which `images` applies. If the client set no
    /// seed, `random` makes one. The second value is true if it did.
    ///
    /// # Errors
    ///
    /// A user error that names the field at fault.
    pub fn into_sample(
        self,
        images: &mut RequestImages<'_>,
        random: impl FnOnce() -> u64,
    ) -> Result<(Sample, bool), OpError> {
        between("num_samples", self.num_samples, 1, MAX_NUM_SAMPLES)?;
        between("topk_prompt_logprobs", self.topk_prompt_logprobs, 0, MAX_TOPK_LOGPROBS)?;
        between("topk_sample_logprobs", self.topk_sample_logprobs, 0, MAX_TOPK_LOGPROBS)?;
        between("prompt_alt_tokens_k", self.prompt_alt_tokens_k, 0, MAX_TOPK_LOGPROBS)?;
        let InputTokens { tokens: prompt, images } = self.prompt.read("prompt", images)?;
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
            images,
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

/// Maps temperatures below the smallest one to greedy decoding.
fn temperature(given: f64) -> f32 {
    if given < f64::from(MIN_TEMPERATURE) { 0.0 } else { given as f32 }
}

impl SamplingParams {
    /// Penalties, biases and `min_p`, checked.
    pub(super) fn controls(&self) -> Result<SamplingControls, OpError> {
        let controls = SamplingControls {
            min_p: self.min_p as f32,
            presence_penalty: self.presence_penalty as f32,
            frequency_penalty: self.frequency_penalty as f32,
            repetition_penalty: self.repetition_penalty as f32,
            logit_bias: self.logit_bias.as_ref().map(LogitBias::to_vec).unwrap_or_default(),
            json_schema: self.json_schema.as_ref().map(serde_json::Value::to_string),
            call_marks: None,
        };
        controls.check()?;
        Ok(controls)
    }

    fn checked(self, random: impl FnOnce() -> u64) -> Result<protocol::SamplingParams, OpError> {
        let refuse = |message: String| Err(OpError::user(format!("sampling_params.{message}")));
        if self.max_tokens == Some(0) {
            return refuse("max_tokens: must be at least 1".to_owned());
        }
        if !(self.temperature >= 0.0 && (self.temperature as f32).is_finite()) {
            return refuse(format!("temperature: {} is not a finite number from 0", self.temperature));
        }
        if self.top_k != -1 && !(1..=i64::from(u32::MAX)).contains(&self.top_k) {
            return refuse(format!("top_k: expected -1 (off) or at least 1, found {}", self.top_k));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return refuse(format!("top_p: {} is not above 0 and at most 1", self.top_p));
        }
        let controls = self.controls()?;
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
        return Err(OpError::user("prompt_logprobs_last_n: requires prompt_logprobs"));
    }
    if last == 0 || last as usize >= prompt {
        let most = prompt - 1;
        return Err(OpError::user(format!("prompt_logprobs_last_n: {last} is not between 1 and {most}")));
    }
    Ok(())
}

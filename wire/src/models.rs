//! Requests about a run's model: `create_model`, `get_info` and `optim_step`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_protocol::limits::MAX_LORA_RANK;
use trainyard_protocol::{AdamParams, LoraSpec, ModelHead, OpError, Optimizer, RunSpec};
use utoipa::ToSchema;

use super::bounds;
use super::json::{self, Metadata};
use crate::payload::Payload;

/// Request body of `create_model`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateModelRequest {
    /// Id of the client's session.
    pub session_id: String,
    /// Number of the model within the session.
    #[schema(minimum = 0)]
    pub model_seq_id: i64,
    /// Name of the base model.
    pub base_model: String,
    /// Metadata to store with the run.
    #[serde(default, deserialize_with = "bounds::metadata")]
    #[schema(value_type = Object)]
    pub user_metadata: Metadata,
    /// The adapter to train; without one, all parameters are trained.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub lora_config: Option<LoraConfig>,
    /// Optimizer family of the run.
    #[serde(default, deserialize_with = "json::object_or_default")]
    pub optimizer_config: OptimizerConfig,
}

/// A LoRA adapter. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoraConfig {
    /// Rank of the adapter; 0 trains all parameters instead.
    #[schema(minimum = 0, maximum = 4096)]
    pub rank: i64,
    /// Seed for the initial values of the adapter; the server chooses one by default.
    #[serde(default, deserialize_with = "json::seed")]
    #[schema(value_type = Option<i64>)]
    pub seed: Option<i128>,
    /// Whether to adapt the unembedding.
    #[serde(default = "yes")]
    pub train_unembed: bool,
    /// Whether to adapt the MLP projections.
    #[serde(default = "yes")]
    pub train_mlp: bool,
    /// Whether to adapt the attention projections.
    #[serde(default = "yes")]
    pub train_attn: bool,
}

fn yes() -> bool {
    true
}

/// An optimizer family; only `adamw` is supported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptimizerConfig {
    /// Name of the family: `adamw`.
    #[serde(rename = "type")]
    #[schema(pattern = "^adamw$")]
    pub kind: String,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self { kind: "adamw".to_owned() }
    }
}

impl From<Optimizer> for OptimizerConfig {
    fn from(optimizer: Optimizer) -> Self {
        match optimizer {
            Optimizer::AdamW => Self::default(),
        }
    }
}

impl OptimizerConfig {
    /// Returns the family.
    ///
    /// # Errors
    ///
    /// A user error if the family is not supported.
    pub fn optimizer(&self) -> Result<Optimizer, OpError> {
        if self.kind == "adamw" {
            return Ok(Optimizer::AdamW);
        }
        let kind = &self.kind;
        Err(OpError::user(format!("optimizer_config.type: optimizer {kind:?} is not supported; use \"adamw\"")))
    }
}

impl CreateModelRequest {
    /// Returns what the run trains, with the head that its metadata names, and the payload to store. If the client set
    /// no seed, `random` makes one.
    pub fn payload(&self, random: impl FnOnce() -> u64) -> Result<(RunSpec, Payload), OpError> {
        let mut lora = self.lora_config.as_ref().map(|config| config.spec(random)).transpose()?.flatten();
        let metadata = json::text_metadata(&self.user_metadata);
        match &mut lora {
            Some(lora) => lora.scale_by_metadata(&metadata)?,
            None => LoraSpec::refuse_scale(&metadata)?,
        }
        let head = ModelHead::of_metadata(&metadata)?.unwrap_or_default();
        if let Some(lora) = lora.as_mut().filter(|_| head.is_scalar()) {
            without_unembedding(lora)?;
        }
        let optimizer = self.optimizer_config.optimizer()?;
        let server_seed = self.lora_config.as_ref().is_some_and(|config| config.seed.is_none());
        let spec = RunSpec { base_model: self.base_model.clone(), lora, optimizer, head };
        Ok((spec.clone(), Payload::CreateModel { spec, server_seed }))
    }
}

/// Switches off the unembedding of an adapter: a model with a scalar head has none.
fn without_unembedding(lora: &mut LoraSpec) -> Result<(), OpError> {
    lora.train_unembed = false;
    if lora.train_mlp || lora.train_attn {
        return Ok(());
    }
    Err(OpError::user(format!(
        "lora_config.train_unembed: a model with a scalar head ({}) has no unembedding; set train_mlp or train_attn",
        ModelHead::KEY
    )))
}

impl LoraConfig {
    /// Returns the adapter, or `None` for rank 0. If the client set no seed, `random` makes one.
    pub(super) fn spec(&self, random: impl FnOnce() -> u64) -> Result<Option<LoraSpec>, OpError> {
        let rank = u32::try_from(self.rank).ok().filter(|&rank| rank <= MAX_LORA_RANK).ok_or_else(|| {
            OpError::user(format!("lora_config.rank: {} is not between 0 and {MAX_LORA_RANK}", self.rank))
        })?;
        if rank == 0 {
            return Ok(None);
        }
        if !(self.train_unembed || self.train_mlp || self.train_attn) {
            return Err(OpError::user(
                "lora_config: At least one of train_unembed, train_mlp, train_attn must be True",
            ));
        }
        let seed = self.seed.map_or_else(|| json::fold_seed(random().into()), json::fold_seed);
        let Self { train_unembed, train_mlp, train_attn, .. } = *self;
        Ok(Some(LoraSpec { train_unembed, train_mlp, train_attn, ..LoraSpec::on_all(rank, seed) }))
    }
}

/// Result of `create_model`, which `retrieve_future` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateModelResult {
    /// Id of the run: `<session>:train:<n>`.
    pub model_id: String,
}

/// Request body of `get_info`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GetInfoRequest {
    /// Id of the run.
    pub model_id: String,
}

/// Response body of `get_info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetInfoResponse {
    /// Id of the run.
    pub model_id: String,
    /// The run's base model.
    pub model_data: ModelData,
    /// The run's optimizer family.
    pub optimizer_config: OptimizerConfig,
    /// Whether the run trains an adapter.
    pub is_lora: bool,
    /// Rank of the adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lora_rank: Option<u32>,
    /// Name of the base model.
    pub model_name: String,
}

/// A base model, as `get_info` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelData {
    /// Family of the model.
    pub arch: String,
    /// Name of the model.
    pub model_name: String,
    /// Name under which its tokenizer is published, if it differs from the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer_id: Option<String>,
}

/// Request body of `optim_step`. Exactly one kind of parameters must be set.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OptimStepRequest {
    /// Id of the run.
    pub model_id: String,
    /// Position in the run's order, from 1.
    #[schema(minimum = 1)]
    pub seq_id: i64,
    /// Hyper-parameters, if the optimizer is AdamW.
    #[serde(default, deserialize_with = "json::object_or_null")]
    pub adam_params: Option<AdamParamsBody>,
    /// Hyper-parameters of another family, of which none is supported.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub optimizer_params: Option<Value>,
}

/// Hyper-parameters of AdamW. Unknown fields are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdamParamsBody {
    /// Learning rate of the step.
    pub learning_rate: f64,
    /// Decay rate of the first moment.
    pub beta1: f64,
    /// Decay rate of the second moment.
    pub beta2: f64,
    /// Constant that is added to the denominator.
    pub eps: f64,
    /// Decoupled weight decay, as in AdamW.
    pub weight_decay: f64,
    /// Maximum global norm of the gradient; 0 and negative values turn clipping off.
    pub grad_clip_norm: f64,
}

impl Default for AdamParamsBody {
    fn default() -> Self {
        Self { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.0, grad_clip_norm: 0.0 }
    }
}

impl OptimStepRequest {
    /// Checks the request and returns the payload to store.
    pub fn payload(&self) -> Result<Payload, OpError> {
        match (&self.adam_params, &self.optimizer_params) {
            (Some(params), None) => Ok(Payload::OptimStep { params: params.checked()? }),
            (None, Some(other)) => {
                let kind = other.get("type").and_then(Value::as_str).unwrap_or_default();
                Err(OpError::user(format!(
                    "optimizer_params.type: {kind:?} is not the model's optimizer \"adamw\"; send adam_params"
                )))
            }
            (None, None) => Err(OpError::user("adam_params: missing field")),
            (Some(_), Some(_)) => {
                Err(OpError::user("optimizer_params: set together with adam_params; set only adam_params"))
            }
        }
    }
}

impl AdamParamsBody {
    fn checked(&self) -> Result<AdamParams, OpError> {
        let refuse = |field: &str, value: f64, range: &str| {
            Err(OpError::user(format!("adam_params.{field}: {value} is not {range}")))
        };
        for (field, value) in
            [("learning_rate", self.learning_rate), ("eps", self.eps), ("weight_decay", self.weight_decay)]
        {
            // Steps are computed in 32 bits.
            if !(value >= 0.0 && (value as f32).is_finite()) {
                return refuse(field, value, "a finite 32-bit number from 0");
            }
        }
        for (field, value) in [("beta1", self.beta1), ("beta2", self.beta2)] {
            if !(0.0..1.0).contains(&value) {
                return refuse(field, value, "from 0 and below 1");
            }
        }
        if !self.grad_clip_norm.is_finite() {
            return refuse("grad_clip_norm", self.grad_clip_norm, "finite");
        }
        Ok(AdamParams {
            learning_rate: self.learning_rate,
            beta1: self.beta1,
            beta2: self.beta2,
            eps: self.eps,
            weight_decay: self.weight_decay,
            grad_clip_norm: self.grad_clip_norm,
        })
    }
}

/// Result of `optim_step`, which `retrieve_future` returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OptimStepResult {
    /// Metrics of the step, by name.
    pub metrics: std::collections::BTreeMap<String, f64>,
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;

//! Content of a request between its decoding and its execution, checked off the engine's thread, in the form that the
//! engine reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::custom_loss::CustomLoss;
use crate::{BaseModel, DecodedImages, ImageSpan, LossConfig, LossFn, OpError, PreparedImage, Sample, Tensor};

/// A decoded training example: row `i` of every per-token input belongs to input position `i`.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// Input token ids, unchecked against the vocabulary.
    pub tokens: Vec<i64>,
    /// Inputs of the loss function by name.
    pub loss_fn_inputs: BTreeMap<String, Tensor>,
    /// Images among the tokens, in ascending order and without overlap.
    pub images: Vec<ImageSpan>,
}

/// Decoded examples of a `forward` or `forward_backward`, not yet checked against loss function and model.
#[derive(Clone, Debug, PartialEq)]
pub struct RawBatch {
    /// Examples in request order.
    pub data: Vec<Datum>,
    /// Wire name of the loss function.
    pub loss_fn: String,
    /// Parameters of the loss function.
    pub loss_fn_config: LossConfig,
    /// Graph that `custom` names, or the reason why it can't be used.
    pub custom_loss: Option<Result<Arc<CustomLoss>, OpError>>,
    /// Decoded images of all examples.
    pub decoded: DecodedImages,
}

/// Bounds against which examples are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelExtents {
    /// Size of the vocabulary: token ids are below it.
    pub vocab_size: usize,
    /// Maximum number of input tokens of an example.
    pub context: usize,
}

impl From<&BaseModel> for ModelExtents {
    fn from(model: &BaseModel) -> Self {
        Self { vocab_size: model.vocab_size, context: model.max_context_length }
    }
}

/// A checked example of `N` input tokens: every per-token input has `N` rows, every id is in the vocabulary, every float
/// is finite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreparedDatum {
    /// Position in the request, for error texts.
    pub index: usize,
    /// Input token ids, `[N]`, at least one.
    pub tokens: Vec<u32>,
    /// Target token ids, `[N, k]`, row-major. A loss on values reads no targets, so these are the input's own ids.
    pub targets: Vec<u32>,
    /// Targets per position; 1 with [`PreparedDatum::policy`].
    pub k: usize,
    /// Shape of `target_tokens`: `[N]` or `[N, k]`.
    pub shape: Vec<usize>,
    /// Factors of each target's term, `[N, k]`; ones if absent.
    pub weights: Option<Vec<f32>>,
    /// Factors of each position's entropy, which are subtracted from the loss, `[N]`. The pass then returns the entropies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy_weights: Option<Vec<f32>>,
    /// Factors of each position's divergence from the base model, which are added to the loss, `[N]`. The pass then returns the
    /// divergences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kl_weights: Option<Vec<f32>>,
    /// Inputs of a policy-gradient loss; absent for other losses.
    pub policy: Option<PolicyInputs>,
    /// Inputs of `value_mse`; absent for other losses.
    pub values: Option<ValueInputs>,
    /// Inputs of a custom loss besides the log-probabilities, in the order of its inputs.
    pub custom: Vec<Tensor>,
    /// Decoded images among the tokens, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PreparedImage>,
}

/// Per-token inputs of a policy-gradient loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyInputs {
    /// Log-probabilities of the targets under the policy that sampled them, `[N]`.
    pub logprobs: Vec<f32>,
    /// Advantages of the targets, `[N]`.
    pub advantages: Vec<f32>,
    /// Positions whose ratios a sequence-level loss averages (`sequence_ratio_mask` is not 0), `[N]`; empty for
    /// token-level losses.
    pub ratio_mask: Vec<bool>,
}

/// Per-position inputs of a loss on the values of a scalar head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueInputs {
    /// Returns to which values are fitted, `[N]`.
    pub returns: Vec<f32>,
    /// Values before the update, `[N]`, if the loss clips; empty otherwise.
    pub old_values: Vec<f32>,
}

/// The checked examples of a request with their loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedBatch {
    /// The loss of every example.
    pub loss: LossFn,
    /// Examples in request order, at least one.
    pub data: Vec<PreparedDatum>,
    /// Bounds against which the examples were checked.
    pub extents: ModelExtents,
}

impl PreparedBatch {
    /// Returns the batch if it was checked against these extents.
    ///
    /// # Errors
    /// A server error if it was checked against another model's extents.
    pub fn checked_for(self, extents: ModelExtents) -> Result<Self, OpError> {
        if self.extents == extents {
            Ok(self)
        } else {
            Err(OpError::server("the request was checked against another model of this name"))
        }
    }
}

/// Checks examples off the engine's thread. An engine hands one out before it moves to its thread.
pub trait Prepare: Send + Sync {
    /// Checks the examples of a request against its loss function and a base model.
    ///
    /// # Errors
    /// A user error that names datum and field if the examples are wrong; a server error if the model is not served.
    fn prepare(&self, base_model: &str, batch: RawBatch) -> Result<PreparedBatch, OpError>;
}

/// Content of a request that is worth decoding before its turn.
#[derive(Clone, Debug, PartialEq)]
pub enum PreparedContent {
    /// Examples of `forward` or `forward_backward`, or the reason why they are refused when their turn comes.
    Batch(Result<PreparedBatch, OpError>),
    /// A sample, checked when it was submitted.
    Sample {
        /// The sample, without decoded images.
        sample: Box<Sample>,
        /// Decoded images of its prompt; those that are missing are still to be decoded.
        images: DecodedImages,
    },
}

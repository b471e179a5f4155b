//! Checks a datum against its loss function before any work is done for it.

use trainyard_protocol::limits::check_targets;
use trainyard_protocol::{Datum, LossFn, OpError, PolicyInputs, PreparedDatum, Tensor, TensorValues, ValueInputs};

use super::custom;

const CROSS_ENTROPY_INPUTS: &[&str] = &["target_tokens", "weights", ENTROPY, KL];
const TOKEN_LEVEL_INPUTS: &[&str] = &["target_tokens", "logprobs", "advantages", "weights", ENTROPY, KL];
const SEQUENCE_LEVEL_INPUTS: &[&str] =
    &["target_tokens", "logprobs", "advantages", "sequence_ratio_mask", "weights", ENTROPY, KL];
/// Weights of the entropies at each position, which any loss takes that is not on values.
const ENTROPY: &str = "entropy_weights";
/// The same of the divergences from the base model.
const KL: &str = "kl_weights";

const VALUE_INPUTS: &[&str] = &["returns", "target_tokens", "weights"];
const CLIPPED_VALUE_INPUTS: &[&str] = &["returns", "old_values", "target_tokens", "weights"];

/// Names of the inputs that a datum may carry; a custom loss takes what it reads of any.
fn inputs_of(loss: &LossFn) -> Option<&'static [&'static str]> {
    Some(match loss {
        LossFn::Custom(_) => return None,
        LossFn::CrossEntropy => CROSS_ENTROPY_INPUTS,
        LossFn::ImportanceSampling
        | LossFn::Ppo(_)
        | LossFn::Cispo(_)
        | LossFn::Dro { .. }
        | LossFn::StableReinforce { .. } => TOKEN_LEVEL_INPUTS,
        LossFn::Gspo(_) => SEQUENCE_LEVEL_INPUTS,
        LossFn::ValueMse { clip: None } => VALUE_INPUTS,
        LossFn::ValueMse { clip: Some(_) } => CLIPPED_VALUE_INPUTS,
    })
}

/// Whether `logprobs` and `advantages` are mandatory and targets are one per position.
pub(super) fn is_policy_gradient(loss: &LossFn) -> bool {
    !matches!(loss, LossFn::CrossEntropy | LossFn::Custom(_) | LossFn::ValueMse { .. })
}

/// Whether it is a loss on values, which has no targets: they are one per position, and may be absent.
fn is_on_values(loss: &LossFn) -> bool {
    matches!(loss, LossFn::ValueMse { .. })
}

/// Checks datum `index` of a request; errors name the datum and the field.
pub fn prepare(loss: &LossFn, index: usize, datum: &Datum, vocab_size: usize) -> Result<PreparedDatum, OpError> {
    let fields = Fields { loss, index, datum };
    fields.refuse_unknown()?;
    let n = datum.tokens.len();
    if n == 0 {
        return Err(OpError::user(format!("data[{index}].model_input: at least one token is required")));
    }
    let tokens = token_ids(&datum.tokens, vocab_size, &format!("data[{index}].model_input"))?;
    let own = Tensor::i64(datum.tokens.clone());
    let targets = match fields.optional("target_tokens") {
        None if is_on_values(loss) => &own,
        _ => fields.mandatory("target_tokens")?,
    };
    let shape = fields.target_shape(targets, n, vocab_size)?;
    let custom = match loss {
        LossFn::Custom(loss) => custom::inputs(loss, index, datum)?,
        _ => Vec::new(),
    };
    let weights = fields.optional("weights").filter(|_| !matches!(loss, LossFn::Custom(_)));
    let weights = weights.map(|tensor| fields.floats("weights", tensor, &shape)).transpose()?;
    let of_positions = |name| {
        let tensor = fields.optional(name).filter(|_| !is_on_values(loss));
        tensor.map(|tensor| fields.floats(name, tensor, &[n])).transpose()
    };
    let (entropy_weights, kl_weights) = (of_positions(ENTROPY)?, of_positions(KL)?);
    let policy = is_policy_gradient(loss).then(|| fields.policy_inputs(n)).transpose()?;
    let values = is_on_values(loss).then(|| fields.value_inputs(n)).transpose()?;
    Ok(PreparedDatum {
        index,
        tokens,
        targets: fields.target_ids(targets, vocab_size)?,
        k: shape.get(1).copied().unwrap_or(1),
        shape,
        weights,
        entropy_weights,
        kl_weights,
        policy,
        values,
        custom,
        images: Vec::new(),
    })
}

/// A datum's loss inputs, with what error texts need.
struct Fields<'a> {
    loss: &'a LossFn,
    index: usize,
    datum: &'a Datum,
}

impl<'a> Fields<'a> {
    fn error(&self, name: &str, reason: impl std::fmt::Display) -> OpError {
        OpError::user(format!("data[{}].loss_fn_inputs.{name}: {reason}", self.index))
    }

    fn refuse_unknown(&self) -> Result<(), OpError> {
        let Some(known) = inputs_of(self.loss) else { return Ok(()) };
        match self.datum.loss_fn_inputs.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(self
                .error(name, format_args!("not an input of {}; its inputs: {}", self.loss.name(), known.join(", ")))),
        }
    }

    fn optional(&self, name: &str) -> Option<&'a Tensor> {
        self.datum.loss_fn_inputs.get(name)
    }

    fn mandatory(&self, name: &str) -> Result<&'a Tensor, OpError> {
        self.optional(name).ok_or_else(|| self.error(name, format_args!("missing; {} needs it", self.loss.name())))
    }

    /// The shape of the targets of `n` input tokens: `[n]`, or `[n, k]` where the loss takes it.
    fn target_shape(&self, targets: &Tensor, n: usize, vocab_size: usize) -> Result<Vec<usize>, OpError> {
        let name = "target_tokens";
        match targets.shape.as_slice() {
            [rows] | [rows, _] if *rows != n => {
                Err(self.error(name, format_args!("has {rows} rows, model_input has {n} tokens")))
            }
            [_, _] if is_policy_gradient(self.loss) || is_on_values(self.loss) => {
                Err(self.error(name, format_args!("{} takes one target per position, shape (N,)", self.loss.name())))
            }
            [_, 0] => Err(self.error(name, "has no columns")),
            [_, k] => {
                check_targets(*k as u64, vocab_size).map_err(|text| self.error(name, text))?;
                Ok(targets.shape.clone())
            }
            [_] => Ok(targets.shape.clone()),
            other => Err(self.error(name, format_args!("has {} dimensions, expected 1 or 2", other.len()))),
        }
    }

    fn target_ids(&self, targets: &Tensor, vocab_size: usize) -> Result<Vec<u32>, OpError> {
        let name = "target_tokens";
        let TensorValues::I64(ids) = &targets.values else {
            return Err(self.error(name, format_args!("is {}, must be int64", targets.dtype())));
        };
        self.check_count(name, targets)?;
        token_ids(ids, vocab_size, &format!("data[{}].loss_fn_inputs.{name}", self.index))
    }

    fn floats(&self, name: &str, tensor: &Tensor, shape: &[usize]) -> Result<Vec<f32>, OpError> {
        let TensorValues::F32(values) = &tensor.values else {
            return Err(self.error(name, format_args!("is {}, must be float32", tensor.dtype())));
        };
        if tensor.shape != shape {
            return Err(self.error(name, format_args!("has shape {:?}, expected {shape:?}", tensor.shape)));
        }
        self.check_count(name, tensor)?;
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values.clone()),
            Some(at) => Err(self.error(name, format_args!("element {at} is {}, must be finite", values[at]))),
        }
    }

    /// Per-token inputs of `n` positions.
    fn policy_inputs(&self, n: usize) -> Result<PolicyInputs, OpError> {
        let per_token = |name| self.floats(name, self.mandatory(name)?, &[n]);
        let (logprobs, advantages) = (per_token("logprobs")?, per_token("advantages")?);
        let ratio_mask = match self.loss {
            LossFn::Gspo(_) => per_token("sequence_ratio_mask")?.iter().map(|&mask| mask != 0.0).collect(),
            _ => Vec::new(),
        };
        Ok(PolicyInputs { logprobs, advantages, ratio_mask })
    }

    /// Inputs of a loss on the values of `n` positions.
    fn value_inputs(&self, n: usize) -> Result<ValueInputs, OpError> {
        let of = |name| self.floats(name, self.mandatory(name)?, &[n]);
        let clips = matches!(self.loss, LossFn::ValueMse { clip: Some(_) });
        let old_values = if clips { of("old_values")? } else { Vec::new() };
        Ok(ValueInputs { returns: of("returns")?, old_values })
    }

    fn check_count(&self, name: &str, tensor: &Tensor) -> Result<(), OpError> {
        let implied = tensor.shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        if implied == Some(tensor.len()) {
            return Ok(());
        }
        Err(self.error(name, format_args!("has {} elements, its shape is {:?}", tensor.len(), tensor.shape)))
    }
}

fn token_ids(ids: &[i64], vocab_size: usize, field: &str) -> Result<Vec<u32>, OpError> {
    let checked = |(at, &id): (usize, &i64)| match u32::try_from(id) {
        Ok(token) if (token as usize) < vocab_size => Ok(token),
        _ => Err(OpError::user(format!("{field}: element {at} is token {id}, outside the vocabulary of {vocab_size}"))),
    };
    ids.iter().enumerate().map(checked).collect()
}

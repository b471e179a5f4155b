//! Loss functions as requests name them: an id with checked parameters. The engine implements their formulas.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::custom_loss::CustomLoss;
use crate::{ModelHead, OpError};

/// A parameter of a loss function as decoded.
#[derive(Clone, Debug, PartialEq)]
pub enum LossConfigValue {
    /// A floating-point number, possibly not finite.
    Number(f64),
    /// A string, such as an id.
    Text(String),
}

/// Parameters of a loss function by name (`loss_fn_config`), unchecked.
pub type LossConfig = BTreeMap<String, LossConfigValue>;

/// A loss function with its parameters. Below, `lp` is the log-probability of a target, `q` the datum's
/// `logprobs`, `A` its `advantages`, `r = exp(lp - q)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LossFn {
    /// Cross-entropy: `-w lp`, for one target per position or `K` of them.
    CrossEntropy,
    /// Importance sampling: `-r A`.
    ImportanceSampling,
    /// PPO: `-min(r A, clip(r) A)` (Schulman et al. 2017, arXiv:1707.06347).
    Ppo(ClipRange),
    /// CISPO: `-clip(r) lp A`, the clipped ratio held constant (MiniMax 2025, arXiv:2506.13585).
    Cispo(ClipRange),
    /// DRO: `-(lp A - beta / 2 (lp - q)^2)`.
    Dro {
        /// Weight of the penalty, at least 0.
        beta: f64,
    },
    /// GSPO-token: `-min(s_t A, clip(s_t) A)`, where `s_t` has the value of the sequence's ratio
    /// `s = exp(mean_m(lp - q))`, and the gradient of `s` with respect to `lp_t`. `m` are the positions whose
    /// `sequence_ratio_mask` is not 0 (Zheng et al. 2025, arXiv:2507.18071).
    Gspo(ClipRange),
    /// Custom loss: a graph that the client uploaded.
    Custom(Arc<CustomLoss>),
    /// Value loss: `w / 2 (v - R)^2` of values `v` of a scalar head and the datum's `returns` `R`. With a clip `c`, the
    /// larger of this and `w / 2 (v_c - R)^2`, `v_c = old + clamp(v - old, -c, c)` with `old_values`: PPO's clipped
    /// value loss (Schulman et al. 2017, arXiv:1707.06347, as in its published code).
    ValueMse {
        /// Largest change of a value from the old one; greater than 0.
        clip: Option<f64>,
    },
    /// REINFORCE with truncated importance weights and a quadratic (k2) penalty on the distance to the sampling policy:
    /// `-min(sg(r), 2) A lp + kl_coeff / 2 (lp - q)^2`. This is the definition of this server; the definition of the
    /// hosted service is not public.
    StableReinforce {
        /// Weight of the penalty, at least 0.
        kl_coeff: f64,
    },
}

/// Bounds of a probability ratio, `low <= high`: absolute ratios, not offsets from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClipRange {
    /// Smallest ratio that is not clipped.
    pub low: f64,
    /// Largest ratio that is not clipped.
    pub high: f64,
}

impl ClipRange {
    /// Returns the ratio, limited to the bounds.
    pub fn clip(&self, ratio: f64) -> f64 {
        ratio.max(self.low).min(self.high)
    }
}

const CLIP_KEYS: &[&str] = &["clip_low_threshold", "clip_high_threshold"];
const SUPPORTED: &str =
    "cross_entropy, importance_sampling, ppo, cispo, dro, gspo, stable_reinforce, value_mse, custom";

impl LossFn {
    /// Reads a loss function's wire name and parameters; absent parameters take their defaults.
    ///
    /// # Errors
    /// A user error that names an unknown loss or parameter, a text instead of a number, or a number out of range.
    pub fn parse(name: &str, config: &LossConfig) -> Result<Self, OpError> {
        let parameters = Parameters { loss: name, config };
        match name {
            "cross_entropy" => parameters.only(&[]).map(|()| Self::CrossEntropy),
            "importance_sampling" => parameters.only(&[]).map(|()| Self::ImportanceSampling),
            "ppo" => parameters.clip_range(0.8, 1.2).map(Self::Ppo),
            "cispo" => parameters.clip_range(0.0, 4.0).map(Self::Cispo),
            "gspo" => parameters.clip_range(0.9997, 1.0004).map(Self::Gspo),
            "dro" => parameters.coefficient("beta", 0.05).map(|beta| Self::Dro { beta }),
            "stable_reinforce" => {
                parameters.coefficient("kl_coeff", 0.0).map(|kl_coeff| Self::StableReinforce { kl_coeff })
            }
            "value_mse" => parameters.positive("value_clip").map(|clip| Self::ValueMse { clip }),
            "custom" => {
                parameters.only(&["loss_id"])?;
                Err(OpError::user(
                    "loss_fn_config.loss_id: a custom loss needs the id that create_custom_loss returned",
                ))
            }
            _ => Err(OpError::user(format!("loss_fn: unknown loss function {name:?}; supported: {SUPPORTED}"))),
        }
    }

    /// Returns the name in requests.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross_entropy",
            Self::ImportanceSampling => "importance_sampling",
            Self::Ppo(_) => "ppo",
            Self::Cispo(_) => "cispo",
            Self::Dro { .. } => "dro",
            Self::Gspo(_) => "gspo",
            Self::Custom(_) => "custom",
            Self::StableReinforce { .. } => "stable_reinforce",
            Self::ValueMse { .. } => "value_mse",
        }
    }

    /// Checks that the loss is defined on what a run with this head computes. `cross_entropy` is linear in its inputs,
    /// and a custom loss computes whatever its graph states, so both are defined on values too; the others need
    /// log-probabilities.
    ///
    /// # Errors
    /// A user error that names the loss and what the head allows.
    pub fn check_head(&self, head: ModelHead) -> Result<(), OpError> {
        let name = self.name();
        match (self, head) {
            (Self::CrossEntropy | Self::Custom(_), _)
            | (Self::ValueMse { .. }, ModelHead::Scalar)
            | (
                Self::ImportanceSampling
                | Self::Ppo(_)
                | Self::Cispo(_)
                | Self::Dro { .. }
                | Self::Gspo(_)
                | Self::StableReinforce { .. },
                ModelHead::Unembedding,
            ) => Ok(()),
            (_, ModelHead::Scalar) => Err(OpError::user(format!(
                "loss_fn: {name} needs log-probabilities, and this model has a scalar head; its losses: value_mse, \
                 cross_entropy, custom"
            ))),
            (_, ModelHead::Unembedding) => Err(OpError::user(format!(
                "loss_fn: {name} needs values; create the model with user_metadata {{\"trainyard.head\": \"scalar\"}}"
            ))),
        }
    }
}

/// A request's parameters for one loss function.
struct Parameters<'a> {
    loss: &'a str,
    config: &'a LossConfig,
}

impl Parameters<'_> {
    /// Refuses parameters that are not among `allowed`.
    fn only(&self, allowed: &[&str]) -> Result<(), OpError> {
        let Some(key) = self.config.keys().find(|key| !allowed.contains(&key.as_str())) else { return Ok(()) };
        let known = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        Err(OpError::user(format!("loss_fn_config.{key}: not a setting of {}; its settings: {known}", self.loss)))
    }

    fn number(&self, key: &str, default: f64) -> Result<f64, OpError> {
        match self.config.get(key) {
            None => Ok(default),
            Some(LossConfigValue::Number(value)) if value.is_finite() => Ok(*value),
            Some(LossConfigValue::Number(value)) => {
                Err(OpError::user(format!("loss_fn_config.{key}: {value} is not finite")))
            }
            Some(LossConfigValue::Text(text)) => {
                Err(OpError::user(format!("loss_fn_config.{key}: expected a number, found the text {text:?}")))
            }
        }
    }

    fn clip_range(&self, low: f64, high: f64) -> Result<ClipRange, OpError> {
        self.only(CLIP_KEYS)?;
        let (low, high) = (self.number(CLIP_KEYS[0], low)?, self.number(CLIP_KEYS[1], high)?);
        if low > high {
            return Err(OpError::user(format!(
                "loss_fn_config.clip_low_threshold: {low} is above clip_high_threshold {high}"
            )));
        }
        Ok(ClipRange { low, high })
    }

    /// Reads the only parameter of a loss, which must be more than 0 if it is given.
    fn positive(&self, key: &str) -> Result<Option<f64>, OpError> {
        self.only(&[key])?;
        if !self.config.contains_key(key) {
            return Ok(None);
        }
        let value = self.number(key, 0.0)?;
        if value <= 0.0 {
            return Err(OpError::user(format!("loss_fn_config.{key}: {value} is not above 0")));
        }
        Ok(Some(value))
    }

    /// Reads the only parameter of a loss, which must be at least 0.
    fn coefficient(&self, key: &str, default: f64) -> Result<f64, OpError> {
        self.only(&[key])?;
        let value = self.number(key, default)?;
        if value < 0.0 {
            return Err(OpError::user(format!("loss_fn_config.{key}: {value} is negative")));
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn config(entries: &[(&str, f64)]) -> LossConfig {
        entries.iter().map(|&(key, value)| (key.to_owned(), LossConfigValue::Number(value))).collect()
    }

    #[test]
    fn names_and_defaults() {
        let range = |low, high| ClipRange { low, high };
        for (name, expected) in [
            ("cross_entropy", LossFn::CrossEntropy),
            ("importance_sampling", LossFn::ImportanceSampling),
            ("ppo", LossFn::Ppo(range(0.8, 1.2))),
            ("cispo", LossFn::Cispo(range(0.0, 4.0))),
            ("dro", LossFn::Dro { beta: 0.05 }),
            ("gspo", LossFn::Gspo(range(0.9997, 1.0004))),
            ("stable_reinforce", LossFn::StableReinforce { kl_coeff: 0.0 }),
            ("value_mse", LossFn::ValueMse { clip: None }),
        ] {
            let parsed = LossFn::parse(name, &LossConfig::new()).unwrap();
            assert_eq!((&parsed, parsed.name()), (&expected, name));
        }
        let wide = LossFn::parse("ppo", &config(&[("clip_high_threshold", 2.0)])).unwrap();
        assert_eq!(wide, LossFn::Ppo(range(0.8, 2.0)));
        let clipped = LossFn::parse("value_mse", &config(&[("value_clip", 0.5)])).unwrap();
        assert_eq!(clipped, LossFn::ValueMse { clip: Some(0.5) });
    }

    #[test]
    fn losses_are_refused_where_the_head_does_not_compute_what_they_need() {
        let parse = |name| LossFn::parse(name, &LossConfig::new()).unwrap();
        for name in ["importance_sampling", "ppo", "cispo", "dro", "gspo", "stable_reinforce"] {
            parse(name).check_head(ModelHead::Unembedding).unwrap();
            let refused = parse(name).check_head(ModelHead::Scalar).unwrap_err().message;
            assert!(refused.starts_with(&format!("loss_fn: {name} needs log-probabilities")), "{refused}");
        }
        for head in [ModelHead::Unembedding, ModelHead::Scalar] {
            parse("cross_entropy").check_head(head).unwrap();
        }
        parse("value_mse").check_head(ModelHead::Scalar).unwrap();
        let refused = parse("value_mse").check_head(ModelHead::Unembedding).unwrap_err().message;
        assert!(refused.contains("value_mse needs values") && refused.contains("trainyard.head"), "{refused}");
    }

    #[test]
    fn errors_name_the_loss_and_the_parameter() {
        let text: LossConfig = [("beta".to_owned(), LossConfigValue::Text("a".into()))].into();
        let cases = [
            ("custom", LossConfig::new(), "loss_fn_config.loss_id: a custom loss needs the id"),
            ("custom", config(&[("beta", 1.0)]), "loss_fn_config.beta: not a setting of custom"),
            (
                "stable_reinforce",
                config(&[("beta", 1.0)]),
                "loss_fn_config.beta: not a setting of stable_reinforce; its",
            ),
            ("stable_reinforce", config(&[("kl_coeff", -0.5)]), "loss_fn_config.kl_coeff: -0.5 is negative"),
            ("crossentropy", LossConfig::new(), "loss_fn: unknown loss function \"crossentropy\""),
            ("cross_entropy", config(&[("beta", 1.0)]), "loss_fn_config.beta: not a setting of cross_entropy"),
            ("ppo", config(&[("clip_low", 1.0)]), "loss_fn_config.clip_low: not a setting of ppo; its settings: clip_"),
            ("ppo", config(&[("clip_low_threshold", 1.5)]), "loss_fn_config.clip_low_threshold: 1.5 is above"),
            ("gspo", config(&[("beta", 1.5)]), "loss_fn_config.beta: not a setting of gspo"),
            ("gspo", config(&[("clip_low_threshold", 1.1)]), "loss_fn_config.clip_low_threshold: 1.1 is above"),
            ("cispo", config(&[("clip_high_threshold", f64::NAN)]), "loss_fn_config.clip_high_threshold: NaN is not"),
            ("dro", text, "loss_fn_config.beta: expected a number"),
            ("value_mse", config(&[("value_clip", 0.0)]), "loss_fn_config.value_clip: 0 is not above 0"),
            (
                "value_mse",
                config(&[("clip", 1.0)]),
                "loss_fn_config.clip: not a setting of value_mse; its settings: value_",
            ),
            ("dro", config(&[("beta", -1.0)]), "loss_fn_config.beta: -1 is negative"),
        ];
        for (name, config, expected) in cases {
            let message = LossFn::parse(name, &config).unwrap_err().message;
            assert!(message.starts_with(expected), "{message}");
        }
    }
}

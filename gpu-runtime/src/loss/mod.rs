//! Loss functions: from per-token log-probabilities and a datum's inputs to a sum and its gradient.
//!
//! They are apart from the model's pass: the pass yields log-probabilities, [`evaluate`] yields
//! d(sum)/d(log-probability), and the pass goes backward from there. All losses are sums over tokens,
//! candidates and datums; nothing is normalised.

mod batch;
mod evaluate;
mod inputs;

use trainyard_protocol::{LossConfig, LossConfigValue, OpError};

pub use batch::{PreparedBatch, prepare_ahead};
pub use evaluate::{LossValue, evaluate};
pub use inputs::{PreparedDatum, prepare};

/// A loss function with its settings. Below, `lp` is the log-probability of a target, `q` the datum's
/// `logprobs`, `A` its `advantages`, `r = exp(lp - q)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossFn {
    /// `-w lp`, for one target per position or `K` of them.
    CrossEntropy,
    /// `-r A`.
    ImportanceSampling,
    /// `-min(r A, clip(r, low, high) A)` (Schulman et al. 2017, arXiv:1707.06347).
    Ppo {
        /// Smallest ratio.
        low: f64,
        /// Largest ratio.
        high: f64,
    },
    /// `-clip(r, low, high) lp A`, the clipped ratio held constant (MiniMax 2025, arXiv:2506.13585).
    Cispo {
        /// Smallest ratio.
        low: f64,
        /// Largest ratio.
        high: f64,
    },
    /// `-(lp A - beta / 2 (lp - q)^2)`.
    Dro {
        /// Weight of the penalty.
        beta: f64,
    },
}

const CLIP_KEYS: &[&str] = &["clip_low_threshold", "clip_high_threshold"];
const SUPPORTED: &str = "cross_entropy, importance_sampling, ppo, cispo, dro";

impl LossFn {
    /// Reads a loss function's wire name and settings; absent settings take their defaults. Unknown names
    /// and settings, texts and non-finite numbers are refused by name.
    pub fn parse(name: &str, config: &LossConfig) -> Result<Self, OpError> {
        let settings = Settings { loss: name, config };
        match name {
            "cross_entropy" => settings.only(&[]).map(|()| Self::CrossEntropy),
            "importance_sampling" => settings.only(&[]).map(|()| Self::ImportanceSampling),
            "ppo" => settings.clip(0.8, 1.2).map(|(low, high)| Self::Ppo { low, high }),
            "cispo" => settings.clip(0.0, 4.0).map(|(low, high)| Self::Cispo { low, high }),
            "dro" => {
                settings.only(&["beta"])?;
                let beta = settings.number("beta", 0.05)?;
                if beta < 0.0 {
                    return Err(OpError::user(format!("loss_fn_config.beta: {beta} is negative")));
                }
                Ok(Self::Dro { beta })
            }
            "gspo" | "stable_reinforce" | "custom" => {
                Err(OpError::user(format!("loss_fn: {name} is not supported by this server; it has {SUPPORTED}")))
            }
            _ => Err(OpError::user(format!("loss_fn: {name:?} is not a loss function; this server has {SUPPORTED}"))),
        }
    }

    /// The wire's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::CrossEntropy => "cross_entropy",
            Self::ImportanceSampling => "importance_sampling",
            Self::Ppo { .. } => "ppo",
            Self::Cispo { .. } => "cispo",
            Self::Dro { .. } => "dro",
        }
    }

    /// Names of the inputs that a datum may carry.
    fn inputs(&self) -> &'static [&'static str] {
        match self {
            Self::CrossEntropy => &["target_tokens", "weights"],
            _ => &["target_tokens", "logprobs", "advantages", "weights"],
        }
    }

    /// Whether `logprobs` and `advantages` are mandatory and targets are one per position.
    fn is_policy_gradient(&self) -> bool {
        !matches!(self, Self::CrossEntropy)
    }
}

/// A request's settings for one loss function.
struct Settings<'a> {
    loss: &'a str,
    config: &'a LossConfig,
}

impl Settings<'_> {
    /// Refuses settings that are not among `allowed`.
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
                Err(OpError::user(format!("loss_fn_config.{key}: a number is needed, not the text {text:?}")))
            }
        }
    }

    fn clip(&self, low: f64, high: f64) -> Result<(f64, f64), OpError> {
        self.only(CLIP_KEYS)?;
        let (low, high) = (self.number(CLIP_KEYS[0], low)?, self.number(CLIP_KEYS[1], high)?);
        if low > high {
            return Err(OpError::user(format!(
                "loss_fn_config.clip_low_threshold: {low} is above clip_high_threshold {high}"
            )));
        }
        Ok((low, high))
    }
}

#[cfg(test)]
mod tests;

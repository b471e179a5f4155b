//! Inputs of a loss function from a datum, and its results.

use trainyard_protocol::PolicyInputs;

/// A target's term of the loss and its derivative with respect to the target's log-probability, before weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) value: f64,
    pub(super) gradient: f64,
}

impl Term {
    /// The term of a target that contributes nothing.
    pub(super) const ZERO: Self = Self { value: 0.0, gradient: 0.0 };

    pub(super) fn new(value: f64, gradient: f64) -> Self {
        Self { value, gradient }
    }
}

/// A target of a policy-gradient loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyTarget {
    /// Log-probability under the model that is trained.
    pub(super) lp: f64,
    /// Log-probability under the policy that sampled it.
    pub(super) q: f64,
    pub(super) advantage: f64,
}

/// The targets of a datum, one per position.
pub(super) fn policy_targets<'a>(
    logprobs: &'a [f32],
    inputs: &'a PolicyInputs,
) -> impl Iterator<Item = PolicyTarget> + 'a {
    logprobs.iter().zip(&inputs.logprobs).zip(&inputs.advantages).map(|((&lp, &q), &advantage)| PolicyTarget {
        lp: f64::from(lp),
        q: f64::from(q),
        advantage: f64::from(advantage),
    })
}

//! `dro`: `-(lp A - beta / 2 (lp - q)^2)`.

use trainyard_protocol::PolicyInputs;

use super::term::{PolicyTarget, Term, policy_targets};

/// Terms of all positions.
pub(super) fn terms(logprobs: &[f32], inputs: &PolicyInputs, beta: f64) -> Vec<Term> {
    let term = |target: PolicyTarget| {
        let gap = target.lp - target.q;
        Term::new(0.5 * beta * gap * gap - target.lp * target.advantage, beta * gap - target.advantage)
    };
    policy_targets(logprobs, inputs).map(term).collect()
}

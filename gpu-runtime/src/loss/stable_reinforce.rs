//! `stable_reinforce` as this server defines it (the hosted service's formula is not public): REINFORCE with truncated
//! importance weights (TIS; Ionides 2008, "Truncated Importance Sampling") and the quadratic estimate k2 of the
//! divergence from the sampling policy (Schulman 2020, "Approximating KL Divergence").

use trainyard_protocol::PolicyInputs;

use super::term::{PolicyTarget, Term, policy_targets};

/// Ratios above it are truncated to it.
pub(super) const MAX_RATIO: f64 = 2.0;

/// `-min(r, 2) A lp + kl_coeff / 2 (lp - q)^2` of every position, the truncated ratio held constant. Positions that were
/// not sampled have the term zero.
pub(super) fn terms(logprobs: &[f32], inputs: &PolicyInputs, kl_coeff: f64) -> Vec<Term> {
    policy_targets(logprobs, inputs).map(|target| term(target, kl_coeff)).collect()
}

fn term(target: PolicyTarget, kl_coeff: f64) -> Term {
    if !is_sampled(target) || (target.advantage == 0.0 && kl_coeff == 0.0) {
        return Term::ZERO;
    }
    let scale = ratio(target).min(MAX_RATIO) * target.advantage;
    let gap = target.lp - target.q;
    Term::new(0.5 * kl_coeff * gap * gap - scale * target.lp, kl_coeff * gap - scale)
}

/// `r = exp(lp - q)`.
pub(super) fn ratio(target: PolicyTarget) -> f64 {
    (target.lp - target.q).exp()
}

/// Whether a position was sampled: those of a prompt have the advantage 0 and the log-probability 0.
pub(super) fn is_sampled(target: PolicyTarget) -> bool {
    target.advantage != 0.0 || target.q != 0.0
}

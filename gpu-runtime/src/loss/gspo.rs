//! `gspo`: Group Sequence Policy Optimization with a gradient per token (GSPO-token, Zheng et al. 2025,
//! arXiv:2507.18071, equations 13 and 14).
//!
//! All tokens of a datum share the value of one ratio, `s = exp(mean_m(lp - q))` over the masked positions `m`. Token
//! `t` has `s_t = s exp(lp_t - sg(lp_t))`, so that d(s_t)/d(lp_t) = s and the mean itself carries no gradient.

use trainyard_protocol::{ClipRange, PolicyInputs};

use super::ratio::clipped_surrogate;
use super::term::{Term, policy_targets};

/// `-min(s_t A, clip(s_t) A)` of every position, masked or not.
pub(super) fn terms(logprobs: &[f32], inputs: &PolicyInputs, range: ClipRange) -> Vec<Term> {
    let ratio = sequence_ratio(logprobs, inputs);
    let term = |advantage| match advantage {
        0.0 => Term::ZERO,
        _ => clipped_surrogate(ratio, advantage, range),
    };
    policy_targets(logprobs, inputs).map(|target| term(target.advantage)).collect()
}

/// The ratio of the sequence's likelihoods to the power of 1 / length; 1 where no position is masked.
fn sequence_ratio(logprobs: &[f32], inputs: &PolicyInputs) -> f64 {
    let masked = policy_targets(logprobs, inputs).zip(&inputs.ratio_mask).filter(|(_, masked)| **masked);
    let (sum, count) = masked.fold((0.0, 0_u32), |(sum, count), (target, _)| (sum + (target.lp - target.q), count + 1));
    (sum / f64::from(count.max(1))).exp()
}

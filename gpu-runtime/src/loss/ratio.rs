//! Losses of each token's probability ratio `r = exp(lp - q)`: `importance_sampling`, `ppo` and `cispo`.

use trainyard_protocol::{ClipRange, PolicyInputs};

use super::term::{PolicyTarget, Term, policy_targets};

/// Terms of importance sampling: `-r A`.
pub(super) fn importance_sampling(logprobs: &[f32], inputs: &PolicyInputs) -> Vec<Term> {
    by_token(logprobs, inputs, |_, ratio, advantage| Term::new(-ratio * advantage, -ratio * advantage))
}

/// `-min(r A, clip(r) A)`.
pub(super) fn ppo(logprobs: &[f32], inputs: &PolicyInputs, range: ClipRange) -> Vec<Term> {
    by_token(logprobs, inputs, |_, ratio, advantage| clipped_surrogate(ratio, advantage, range))
}

/// `-clip(r) lp A`, the clipped ratio held constant.
pub(super) fn cispo(logprobs: &[f32], inputs: &PolicyInputs, range: ClipRange) -> Vec<Term> {
    by_token(logprobs, inputs, |lp, ratio, advantage| {
        let scale = range.clip(ratio) * advantage;
        Term::new(-scale * lp, -scale)
    })
}

/// `-min(r A, clip(r) A)` of a ratio whose derivative with respect to `lp` is itself.
pub(super) fn clipped_surrogate(ratio: f64, advantage: f64, range: ClipRange) -> Term {
    let (free, clipped) = (ratio * advantage, range.clip(ratio) * advantage);
    // Within the bounds both are equal and the gradient flows; outside, only where the unclipped one is less.
    if free <= clipped { Term::new(-free, -free) } else { Term::new(-clipped, 0.0) }
}

/// Terms of `(lp, r, A)`. Without an advantage a term is exactly zero, whatever the ratio.
fn by_token(logprobs: &[f32], inputs: &PolicyInputs, term: impl Fn(f64, f64, f64) -> Term) -> Vec<Term> {
    let term = |PolicyTarget { lp, q, advantage }| match advantage {
        0.0 => Term::ZERO,
        _ => term(lp, (lp - q).exp(), advantage),
    };
    policy_targets(logprobs, inputs).map(term).collect()
}

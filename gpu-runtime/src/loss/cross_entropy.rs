//! The loss `cross_entropy`: `-lp`.

use super::term::Term;

/// Terms of targets with these log-probabilities, `[N, k]`.
pub(super) fn terms(logprobs: &[f32]) -> Vec<Term> {
    logprobs.iter().map(|&lp| Term::new(-f64::from(lp), -1.0)).collect()
}

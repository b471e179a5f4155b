//! Evaluation of a datum's loss from the terms of its targets.

use serde::{Deserialize, Serialize};
use trainyard_protocol::{LossFn, OpError, PolicyInputs, PreparedDatum, ValueInputs};

use super::term::Term;
use super::{cross_entropy, custom, dro, gspo, ratio, stable_reinforce, value};
use crate::interrupt::Interrupt;

/// The loss of one datum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossValue {
    /// Sum of all terms.
    pub sum: f64,
    /// Each target's term, in the layout of the targets; empty for a custom loss, which has no terms.
    pub elementwise: Vec<f32>,
    /// d(sum)/d(log-probability), in the layout of the targets. It is not exchanged between ranks.
    #[serde(skip)]
    pub dlogprobs: Vec<f32>,
    /// The metrics of a custom loss, in its order.
    pub metrics: Vec<f64>,
}

/// The outcome of an evaluation that may cost so many elements.
#[derive(Debug)]
pub(crate) enum Evaluation {
    /// The loss, and the number of elements that a custom loss computed.
    Done { value: LossValue, elements: usize },
    /// The loss would cost more than its limit.
    Postponed,
}

/// Evaluates the loss of a datum. `logprobs` are the log-probabilities of its targets, `[N, k]`, or the values of its
/// positions, `[N]`.
///
/// Terms are computed in f64 and summed in order. A target whose weight is zero, or whose advantage is zero where the
/// term is a multiple of it, contributes exactly 0, whatever its ratio.
///
/// # Errors
/// A user error with the position if a term or gradient does not fit in f32 (for example, if a ratio overflows); a
/// server error if lengths or inputs are not those of the loss.
pub fn evaluate(loss: &LossFn, datum: &PreparedDatum, logprobs: &[f32]) -> Result<LossValue, OpError> {
    evaluate_until(loss, datum, logprobs, &Interrupt::default())
}

/// [`evaluate`]; a custom loss, which may take seconds, ends with an error of the user once `interrupt` is set.
pub(crate) fn evaluate_until(
    loss: &LossFn,
    datum: &PreparedDatum,
    logprobs: &[f32],
    interrupt: &Interrupt,
) -> Result<LossValue, OpError> {
    match evaluate_within(loss, datum, logprobs, interrupt, usize::MAX)? {
        Evaluation::Done { value, .. } => Ok(value),
        Evaluation::Postponed => Err(OpError::server("a loss with an unlimited budget was postponed")),
    }
}

/// [`evaluate_until`], for a custom loss that may cost `allowance` elements.
pub(crate) fn evaluate_within(
    loss: &LossFn,
    datum: &PreparedDatum,
    logprobs: &[f32],
    interrupt: &Interrupt,
    allowance: usize,
) -> Result<Evaluation, OpError> {
    match loss {
        LossFn::Custom(loss) => custom::evaluate(loss, datum, logprobs, interrupt, allowance),
        loss => Ok(Evaluation::Done { value: sum_of_terms(loss, datum, logprobs)?, elements: 0 }),
    }
}

fn sum_of_terms(loss: &LossFn, datum: &PreparedDatum, logprobs: &[f32]) -> Result<LossValue, OpError> {
    let count = datum.targets.len();
    let terms = terms(loss, datum, logprobs).filter(|terms| terms.len() == count && logprobs.len() == count);
    let Some(terms) = terms else {
        return Err(OpError::server(format!("data[{}]: loss inputs and targets differ in length", datum.index)));
    };
    let mut value = LossValue {
        elementwise: Vec::with_capacity(count),
        dlogprobs: Vec::with_capacity(count),
        ..LossValue::default()
    };
    for (at, term) in terms.into_iter().enumerate() {
        let term = weighted(term, datum.weights.as_ref().map_or(1.0, |weights| f64::from(weights[at])));
        let (narrow_term, narrow_gradient) = (term.value as f32, term.gradient as f32);
        if !narrow_term.is_finite() || !narrow_gradient.is_finite() {
            return Err(not_finite(loss, datum, at, logprobs[at]));
        }
        value.sum += term.value;
        value.elementwise.push(narrow_term);
        value.dlogprobs.push(narrow_gradient);
    }
    Ok(value)
}

/// One term per target; `None` when the datum lacks inputs of this loss.
fn terms(loss: &LossFn, datum: &PreparedDatum, logprobs: &[f32]) -> Option<Vec<Term>> {
    let policy = || datum.policy.as_ref();
    Some(match loss {
        LossFn::CrossEntropy if datum.policy.is_none() => cross_entropy::terms(logprobs),
        LossFn::CrossEntropy => return None,
        LossFn::ImportanceSampling => ratio::importance_sampling(logprobs, policy()?),
        LossFn::Ppo(range) => ratio::ppo(logprobs, policy()?, *range),
        LossFn::Cispo(range) => ratio::cispo(logprobs, policy()?, *range),
        LossFn::Dro { beta } => dro::terms(logprobs, policy()?, *beta),
        LossFn::Custom(_) => return None,
        LossFn::Gspo(range) => gspo::terms(logprobs, policy().filter(|inputs| is_masked(inputs))?, *range),
        LossFn::StableReinforce { kl_coeff } => stable_reinforce::terms(logprobs, policy()?, *kl_coeff),
        LossFn::ValueMse { clip } => {
            let inputs = datum.values.as_ref().filter(|inputs| has_old_values(inputs, clip.is_some()))?;
            value::mse(logprobs, inputs, *clip)
        }
    })
}

fn has_old_values(inputs: &ValueInputs, clips: bool) -> bool {
    inputs.old_values.len() == if clips { inputs.returns.len() } else { 0 }
}

fn is_masked(inputs: &PolicyInputs) -> bool {
    inputs.ratio_mask.len() == inputs.logprobs.len()
}

fn weighted(term: Term, weight: f64) -> Term {
    if weight == 0.0 { Term::ZERO } else { Term::new(weight * term.value, weight * term.gradient) }
}

fn not_finite(loss: &LossFn, datum: &PreparedDatum, at: usize, lp: f32) -> OpError {
    let inputs = match (&datum.policy, &datum.values) {
        (Some(policy), _) => format!(
            " (target log-probability {lp}, logprobs {}, advantage {})",
            policy.logprobs[at], policy.advantages[at]
        ),
        (None, Some(values)) => format!(" (value {lp}, return {})", values.returns[at]),
        (None, None) => format!(" (target log-probability {lp})"),
    };
    OpError::user(format!(
        "data[{}]: {} is not finite at position {}{inputs}",
        datum.index,
        loss.name(),
        at / datum.k.max(1)
    ))
}

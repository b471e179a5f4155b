//! The formulas.

use trainyard_protocol::OpError;

use super::{LossFn, PreparedDatum};

/// A datum's loss.
#[derive(Clone, Debug, PartialEq)]
pub struct LossValue {
    /// Sum of all terms.
    pub sum: f64,
    /// Each target's term, in the layout of the targets.
    pub elementwise: Vec<f32>,
    /// d(sum)/d(log-probability), in the layout of the targets.
    pub dlogprobs: Vec<f32>,
}

/// Evaluates the loss of a datum whose targets have log-probabilities `logprobs` (`[N * k]`, as the
/// targets).
///
/// Terms are computed in f64 and summed in order. A target whose weight is zero, or whose advantage is
/// zero where the term is a multiple of it, contributes exactly nothing however wild its ratio. A term or
/// gradient that does not fit in f32 (say, a ratio that overflowed) is the datum's fault and is refused with its
/// position; so is a wrong length of `logprobs`, as the server's.
pub fn evaluate(loss: &LossFn, datum: &PreparedDatum, logprobs: &[f32]) -> Result<LossValue, OpError> {
    let count = datum.targets.len();
    let policy = if loss.is_policy_gradient() { count } else { 0 };
    if logprobs.len() != count || datum.logprobs.len() != policy || datum.advantages.len() != policy {
        return Err(OpError::server(format!("data[{}]: loss inputs and targets differ in length", datum.index)));
    }
    let mut value =
        LossValue { sum: 0.0, elementwise: Vec::with_capacity(count), dlogprobs: Vec::with_capacity(count) };
    for (at, &lp) in logprobs.iter().enumerate() {
        let weight = datum.weights.as_ref().map_or(1.0, |weights| f64::from(weights[at]));
        let (term, gradient) = match (loss, weight) {
            (_, 0.0) => (0.0, 0.0),
            (LossFn::CrossEntropy, _) => (-f64::from(lp), -1.0),
            _ => policy_term(loss, f64::from(lp), f64::from(datum.logprobs[at]), f64::from(datum.advantages[at])),
        };
        let (term, gradient) = (weight * term, weight * gradient);
        let (narrow_term, narrow_gradient) = (term as f32, gradient as f32);
        if !narrow_term.is_finite() || !narrow_gradient.is_finite() {
            return Err(not_finite(loss, datum, at, lp));
        }
        value.sum += term;
        value.elementwise.push(narrow_term);
        value.dlogprobs.push(narrow_gradient);
    }
    Ok(value)
}

/// A token's term and its derivative by `lp`.
fn policy_term(loss: &LossFn, lp: f64, q: f64, advantage: f64) -> (f64, f64) {
    if let LossFn::Dro { beta } = loss {
        let gap = lp - q;
        return (0.5 * beta * gap * gap - lp * advantage, beta * gap - advantage);
    }
    if advantage == 0.0 {
        return (0.0, 0.0);
    }
    let ratio = (lp - q).exp();
    match loss {
        LossFn::Ppo { low, high } => {
            let (free, clipped) = (ratio * advantage, ratio.max(*low).min(*high) * advantage);
            // Inside the bounds both are equal and the gradient flows; outside, only where the free one is less.
            if free <= clipped { (-free, -free) } else { (-clipped, 0.0) }
        }
        LossFn::Cispo { low, high } => {
            let factor = ratio.max(*low).min(*high) * advantage;
            (-factor * lp, -factor)
        }
        _ => (-ratio * advantage, -ratio * advantage),
    }
}

fn not_finite(loss: &LossFn, datum: &PreparedDatum, at: usize, lp: f32) -> OpError {
    let inputs = match datum.logprobs.get(at) {
        Some(q) => format!(" (target log-probability {lp}, logprobs {q}, advantage {})", datum.advantages[at]),
        None => format!(" (target log-probability {lp})"),
    };
    OpError::user(format!(
        "data[{}]: {} is not finite at position {}{inputs}",
        datum.index,
        loss.name(),
        at / datum.k.max(1)
    ))
}

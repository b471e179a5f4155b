//! Losses of a training pass, between its forward and its backward part.

use serde::{Deserialize, Serialize};
use trainyard_protocol::OpError;

use super::loss_head::HeadLosses;
use super::train::TrainGroup;
use crate::backend::Backend;
use crate::interrupt;
use crate::loss::{Evaluation, LossValue, PreparedDatum, evaluate_within};

/// The results of a datum.
#[derive(Serialize, Deserialize)]
pub(crate) struct TrainOutput {
    /// Log-probabilities of its targets, or with a scalar head the values of its positions.
    pub logprobs: Vec<f32>,
    /// Entropies of its positions in nats, if it has weights for them.
    pub entropies: Option<Vec<f32>>,
    /// Divergences of its positions from the base model in nats, if it has weights for them.
    pub kl: Option<Vec<f32>>,
    pub value: LossValue,
    /// Number of its tokens that each expert got, for each block with experts.
    pub expert_tokens: Vec<Vec<u32>>,
}

/// The first datum of a group whose loss is not finite.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailedDatum {
    /// Index of the datum in the group.
    pub at: usize,
    pub error: OpError,
}

impl FailedDatum {
    /// The outcome of a group in a pass that ended early.
    pub(crate) fn ended_early() -> Self {
        Self { at: 0, error: interrupt::ended() }
    }
}

/// The results of a group.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct GroupOutput {
    /// Results of its datums, up to the first one whose loss is postponed.
    pub datums: Vec<TrainOutput>,
    /// Log-probabilities of the targets of the others, by datum. The pass has computed no gradient for them.
    pub postponed: Vec<Vec<f32>>,
}

/// The results of each group, or its datum at fault.
pub(super) type GroupOutputs = Vec<Result<GroupOutput, FailedDatum>>;

/// What the head computed for the rows of a batch.
pub(super) struct HeadOutputs {
    /// Log-probabilities of all targets.
    pub(super) logprobs: Vec<f32>,
    /// Entropies of all rows, or divergences from the base model; empty if no datum asks for them.
    pub(super) entropies: Vec<f32>,
    pub(super) divergences: Vec<f32>,
}

/// Losses per group, and the gradient with respect to every target's log-probability, every row's entropy and its divergence, zero
/// for groups that do not train or whose loss fails, and for postponed datums. A loss sees all tokens of its datum at once.
pub(super) fn losses<B: Backend>(
    groups: &[TrainGroup<'_, B>],
    computed: HeadOutputs,
    mut allowance: usize,
) -> (GroupOutputs, HeadLosses) {
    let HeadOutputs { logprobs, entropies, divergences } = computed;
    let mut d_logprobs = vec![0f32; logprobs.len()];
    let [mut d_entropies, mut d_divergences] = [&entropies, &divergences].map(|values| vec![0f32; values.len()]);
    let (mut at, mut row) = (0, 0);
    let outputs = groups
        .iter()
        .map(|group| {
            let start = at;
            at += group.data.iter().map(|datum| datum.targets.len()).sum::<usize>();
            let first = row;
            row += group.data.iter().map(|datum| datum.tokens.len()).sum::<usize>();
            let of_rows = [&entropies, &divergences].map(|values| values.get(first..row).unwrap_or_default());
            let mut evaluated = group.evaluated.iter();
            let evaluate = |datum: &PreparedDatum, logprobs: &[f32]| {
                if let Some(value) = evaluated.next() {
                    return Ok(Some(value.clone()?));
                }
                match evaluate_within(&group.loss, datum, logprobs, &group.interrupt, allowance)? {
                    Evaluation::Done { value, elements } => {
                        allowance = allowance.saturating_sub(elements);
                        Ok(Some(value))
                    }
                    Evaluation::Postponed => Ok(None),
                }
            };
            let output = group_losses(&group.data, &logprobs[start..at], of_rows, evaluate)?;
            if group.grads.is_some() {
                let gradients = output.datums.iter().flat_map(|output| &output.value.dlogprobs);
                d_logprobs[start..at].iter_mut().zip(gradients).for_each(|(d, gradient)| *d = *gradient);
                let computed = || group.data.iter().take(output.datums.len());
                set_weights(&mut d_entropies, first, computed(), |datum| datum.entropy_weights.as_deref(), -1.0);
                set_weights(&mut d_divergences, first, computed(), |datum| datum.kl_weights.as_deref(), 1.0);
            }
            Ok(output)
        })
        .collect();
    (outputs, HeadLosses { d_logprobs, entropies, d_entropies, divergences, d_divergences })
}

/// Writes weights of datums, whose rows start with `first`, as the gradient with respect to what they weigh.
fn set_weights<'d>(
    gradient: &mut [f32],
    first: usize,
    data: impl Iterator<Item = &'d &'d PreparedDatum>,
    of: fn(&PreparedDatum) -> Option<&[f32]>,
    sign: f32,
) {
    let mut rest = gradient.get_mut(first..).unwrap_or_default();
    for datum in data {
        let own;
        (own, rest) = rest.split_at_mut(datum.tokens.len().min(rest.len()));
        own.iter_mut().zip(of(datum).into_iter().flatten()).for_each(|(d, weight)| *d = sign * weight);
    }
}

/// The losses of a group's datums. Those behind the first one that fails or is postponed are not evaluated.
fn group_losses(
    data: &[&PreparedDatum],
    logprobs: &[f32],
    [mut entropies, mut divergences]: [&[f32]; 2],
    mut evaluate: impl FnMut(&PreparedDatum, &[f32]) -> Result<Option<LossValue>, OpError>,
) -> Result<GroupOutput, FailedDatum> {
    let mut output = GroupOutput::default();
    let mut rest = logprobs;
    for (at, datum) in data.iter().enumerate() {
        let (own, behind) = rest.split_at(datum.targets.len());
        rest = behind;
        let [own_entropies, own_divergences] = [&mut entropies, &mut divergences].map(|values| {
            let (of_rows, behind) = values.split_at(datum.tokens.len().min(values.len()));
            *values = behind;
            of_rows
        });
        let value = match output.postponed.is_empty() {
            true => evaluate(datum, own).map_err(|error| FailedDatum { at, error })?,
            false => None,
        };
        let Some(mut value) = value else {
            output.postponed.push(own.to_vec());
            continue;
        };
        let (entropy_weights, kl_weights) = (&datum.entropy_weights, &datum.kl_weights);
        let terms =
            [("entropy", entropy_weights, own_entropies, -1.0), ("KL divergence", kl_weights, own_divergences, 1.0)];
        for (name, weights, values, sign) in terms {
            let Some(weights) = weights else { continue };
            let weighted = weighted(name, datum, weights, values).map_err(|error| FailedDatum { at, error })?;
            value.sum += sign * weighted;
        }
        let entropies = entropy_weights.as_ref().map(|_| own_entropies.to_vec());
        let kl = kl_weights.as_ref().map(|_| own_divergences.to_vec());
        output.datums.push(TrainOutput { logprobs: own.to_vec(), entropies, kl, value, expert_tokens: Vec::new() });
    }
    Ok(output)
}

/// Returns the weighted sum of what a datum's positions have.
///
/// # Errors
/// The user's, with the position, if a value is not finite.
fn weighted(name: &str, datum: &PreparedDatum, weights: &[f32], values: &[f32]) -> Result<f64, OpError> {
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        let (index, value) = (datum.index, values[at]);
        return Err(OpError::user(format!("data[{index}]: the {name} at position {at} is {value}, not finite")));
    }
    Ok(weights.iter().zip(values).map(|(weight, value)| f64::from(*weight) * f64::from(*value)).sum())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use trainyard_protocol::Category;

    use super::*;

    #[test]
    fn an_entropy_that_is_not_finite_is_the_users_error() {
        let datum = PreparedDatum { index: 3, ..PreparedDatum::default() };
        let error = weighted("entropy", &datum, &[0.0, 0.0], &[1.0, f32::NAN]).unwrap_err();
        assert_eq!(
            (error.category, &*error.message),
            (Category::User, "data[3]: the entropy at position 1 is NaN, not finite")
        );
    }

    #[test]
    fn no_loss_behind_the_first_one_that_fails_or_is_postponed_is_evaluated() {
        let datum = |index| PreparedDatum {
            index,
            tokens: vec![1, 2],
            targets: vec![1, 2],
            k: 1,
            shape: vec![2],
            weights: None,
            entropy_weights: (index != 1).then(|| vec![0.5, 0.25]),
            kl_weights: (index == 1).then(|| vec![2.0, 1.0]),
            policy: None,
            values: None,
            custom: Vec::new(),
            images: Vec::new(),
        };
        let data: Vec<PreparedDatum> = (0..5).map(datum).collect();
        let data: Vec<&PreparedDatum> = data.iter().collect();
        let logprobs: Vec<f32> = (0..10).map(|at| -(at as f32)).collect();
        let mut seen = Vec::new();
        let entropies: [f32; 10] = [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0];
        let divergences: [f32; 10] = [0.0, 0.0, 0.5, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let of_rows = [&entropies[..], &divergences[..]];
        let outcome = group_losses(&data, &logprobs, of_rows, |datum, logprobs| {
            seen.push((datum.index, logprobs.to_vec()));
            if datum.index == 2 { Err(OpError::user("no")) } else { Ok(Some(LossValue::default())) }
        });
        assert!(matches!(outcome, Err(FailedDatum { at: 2, .. })));
        assert_eq!(seen, [(0, vec![-0.0, -1.0]), (1, vec![-2.0, -3.0]), (2, vec![-4.0, -5.0])]);
        let mut seen = Vec::new();
        let postponed = group_losses(&data, &logprobs, of_rows, |datum, _| {
            seen.push(datum.index);
            Ok((datum.index != 2).then(LossValue::default))
        });
        let rest = [[-4.0, -5.0], [-6.0, -7.0], [-8.0, -9.0]];
        let GroupOutput { datums, postponed } = postponed.unwrap();
        assert_eq!(postponed, rest);
        // Weights of 0.5 and 0.25 of entropies, and of 2 and 1 of divergences.
        let own = datums.iter().map(|output| (output.entropies.clone(), output.kl.clone(), output.value.sum));
        let expected = [(Some(vec![1.0, 2.0]), None, -1.0), (None, Some(vec![0.5, 3.0]), 4.0)];
        assert_eq!(own.collect::<Vec<_>>(), expected);
        assert_eq!(seen, [0, 1, 2]);
    }
}

//! Losses of a training pass, between its forward and its backward part.

use serde::{Deserialize, Serialize};
use trainyard_protocol::OpError;

use super::train::TrainGroup;
use crate::backend::Backend;
use crate::interrupt;
use crate::loss::{Evaluation, LossValue, PreparedDatum, evaluate_within};

/// The results of a datum.
#[derive(Serialize, Deserialize)]
pub(crate) struct TrainOutput {
    /// Log-probabilities of its targets, or with a scalar head the values of its positions.
    pub logprobs: Vec<f32>,
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

/// Losses per group, and the gradient with respect to every target's log-probability, zero for groups that do not train or
/// whose loss fails, and for postponed datums. A loss sees all tokens of its datum at once.
pub(super) fn losses<B: Backend>(
    groups: &[TrainGroup<'_, B>],
    logprobs: &[f32],
    mut allowance: usize,
) -> (GroupOutputs, Vec<f32>) {
    let mut d_logprobs = vec![0f32; logprobs.len()];
    let mut at = 0;
    let outputs = groups
        .iter()
        .map(|group| {
            let start = at;
            at += group.data.iter().map(|datum| datum.targets.len()).sum::<usize>();
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
            let output = group_losses(&group.data, &logprobs[start..at], evaluate)?;
            if group.grads.is_some() {
                let gradients = output.datums.iter().flat_map(|output| &output.value.dlogprobs);
                d_logprobs[start..at].iter_mut().zip(gradients).for_each(|(d, gradient)| *d = *gradient);
            }
            Ok(output)
        })
        .collect();
    (outputs, d_logprobs)
}

/// The losses of a group's datums. Those behind the first one that fails or is postponed are not evaluated.
fn group_losses(
    data: &[&PreparedDatum],
    logprobs: &[f32],
    mut evaluate: impl FnMut(&PreparedDatum, &[f32]) -> Result<Option<LossValue>, OpError>,
) -> Result<GroupOutput, FailedDatum> {
    let mut output = GroupOutput::default();
    let mut rest = logprobs;
    for (at, datum) in data.iter().enumerate() {
        let (own, behind) = rest.split_at(datum.targets.len());
        rest = behind;
        let value = match output.postponed.is_empty() {
            true => evaluate(datum, own).map_err(|error| FailedDatum { at, error })?,
            false => None,
        };
        match value {
            Some(value) => {
                output.datums.push(TrainOutput { logprobs: own.to_vec(), value, expert_tokens: Vec::new() });
            }
            None => output.postponed.push(own.to_vec()),
        }
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_loss_behind_the_first_one_that_fails_or_is_postponed_is_evaluated() {
        let datum = |index| PreparedDatum {
            index,
            tokens: vec![1, 2],
            targets: vec![1, 2],
            k: 1,
            shape: vec![2],
            weights: None,
            policy: None,
            values: None,
            custom: Vec::new(),
            images: Vec::new(),
        };
        let data: Vec<PreparedDatum> = (0..5).map(datum).collect();
        let data: Vec<&PreparedDatum> = data.iter().collect();
        let logprobs: Vec<f32> = (0..10).map(|at| -(at as f32)).collect();
        let mut seen = Vec::new();
        let outcome = group_losses(&data, &logprobs, |datum, logprobs| {
            seen.push((datum.index, logprobs.to_vec()));
            if datum.index == 2 { Err(OpError::user("no")) } else { Ok(Some(LossValue::default())) }
        });
        assert!(matches!(outcome, Err(FailedDatum { at: 2, .. })));
        assert_eq!(seen, [(0, vec![-0.0, -1.0]), (1, vec![-2.0, -3.0]), (2, vec![-4.0, -5.0])]);
        let mut seen = Vec::new();
        let postponed = group_losses(&data, &logprobs, |datum, _| {
            seen.push(datum.index);
            Ok((datum.index != 2).then(LossValue::default))
        });
        let found = postponed.map(|output| (output.datums.len(), output.postponed));
        let rest = [[-4.0, -5.0], [-6.0, -7.0], [-8.0, -9.0]];
        assert!(matches!(&found, Ok((2, behind)) if *behind == rest), "{found:?}");
        assert_eq!(seen, [0, 1, 2]);
    }
}

//! Metrics that are recorded with a training request and that its client does not receive.

use std::collections::BTreeMap;

use trainyard_protocol::{LossFn, PreparedBatch, PreparedDatum};
use trainyard_scheduler::{LEARNING_RATE, LOSS_PER_TOKEN};

/// Returns the sum of the weights of a batch's targets, each 1 where the client gives none. Targets of a
/// policy-gradient loss count if they were sampled: their advantage or the log-probability of the sampler is not 0.
/// `None` for a custom loss, which has no weights.
pub(super) fn weighted_tokens(batch: &PreparedBatch) -> Option<f64> {
    match batch.loss {
        LossFn::Custom(_) => None,
        _ => Some(batch.data.iter().map(weights_of).sum()),
    }
}

fn weights_of(datum: &PreparedDatum) -> f64 {
    let weight = |at: usize| datum.weights.as_ref().map_or(1.0, |weights| weights.get(at).copied().unwrap_or(0.0));
    let is_counted = |at: usize| match &datum.policy {
        Some(policy) => [&policy.advantages, &policy.logprobs].iter().any(|values| values.get(at) != Some(&0.0)),
        None => true,
    };
    (0..datum.targets.len()).filter(|at| is_counted(*at)).map(|at| f64::from(weight(at))).sum()
}

/// Returns the metrics of a pass with its loss per weighted token, if its weights have a positive sum.
pub(super) fn of_pass(metrics: &BTreeMap<String, f64>, weighted_tokens: Option<f64>) -> BTreeMap<String, f64> {
    let mut recorded = metrics.clone();
    if let (Some(weights), Some(sum)) = (weighted_tokens.filter(|weights| *weights > 0.0), metrics.get("loss:sum")) {
        recorded.insert(LOSS_PER_TOKEN.to_owned(), sum / weights);
    }
    recorded
}

/// Returns the metrics of an optimizer step with its learning rate.
pub(super) fn of_step(metrics: &BTreeMap<String, f64>, learning_rate: f64) -> BTreeMap<String, f64> {
    let mut recorded = metrics.clone();
    recorded.insert(LEARNING_RATE.to_owned(), learning_rate);
    recorded
}

#[cfg(test)]
mod tests {
    use trainyard_protocol::{ModelExtents, PolicyInputs};

    use super::*;

    fn batch(loss: LossFn, data: Vec<PreparedDatum>) -> PreparedBatch {
        PreparedBatch { loss, data, extents: ModelExtents { vocab_size: 8, context: 8 } }
    }

    fn datum(weights: Option<Vec<f32>>, policy: Option<PolicyInputs>) -> PreparedDatum {
        PreparedDatum {
            index: 0,
            tokens: vec![1, 2, 3],
            targets: vec![2, 3, 4],
            k: 1,
            shape: vec![3],
            weights,
            entropy_weights: None,
            kl_weights: None,
            policy,
            values: None,
            custom: Vec::new(),
            images: Vec::new(),
        }
    }

    fn per_token(metrics: &BTreeMap<String, f64>) -> Option<f64> {
        metrics.get(LOSS_PER_TOKEN).copied()
    }

    #[test]
    fn weights_of_all_targets_are_added_up() {
        let data = vec![datum(Some(vec![0.0, 0.5, 1.0]), None), datum(None, None)];
        assert_eq!(weighted_tokens(&batch(LossFn::CrossEntropy, data)), Some(4.5));
    }

    #[test]
    fn of_a_policy_what_was_not_sampled_has_no_weight() {
        let policy =
            PolicyInputs { logprobs: vec![0.0, -0.5, 0.0], advantages: vec![0.0, 0.0, 2.0], ratio_mask: Vec::new() };
        let sampled = |weights| batch(LossFn::ImportanceSampling, vec![datum(weights, Some(policy.clone()))]);
        assert_eq!(weighted_tokens(&sampled(None)), Some(2.0));
        assert_eq!(weighted_tokens(&sampled(Some(vec![3.0, 0.25, 0.5]))), Some(0.75));
    }

    #[test]
    fn a_loss_per_token_needs_weights() {
        let told = BTreeMap::from([("loss:sum".to_owned(), 9.0)]);
        assert_eq!(per_token(&of_pass(&told, Some(4.5))), Some(2.0));
        assert_eq!(of_pass(&told, Some(4.5))["loss:sum"], 9.0);
        for weights in [None, Some(0.0), Some(-1.0), Some(f64::NAN)] {
            assert_eq!(of_pass(&told, weights), told, "{weights:?}");
        }
        assert_eq!(of_pass(&BTreeMap::new(), Some(1.0)), BTreeMap::new());
    }
}

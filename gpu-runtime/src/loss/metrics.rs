//! Metrics that a loss reports in addition to its sum.

use std::collections::BTreeMap;

use trainyard_protocol::{LossFn, PolicyInputs, PreparedDatum};

use super::stable_reinforce::{MAX_RATIO, is_sampled, ratio};
use super::term::policy_targets;

/// Returns the metrics of a request, by `name:reduction`, from its datums and the log-probabilities of their targets,
/// `[N, k]`.
///
/// The names of `stable_reinforce`'s metrics state that the definition is this server's. They are, over sampled
/// positions, the largest ratio, and the means over datums of each datum's mean ratio and fraction of truncated ratios.
/// A client that combines several requests weights means by their numbers of datums, so the results agree.
pub fn metrics<'a>(loss: &LossFn, data: impl Iterator<Item = (&'a PreparedDatum, &'a [f32])>) -> BTreeMap<String, f64> {
    match loss {
        LossFn::StableReinforce { .. } => stable_reinforce(data),
        _ => BTreeMap::new(),
    }
}

fn stable_reinforce<'a>(data: impl Iterator<Item = (&'a PreparedDatum, &'a [f32])>) -> BTreeMap<String, f64> {
    let (mut truncated, mut mean, mut max, mut count) = (0.0, 0.0, 0.0_f64, 0_u32);
    for (datum, logprobs) in data {
        let ratios = datum.policy.as_ref().map(|inputs| Ratios::of(logprobs, inputs)).unwrap_or_default();
        truncated += ratios.truncated / ratios.count.max(1.0);
        // Of nothing that was sampled both policies are the same.
        mean += if ratios.count == 0.0 { 1.0 } else { ratios.sum / ratios.count };
        max = max.max(ratios.max);
        count += 1;
    }
    let count = f64::from(count.max(1));
    let named = [("truncated_fraction:mean", truncated / count), ("ratio:mean", mean / count), ("ratio:max", max)];
    named.into_iter().map(|(name, value)| (format!("stable_reinforce_trainyard/{name}"), value)).collect()
}

/// Statistics of ratios over the sampled positions of a datum.
#[derive(Default)]
struct Ratios {
    count: f64,
    truncated: f64,
    sum: f64,
    max: f64,
}

impl Ratios {
    fn of(logprobs: &[f32], inputs: &PolicyInputs) -> Self {
        let mut found = Self::default();
        for target in policy_targets(logprobs, inputs).filter(|target| is_sampled(*target)) {
            // A finite number for JSON, where it overflows.
            let ratio = ratio(target).min(f64::from(f32::MAX));
            found.count += 1.0;
            found.truncated += f64::from(u8::from(ratio > MAX_RATIO));
            found.sum += ratio;
            found.max = found.max.max(ratio);
        }
        found
    }
}

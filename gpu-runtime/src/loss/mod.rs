//! Loss functions: from per-token log-probabilities and a datum's inputs to a sum and its gradient.
//!
//! They are separate from the model's pass: the pass yields log-probabilities, [`evaluate`] yields
//! d(sum)/d(log-probability), and the pass goes backward from there. A loss sees all tokens of its datum at once: it is
//! a plain function from a datum to one [`Term`](term::Term) per target, with a file per family. All losses are sums
//! over tokens, candidates and datums; nothing is normalised.

mod batch;
mod cross_entropy;
mod custom;
mod dro;
mod evaluate;
mod gspo;
mod images;
mod inputs;
mod metrics;
mod ratio;
mod stable_reinforce;
mod term;
mod value;

pub(crate) use custom::MAX_PASS_ELEMENTS;
pub(crate) use evaluate::{Evaluation, evaluate_until, evaluate_within};

/// Elements that the loss of a datum may cost beside its targets: those of a custom loss.
pub(crate) fn most_elements(loss: &LossFn, datum: &PreparedDatum) -> usize {
    match loss {
        LossFn::Custom(_) => custom::most_elements(datum.targets.len()),
        _ => 0,
    }
}

pub use batch::{Preparer, prepare_batch};
pub use evaluate::{LossValue, evaluate};
pub use images::ImageRules;
pub use inputs::prepare;
pub use metrics::metrics;
pub use trainyard_protocol::{LossFn, PreparedBatch, PreparedDatum};

#[cfg(test)]
#[path = "gspo_tests.rs"]
mod gspo_tests;
#[cfg(test)]
#[path = "stable_reinforce_tests.rs"]
mod stable_reinforce_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod value_tests;

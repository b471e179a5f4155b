//! Samples of a run that are stored so that its owner can look at them.

use std::collections::BTreeMap;

use bytes::Bytes;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId};

use crate::Timestamp;

/// The key of a run's `user_metadata` that asks for its samples to be stored; the value says how many of the newest.
pub const STORE_SAMPLES: &str = "trainyard.store_samples";
/// Most samples of a run that are stored.
pub const MAX_STORED_SAMPLES: u32 = 1_000;

/// A value of [`STORE_SAMPLES`] that says no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("user_metadata.{STORE_SAMPLES}: {0:?} is not a whole number from 1 to {MAX_STORED_SAMPLES}")]
pub(crate) struct WrongSampleCount(String);

/// How many of its newest samples a run with this metadata stores; `None` when it asks for none.
pub(crate) fn stored_samples(user_metadata: &BTreeMap<String, String>) -> Result<Option<u32>, WrongSampleCount> {
    let Some(text) = user_metadata.get(STORE_SAMPLES) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| (1..=MAX_STORED_SAMPLES).contains(number));
    number.map(Some).ok_or_else(|| WrongSampleCount(text.clone()))
}

/// Of which run samples are stored, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleStorage {
    /// The run whose weights sample.
    pub run: RunId,
    /// Its newest samples that stay.
    pub newest: u32,
}

/// What is to be stored of a sample that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRunSample {
    /// Where to.
    pub storage: SampleStorage,
    /// Prompt and completions, encoded.
    pub content: Bytes,
}

/// A stored sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSample {
    /// The sample.
    pub request: RequestId,
    /// Where it was sampled.
    pub sampling_session: SamplingSessionId,
    /// When it ended.
    pub at: Timestamp,
    /// As [`NewRunSample::content`].
    pub content: Bytes,
}

/// Stored samples of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSamples {
    /// The newest ones, the newest first.
    pub samples: Vec<RunSample>,
    /// How many of the newest the run stores; `None` when it asked for none.
    pub newest: Option<u32>,
    /// How many there are.
    pub count: u64,
    /// Bytes of all that there are.
    pub bytes: u64,
    /// Whether the storage quota of the run's organisation has no room for more.
    pub quota_is_full: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_run_says_how_many_samples_it_stores() {
        let of = |text: &str| stored_samples(&BTreeMap::from([(STORE_SAMPLES.to_owned(), text.to_owned())]));
        assert_eq!(stored_samples(&BTreeMap::new()), Ok(None));
        assert_eq!((of("1"), of("1000")), (Ok(Some(1)), Ok(Some(1_000))));
        for wrong in ["0", "1001", "-1", "", "yes", "1.5", "99999999999"] {
            let refused = of(wrong).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("trainyard.store_samples: {wrong:?} is not a whole number")),
                "{refused}"
            );
        }
    }
}

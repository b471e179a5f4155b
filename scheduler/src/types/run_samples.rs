//! Samples of a run that are stored for its owner to look at.

use std::collections::BTreeMap;

use bytes::Bytes;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId};

use crate::Timestamp;

/// Key of a run's `user_metadata` that asks for its samples to be stored; the value is the number of newest samples to
/// keep.
pub const STORE_SAMPLES: &str = "trainyard.store_samples";
/// Maximum number of samples of a run that are stored.
pub const MAX_STORED_SAMPLES: u32 = 1_000;

/// Value of [`STORE_SAMPLES`] that is not a valid number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("user_metadata.{STORE_SAMPLES}: {0:?} is not a whole number from 1 to {MAX_STORED_SAMPLES}")]
pub(crate) struct WrongSampleCount(String);

/// Returns the number of newest samples that a run with this metadata stores, or `None` if it asks for none.
pub(crate) fn stored_samples(user_metadata: &BTreeMap<String, String>) -> Result<Option<u32>, WrongSampleCount> {
    let Some(text) = user_metadata.get(STORE_SAMPLES) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| (1..=MAX_STORED_SAMPLES).contains(number));
    number.map(Some).ok_or_else(|| WrongSampleCount(text.clone()))
}

/// Run whose samples are stored, and their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleStorage {
    /// Run whose weights are sampled from.
    pub run: RunId,
    /// Number of newest samples that are kept.
    pub newest: u32,
}

/// Content of a successful sample to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRunSample {
    /// Run and number of samples to keep.
    pub storage: SampleStorage,
    /// Encoded prompt and completions.
    pub content: Bytes,
}

/// A sample in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSample {
    /// Id of the sample's request.
    pub request: RequestId,
    /// Sampling session of the sample.
    pub sampling_session: SamplingSessionId,
    /// Time when the sample ended.
    pub at: Timestamp,
    /// Encoded prompt and completions: [`NewRunSample::content`].
    pub content: Bytes,
}

/// Stored samples of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSamples {
    /// Newest samples, in descending order of time.
    pub samples: Vec<RunSample>,
    /// Number of newest samples that the run stores; `None` if it asked for none.
    pub newest: Option<u32>,
    /// Number of stored samples.
    pub count: u64,
    /// Total size of the stored samples in bytes.
    pub bytes: u64,
    /// Whether the storage quota of the run's organisation is exhausted.
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

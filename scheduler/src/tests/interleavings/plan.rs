//! What the clients of a world ask of a run, and what is to come of it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId};

use crate::RequestKind;

pub(super) const RUNS: usize = 3;
/// Requests per run, its creation apart.
pub(super) const LENGTH: i64 = 5;
/// One more in the end, which shows what all before it left.
pub(super) const LAST: i64 = LENGTH + 1;

/// What comes of a request that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It changes the run's memory.
    Trains,
    /// It keeps weights for sampling, in memory.
    Saves,
    Fails,
}

/// What a run is asked.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Requests 1 to `LENGTH` in the order in which they arrive.
    arrivals: Vec<i64>,
    deeds: Vec<Deed>,
}

pub(super) fn script() -> impl Strategy<Value = Script> {
    let seq_ids: Vec<i64> = (1..=LENGTH).collect();
    let deed = prop_oneof![5 => Just(Deed::Trains), 2 => Just(Deed::Saves), 1 => Just(Deed::Fails)];
    let deeds = prop::collection::vec(deed, seq_ids.len());
    (Just(seq_ids).prop_shuffle(), deeds).prop_map(|(arrivals, deeds)| Script { arrivals, deeds })
}

/// A run that exists, and what it was asked so far.
pub(super) struct Plan {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    /// Its `model_seq_id`.
    pub(super) number: i64,
    script: Script,
    /// Requests by their places.
    pub(super) submitted: BTreeMap<i64, RequestId>,
}

impl Plan {
    pub(super) fn new(session: SessionId, (run, number): (RunId, i64), creation: RequestId, script: Script) -> Self {
        Self { session, run, number, script, submitted: BTreeMap::from([(0, creation)]) }
    }

    /// The request that arrives next.
    pub(super) fn next_arrival(&self) -> Option<i64> {
        self.script.arrivals.get(self.submitted.len() - 1).copied()
    }

    pub(super) fn deed(&self, seq_id: i64) -> Deed {
        match usize::try_from(seq_id - 1) {
            Ok(place) => self.script.deeds.get(place).copied().unwrap_or(Deed::Trains),
            Err(_) => Deed::Trains,
        }
    }

    pub(super) fn kind(&self, seq_id: i64) -> RequestKind {
        match self.deed(seq_id) {
            Deed::Trains | Deed::Fails => RequestKind::ForwardBackward,
            Deed::Saves => RequestKind::SaveWeightsForSampler,
        }
    }

    /// The key of the weights that a request keeps.
    pub(super) fn snapshot(&self, seq_id: i64) -> String {
        format!("{}/{seq_id}", self.run)
    }

    /// The `seq_id` of the sampling session of the weights that a request keeps.
    pub(super) fn sampler_number(&self, seq_id: i64) -> i64 {
        100 * (self.number + 1) + seq_id
    }

    pub(super) fn sampler(&self, seq_id: i64) -> SamplingSessionId {
        SamplingSessionId::of_session(&self.session, self.sampler_number(seq_id))
    }
}

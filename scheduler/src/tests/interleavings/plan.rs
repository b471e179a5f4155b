//! Requests that the clients of a world submit to a run, and their expected outcomes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trainyard_protocol::{RequestId, RunId, SamplingSessionId, SessionId};

use crate::RequestKind;

pub(super) const RUNS: usize = 3;
/// Requests per run, except its creation.
pub(super) const LENGTH: i64 = 5;
/// Position of a last request, which shows the state that all earlier ones left.
pub(super) const LAST: i64 = LENGTH + 1;

/// Effect of a request that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// The request changes the run's memory.
    Trains,
    /// The request keeps weights for sampling, in memory.
    Saves,
    Fails,
}

/// Requests that a run gets.
#[derive(Clone, Debug)]
pub(super) struct Script {
    /// Requests 1 to `LENGTH` in the order of their arrival.
    arrivals: Vec<i64>,
    deeds: Vec<Deed>,
}

pub(super) fn script() -> impl Strategy<Value = Script> {
    let seq_ids: Vec<i64> = (1..=LENGTH).collect();
    let deed = prop_oneof![5 => Just(Deed::Trains), 2 => Just(Deed::Saves), 1 => Just(Deed::Fails)];
    let deeds = prop::collection::vec(deed, seq_ids.len());
    (Just(seq_ids).prop_shuffle(), deeds).prop_map(|(arrivals, deeds)| Script { arrivals, deeds })
}

/// An existing run, and the requests submitted to it so far.
pub(super) struct Plan {
    pub(super) session: SessionId,
    pub(super) run: RunId,
    /// Client's number of the run, its `model_seq_id`.
    pub(super) number: i64,
    script: Script,
    /// Requests by their positions.
    pub(super) submitted: BTreeMap<i64, RequestId>,
}

impl Plan {
    pub(super) fn new(session: SessionId, run: RunId, number: i64, creation: RequestId, script: Script) -> Self {
        Self { session, run, number, script, submitted: BTreeMap::from([(0, creation)]) }
    }

    /// Returns the next request to arrive.
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

    /// Returns the key of the weights that a request keeps.
    pub(super) fn snapshot(&self, seq_id: i64) -> String {
        format!("{}/{seq_id}", self.run)
    }

    /// Returns the `seq_id` of the sampling session of the weights that a request keeps.
    pub(super) fn sampler_number(&self, seq_id: i64) -> i64 {
        100 * (self.number + 1) + seq_id
    }

    pub(super) fn sampler(&self, seq_id: i64) -> SamplingSessionId {
        SamplingSessionId::of_session(&self.session, self.sampler_number(seq_id))
    }
}

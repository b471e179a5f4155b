//! Limits the samples that a worker claims: enough for the sequences that its engine decodes together, and some that
//! wait for them.

use std::collections::BTreeSet;

use trainyard_protocol::{RequestId, SessionId, TenantId};

use super::effects::Fence;
use super::request::InFlightRequest;
use super::state::{Queue, StartCandidate};

/// Capacity for which a worker may claim now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClaimBudget {
    /// Number of sequences for which there is capacity.
    pub(crate) sequences: usize,
    /// Further sequences for sessions that have no sample waiting here. The engine shares its capacity among sessions,
    /// so another's long samples must not keep theirs from it.
    pub(crate) newcomers: usize,
    /// Tenants whose samples would only wait here because of their rate limits.
    pub(crate) paused: Vec<TenantId>,
    /// Sessions with samples that wait here.
    pub(crate) waiting: Vec<SessionId>,
}

impl Queue {
    /// Returns the capacity for which samples may be claimed now.
    pub(crate) fn claim_budget(&self) -> ClaimBudget {
        let not_admitted = self.samples_in_flight().filter(|(_, sample)| !sample.admitted);
        let waiting: BTreeSet<&SessionId> = not_admitted
            .map(|(_, sample)| &sample.session)
            .chain(self.samples.values().map(|sample| &sample.sampling.session))
            .collect();
        ClaimBudget {
            sequences: self.free_sequences(),
            newcomers: self.look_ahead(),
            paused: self.throttle.paused_tenants(),
            waiting: waiting.into_iter().cloned().collect(),
        }
    }

    /// Returns the number of sequences for which there is capacity. Samples that a rate limit holds back take none.
    fn free_sequences(&self) -> usize {
        let held_back: BTreeSet<i64> = self.throttle.waiting().filter_map(StartCandidate::sample).collect();
        let pending = self.samples.iter().filter(|(arrival, _)| !held_back.contains(arrival)).map(|(_, sample)| sample);
        let in_flight: usize = self.samples_in_flight().map(|(_, sample)| sample.sequences).sum();
        let here = in_flight + pending.map(|sample| sample.sequences).sum::<usize>();
        (self.decode_slots + self.look_ahead()).saturating_sub(here)
    }

    /// Returns the number of sequences that wait for occupied slots, so that slots never stay free for the time of a
    /// claim.
    fn look_ahead(&self) -> usize {
        self.decode_slots / 4
    }

    /// Records that samples with `taken` sequences were claimed, when there was capacity for `free` sequences. `more`
    /// tells whether the store has others.
    pub(crate) fn samples_claimed(&mut self, free: usize, taken: usize, more: bool) {
        self.unclaimed_samples = more;
        if self.free_sequences() + taken > free {
            // Some samples ended in the meantime.
            self.wake_for_claims();
        }
    }

    /// Returns whether a new sample may be claimed with its acceptance: there is capacity, and no other sample comes
    /// before it.
    pub(crate) fn claims_new_samples(&self) -> bool {
        !self.unclaimed_samples && self.free_sequences() > 0
    }

    /// Requests further claims, if the store has samples, once there is capacity for half of the look-ahead, or for
    /// sessions without waiting samples.
    pub(super) fn wake_for_claims(&mut self) {
        if !self.unclaimed_samples {
            return;
        }
        let ClaimBudget { sequences, waiting, .. } = self.claim_budget();
        let admitted = self.samples_in_flight().filter(|(_, sample)| sample.admitted);
        let drained =
            admitted.map(|(_, sample)| &sample.session).any(|session| waiting.binary_search(session).is_err());
        if sequences * 2 >= self.look_ahead() || drained {
            // Ask once, until the result of the claim is known.
            self.unclaimed_samples = false;
            self.effects.has_capacity = true;
        }
    }

    /// Releases claims on samples that the engine has yet to admit, the youngest first, up to `surplus` sequences, so
    /// that other workers can execute them.
    pub(crate) fn release_samples(&mut self, mut surplus: usize) {
        let pending = self.samples.values().filter(|sample| sample.sampling.snapshot.is_none());
        let in_flight = self.samples_in_flight().filter(|(_, sample)| sample.movable && !sample.admitted);
        let mut waiting: Vec<(RequestId, usize)> = pending
            .map(|sample| (sample.request.clone(), sample.sequences))
            .chain(in_flight.map(|(id, sample)| (id.clone(), sample.sequences)))
            .collect();
        // Ids are ordered by time.
        waiting.sort_unstable();
        for (request, sequences) in waiting.into_iter().rev() {
            if sequences > surplus {
                break;
            }
            surplus -= sequences;
            self.release_claim(request);
        }
    }

    /// Releases the claim on a sample, whether it is pending or in-flight.
    pub(super) fn release_claim(&mut self, request: RequestId) {
        if let Some(arrival) = self.arrivals.get(&request).copied() {
            self.release_sample(arrival);
        } else if let Some(InFlightRequest { fence: Fence::Sample(claim), .. }) = self.stop_sample(&request) {
            self.effects.released_samples.push((request, claim));
        }
    }
}

//! Samples: no order among them but that of arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use super::{Doom, Doomed, Fence, Fetch, Flight, Queue, Slot, Turn};
use crate::quotas::Cost;
use crate::{Decoded, RequestKind, SamplingSession, Timestamp, Work};

/// A sample that waits.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) request: RequestId,
    pub(crate) tenant: TenantId,
    pub(crate) seq_id: i64,
    /// Which of its claims it is here by.
    pub(crate) claim: i64,
    pub(crate) cost: Cost,
    pub(crate) sampling: Arc<SamplingSession>,
    pub(crate) payload: Slot,
}

/// A sample that this worker has claimed.
pub(crate) struct Claimed {
    pub(crate) arrival: i64,
    pub(crate) request: RequestId,
    pub(crate) tenant: TenantId,
    pub(crate) seq_id: i64,
    pub(crate) claim: i64,
    pub(crate) cost: Cost,
    pub(crate) sampling: Arc<SamplingSession>,
}

impl Queue {
    /// A durably accepted sample; `payload` is read back when it is not given.
    pub(crate) fn add_sample(&mut self, sample: Claimed, payload: Option<(Bytes, Decoded)>) {
        let Claimed { arrival, request, tenant, seq_id, claim, cost, sampling } = sample;
        let payload = self.hold(payload);
        self.pending(&sampling.session);
        self.arrivals.insert(request.clone(), arrival);
        *self.open_samples.entry(tenant.clone()).or_default() += 1;
        let snapshot = sampling.snapshot.clone();
        self.samples.insert(arrival, Sample { request, tenant, seq_id, claim, cost, sampling, payload });
        let absent = snapshot
            .and_then(|key| self.snapshots.get_mut(&key))
            .filter(|snapshot| !snapshot.ready && snapshot.dir.is_none());
        match absent {
            Some(snapshot) => {
                snapshot.waiting.insert(arrival);
                let run = snapshot.run.clone();
                self.want_restored(&run);
            }
            None => self.prepare_sample(arrival),
        }
    }

    /// Lists a sample for the worker, once its payload is in memory.
    pub(super) fn prepare_sample(&mut self, arrival: i64) {
        let Some(sample) = self.samples.get_mut(&arrival) else { return };
        match sample.payload {
            Slot::Held(..) => {
                self.ready_samples.insert(arrival);
                self.out.ready = true;
            }
            Slot::Stored => {
                sample.payload = Slot::Reading;
                self.out.fetches.push(Fetch::Sample { request: sample.request.clone() });
            }
            Slot::Reading => {}
        }
    }

    /// A sample's payload was read, or is lost.
    pub(crate) fn sample_read(&mut self, request: &RequestId, payload: Option<(Bytes, Decoded)>) {
        let Some(arrival) = self.arrivals.get(request).copied() else { return };
        let Some((bytes, decoded)) = payload else {
            return self.doom_sample(arrival, Doom::Failed(OpError::server("the stored request could not be read")));
        };
        self.held_bytes += bytes.len();
        if let Some(sample) = self.samples.get_mut(&arrival) {
            sample.payload = Slot::Held(bytes, decoded);
        }
        self.prepare_sample(arrival);
    }

    pub(super) fn start_sample(&mut self, arrival: i64, now: Timestamp) -> Option<Work> {
        let Sample { request, tenant, seq_id, claim, cost, sampling, payload } = self.samples.remove(&arrival)?;
        self.arrivals.remove(&request);
        self.released(&payload);
        let Slot::Held(payload, decoded) = payload else { return None };
        let flight = Flight {
            tenant,
            session: sampling.session.clone(),
            kind: RequestKind::Sample,
            run: None,
            sampling_session: Some(sampling.id.clone()),
            fence: Fence::Sample(claim),
            seq_id,
            replay: false,
            cost,
            started: now,
        };
        Some(self.launch(request, flight, seq_id, Some(&sampling), (payload, decoded)))
    }

    /// Ends a sample that waits.
    pub(super) fn doom_sample(&mut self, arrival: i64, doom: Doom) {
        if let Some(Sample { request, claim, .. }) = self.remove_sample(arrival) {
            self.out.doomed.push(Doomed { request, fence: Fence::Sample(claim), doom });
        }
    }

    /// Lets others have a sample that waits.
    pub(super) fn give_sample_back(&mut self, arrival: i64) {
        if let Some(Sample { request, claim, .. }) = self.remove_sample(arrival) {
            self.out.unclaimed.push((request, claim));
        }
    }

    /// Forgets a sample that waits.
    pub(super) fn remove_sample(&mut self, arrival: i64) -> Option<Sample> {
        let sample = self.samples.remove(&arrival)?;
        self.arrivals.remove(&sample.request);
        self.sample_gone(&sample.tenant);
        self.ready_samples.remove(&arrival);
        self.throttle.forget(&sample.tenant, &Turn::Sample(arrival));
        self.released(&sample.payload);
        if let Some(snapshot) = sample.sampling.snapshot.as_ref().and_then(|key| self.snapshots.get_mut(key)) {
            snapshot.waiting.remove(&arrival);
        }
        self.settled(&sample.sampling.session);
        Some(sample)
    }

    /// A sample of a tenant is here no more.
    pub(super) fn sample_gone(&mut self, tenant: &TenantId) {
        if let Some(open) = self.open_samples.get_mut(tenant) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.open_samples.remove(tenant);
            }
        }
    }

    /// Samples that are here, waiting or executed, by tenant.
    pub(crate) fn open_samples(&self) -> &BTreeMap<TenantId, u64> {
        &self.open_samples
    }

    /// Whether samples of a session can be executed here: the snapshot that they need, if any, is of a run of this
    /// worker.
    pub(crate) fn can_sample(&self, sampling: &SamplingSession) -> bool {
        sampling.snapshot.as_ref().is_none_or(|key| self.snapshots.contains_key(key))
    }

    /// How many samples may be taken from the store so that there are `most` here, and tenants of which none: those that
    /// their paces hold back. When there is no room, tenants of which none are here may have `newcomers` all the same:
    /// others' long samples are not to keep theirs from the worker.
    pub(crate) fn room_for_samples(&self, most: usize, newcomers: usize) -> (usize, Vec<TenantId>) {
        let mut without = self.paused_tenants();
        let room = most.saturating_sub(self.sample_count());
        if room > 0 {
            return (room, without);
        }
        without.extend(self.samples.values().map(|sample| sample.tenant.clone()));
        without.extend(self.flights.values().filter(|flight| flight.run.is_none()).map(|flight| flight.tenant.clone()));
        without.sort_unstable();
        without.dedup();
        (newcomers, without)
    }

    /// The samples that are here, waiting or executed.
    pub(crate) fn sample_ids(&self) -> Vec<RequestId> {
        let executed = self.flights.iter().filter(|(_, flight)| flight.run.is_none()).map(|(id, _)| id);
        self.arrivals.keys().chain(executed).cloned().collect()
    }

    /// Samples that are here, waiting or executed, but for those that their tenants' paces hold back.
    pub(crate) fn sample_count(&self) -> usize {
        let held_back = self.throttle.count_waiting(|turn| matches!(turn, Turn::Sample(_)));
        self.samples.len().saturating_sub(held_back)
            + self.flights.values().filter(|flight| flight.run.is_none()).count()
    }

    pub(super) fn cancel_samples_of(&mut self, session: &SessionId) {
        let of_session = self.samples.iter().filter(|(_, sample)| sample.sampling.session == *session);
        let arrivals: Vec<i64> = of_session.map(|(arrival, _)| *arrival).collect();
        for arrival in arrivals {
            self.doom_sample(arrival, Doom::Cancelled);
        }
    }

    /// Fails the samples that wait for snapshots of a run that can't be restored.
    pub(super) fn doom_samples_of_run(&mut self, run: &RunId, error: &OpError) {
        let mut arrivals: Vec<i64> = self
            .snapshots
            .values_mut()
            .filter(|snapshot| snapshot.run == *run && !snapshot.ready)
            .flat_map(|snapshot| std::mem::take(&mut snapshot.waiting))
            .collect();
        arrivals.sort_unstable();
        for arrival in arrivals {
            self.doom_sample(arrival, Doom::Failed(error.clone()));
        }
    }
}

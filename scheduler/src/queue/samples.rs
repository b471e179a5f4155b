//! Samples, which have no order except that of arrival.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use trainyard_protocol::{OpError, RequestId, RunId, SessionId, TenantId};

use super::effects::{Fence, Fetch, Rejected, Rejection};
use super::request::{InFlightRequest, PayloadSlot};
use super::state::{PendingSample, Queue, StartCandidate};
use crate::quotas::Cost;
use crate::{Decoded, RequestKind, SamplingSession, Timestamp, Work, WorkItem};

/// A sample that this worker has claimed.
pub(crate) struct ClaimedSample {
    pub(crate) arrival: i64,
    pub(crate) request: RequestId,
    pub(crate) tenant: TenantId,
    pub(crate) seq_id: i64,
    /// Number of the claim.
    pub(crate) claim: i64,
    pub(crate) cost: Cost,
    /// Number of completions that the sample asks for.
    pub(crate) sequences: usize,
    pub(crate) sampling: Arc<SamplingSession>,
}

impl Queue {
    /// Adds a durably accepted sample; `payload` is read back if it is absent.
    pub(crate) fn add_sample(&mut self, sample: ClaimedSample, payload: Option<(Bytes, Decoded)>) {
        let ClaimedSample { arrival, request, tenant, seq_id, claim, cost, sequences, sampling } = sample;
        let payload = self.hold_payload(payload);
        self.request_opened(&sampling.session);
        self.arrivals.insert(request.clone(), arrival);
        *self.open_samples.entry(tenant.clone()).or_default() += 1;
        let snapshot = sampling.snapshot.clone();
        self.samples
            .insert(arrival, PendingSample { request, tenant, seq_id, claim, cost, sequences, sampling, payload });
        let absent = snapshot
            .and_then(|key| self.snapshots.get_mut(&key))
            .filter(|snapshot| !snapshot.ready && snapshot.dir.is_none());
        match absent {
            Some(snapshot) => {
                snapshot.waiting.insert(arrival);
                let run = snapshot.run.clone();
                self.request_restore(&run);
            }
            None => self.prepare_sample(arrival),
        }
    }

    /// Lists a sample for the worker, once its payload is in memory.
    pub(super) fn prepare_sample(&mut self, arrival: i64) {
        let Some(sample) = self.samples.get_mut(&arrival) else { return };
        match sample.payload {
            PayloadSlot::Held(..) => {
                self.ready_samples.insert(arrival);
                self.effects.ready = true;
            }
            PayloadSlot::Stored => {
                sample.payload = PayloadSlot::Reading;
                self.effects.fetches.push(Fetch::Sample { request: sample.request.clone() });
            }
            PayloadSlot::Reading => {}
        }
    }

    /// Handles the payload of a sample, or the failure to read it.
    pub(crate) fn sample_read(&mut self, request: &RequestId, payload: Option<(Bytes, Decoded)>) {
        let Some(arrival) = self.arrivals.get(request).copied() else { return };
        let Some((bytes, decoded)) = payload else {
            let error = OpError::server("the stored request could not be read");
            return self.reject_sample(arrival, Rejection::Failed(error));
        };
        self.held_bytes += bytes.len();
        if let Some(sample) = self.samples.get_mut(&arrival) {
            sample.payload = PayloadSlot::Held(bytes, decoded);
        }
        self.prepare_sample(arrival);
    }

    pub(super) fn start_sample(&mut self, arrival: i64, now: Timestamp) -> Option<Work> {
        let PendingSample { request, tenant, seq_id, claim, cost, sequences, sampling, payload } =
            self.samples.remove(&arrival)?;
        self.arrivals.remove(&request);
        self.free_payload(&payload);
        let PayloadSlot::Held(payload, decoded) = payload else { return None };
        let in_flight = InFlightRequest {
            tenant,
            session: sampling.session.clone(),
            kind: RequestKind::Sample,
            run: None,
            sampling_session: Some(sampling.id.clone()),
            fence: Fence::Sample(claim),
            seq_id,
            replay: false,
            cost,
            sequences,
            movable: sampling.snapshot.is_none(),
            admitted: false,
            started: now,
        };
        Some(self.launch(request, in_flight, seq_id, Some(&sampling), payload, decoded))
    }

    /// Ends a pending sample without executing it.
    pub(super) fn reject_sample(&mut self, arrival: i64, rejection: Rejection) {
        if let Some(PendingSample { request, claim, sampling, .. }) = self.remove_sample(arrival) {
            self.effects.reject(&sampling.session, request, Fence::Sample(claim), rejection);
        }
    }

    /// Fails a claimed sample that can't be executed and is not in the queue.
    pub(crate) fn fail_claimed(&mut self, request: RequestId, claim: i64, error: OpError) {
        self.effects.rejected.push(Rejected { request, fence: Fence::Sample(claim), error });
    }

    /// Releases the claim on a pending sample, so that other workers can take it.
    pub(super) fn release_sample(&mut self, arrival: i64) {
        if let Some(PendingSample { request, claim, .. }) = self.remove_sample(arrival) {
            self.effects.released_samples.push((request, claim));
        }
    }

    /// Removes a pending sample, which does not end by this.
    pub(super) fn remove_sample(&mut self, arrival: i64) -> Option<PendingSample> {
        let sample = self.samples.remove(&arrival)?;
        self.arrivals.remove(&sample.request);
        self.sample_closed(&sample.tenant);
        self.ready_samples.remove(&arrival);
        self.throttle.forget(&sample.tenant, &StartCandidate::Sample(arrival));
        self.free_payload(&sample.payload);
        self.wake_for_claims();
        if let Some(snapshot) = sample.sampling.snapshot.as_ref().and_then(|key| self.snapshots.get_mut(key)) {
            snapshot.waiting.remove(&arrival);
        }
        self.request_closed(&sample.sampling.session);
        Some(sample)
    }

    /// Drops a sample that ended elsewhere, whether it is pending or in-flight.
    pub(crate) fn drop_sample(&mut self, request: &RequestId) {
        if let Some(arrival) = self.arrivals.get(request).copied() {
            self.remove_sample(arrival);
        } else {
            self.stop_sample(request);
        }
    }

    /// Takes a sample from the worker.
    pub(super) fn stop_sample(&mut self, request: &RequestId) -> Option<InFlightRequest> {
        self.in_flight.get(request).filter(|in_flight| in_flight.sampling_session.is_some())?;
        let in_flight = self.in_flight.remove(request)?;
        self.sample_closed(&in_flight.tenant);
        self.signal(WorkItem::Cancel(request.clone()));
        self.request_closed(&in_flight.session);
        self.wake_for_claims();
        Some(in_flight)
    }

    /// Cancels the pending and in-flight samples of a session that ended.
    pub(super) fn cancel_samples_of(&mut self, session: &SessionId) {
        let pending = self.samples.iter().filter(|(_, sample)| sample.sampling.session == *session);
        for arrival in pending.map(|(arrival, _)| *arrival).collect::<Vec<_>>() {
            self.reject_sample(arrival, Rejection::Cancelled);
        }
        let in_flight = self.samples_in_flight().filter(|(_, sample)| sample.session == *session);
        let mut requests: Vec<RequestId> = in_flight.map(|(id, _)| id.clone()).collect();
        requests.sort_unstable();
        for request in requests {
            if let Some(InFlightRequest { fence, .. }) = self.stop_sample(&request) {
                self.effects.reject(session, request, fence, Rejection::Cancelled);
            }
        }
    }

    /// Records that the engine has admitted these samples. Returns those that were not yet admitted.
    pub(crate) fn admit_samples(&mut self, requests: &[RequestId], now: Timestamp) -> Vec<RequestId> {
        let mut admitted = requests.to_vec();
        admitted.retain(|request| match self.in_flight.get_mut(request) {
            Some(sample) if !sample.admitted => {
                (sample.admitted, sample.started) = (true, now);
                true
            }
            _ => false,
        });
        if !admitted.is_empty() {
            self.wake_for_claims();
        }
        admitted
    }

    /// Fails the samples that wait for snapshots of a run that can't be restored.
    pub(super) fn reject_samples_of_run(&mut self, run: &RunId, error: &OpError) {
        let mut arrivals: Vec<i64> = self
            .snapshots
            .values_mut()
            .filter(|snapshot| snapshot.run == *run && !snapshot.ready)
            .flat_map(|snapshot| std::mem::take(&mut snapshot.waiting))
            .collect();
        arrivals.sort_unstable();
        for arrival in arrivals {
            self.reject_sample(arrival, Rejection::Failed(error.clone()));
        }
    }

    pub(super) fn sample_closed(&mut self, tenant: &TenantId) {
        if let Some(open) = self.open_samples.get_mut(tenant) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.open_samples.remove(tenant);
            }
        }
    }
}

/// Questions about the samples in the queue and the capacity for more.
impl Queue {
    /// Returns whether a sample is pending or in flight here.
    pub(crate) fn has_sample(&self, request: &RequestId) -> bool {
        self.arrivals.contains_key(request) || self.in_flight.contains_key(request)
    }

    /// Returns the numbers of pending and in-flight samples, by tenant.
    pub(crate) fn open_samples(&self) -> &BTreeMap<TenantId, u64> {
        &self.open_samples
    }

    /// Returns whether samples of a session can be executed here: their snapshot, if any, must belong to a run of this
    /// worker.
    pub(crate) fn can_sample(&self, sampling: &SamplingSession) -> bool {
        sampling.snapshot.as_ref().is_none_or(|key| self.snapshots.contains_key(key))
    }

    /// Returns the pending and in-flight samples.
    pub(crate) fn sample_ids(&self) -> Vec<RequestId> {
        self.arrivals.keys().chain(self.samples_in_flight().map(|(id, _)| id)).cloned().collect()
    }

    pub(super) fn samples_in_flight(&self) -> impl Iterator<Item = (&RequestId, &InFlightRequest)> {
        self.in_flight.iter().filter(|(_, request)| request.run.is_none())
    }
}

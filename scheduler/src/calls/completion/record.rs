//! Records a completion: the request's end and its effects, under the worker's lease.

use std::path::PathBuf;
use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, RunId, SessionId};

use super::effects::EffectWrites;
use super::outcome::CompletionOutcome;
use crate::calls::run_samples::{EndedSample, store_samples};
use crate::context::core::{Core, Subject, Urgency};
use crate::context::origin::Stages;
use crate::lease::{ReleaseRun, holds_lease, sample_claim};
use crate::processes::signals::Signal;
use crate::queue::{Fence, InFlightRequest, creation_failed};
use crate::quotas::admission;
use crate::store::blobs::StoredBytes;
use crate::store::db::{Conn, RowScope};
use crate::store::results::{self, EndedRequest, RequestEnd, SampleEnd};
use crate::store::{leases, runs, usage};
use crate::types::Replays;
use crate::writer::write::Write;
use crate::{Effect, Error, Measured, Outcome, Poll, Quota, RequestState, Timestamp, Tokens};

/// Records outcome and effects of a request.
pub(super) struct RecordCompletion {
    request: RequestId,
    finished: InFlightRequest,
    outcome: CompletionOutcome,
    /// Usage and measurements of the request, if it succeeds.
    measured: Measured,
    /// Metrics as JSON, once they are encoded.
    metrics: Option<String>,
    /// Location of the result, once it is stored.
    result: Option<StoredBytes>,
    effects: Vec<Effect>,
    /// Time when the engine finished.
    executed: Timestamp,
    given_up: GivenUp,
}

/// Whether the content of a completion was given up, because the database refuses it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    No,
    /// The request ends as failed.
    Result,
    /// The request ends as failed, and the worker's memory, which it changed, is discarded with its lease.
    ResultAndMemory,
}

impl RecordCompletion {
    pub(super) fn new(
        request: RequestId,
        finished: InFlightRequest,
        outcome: CompletionOutcome,
        measured: Measured,
        effects: Vec<Effect>,
        executed: Timestamp,
    ) -> Self {
        Self {
            request,
            finished,
            outcome,
            measured,
            metrics: None,
            result: None,
            effects,
            executed,
            given_up: GivenUp::No,
        }
    }

    /// Returns a name for the result that no other worker uses, so that a result under an outdated lease can't replace
    /// theirs.
    fn result_name(&self) -> String {
        let (Fence::Run(_, number) | Fence::Sample(number)) = &self.finished.fence;
        format!("{}.result-{number}", self.request)
    }

    /// Returns the request's end with this outcome.
    fn end<'a>(&'a self, outcome: &'a Outcome) -> Result<RequestEnd<'a>, Error> {
        Ok(match outcome {
            Outcome::Succeeded { encoding, payload } => {
                let result = self.result.as_ref().ok_or(Error::Store("complete a request"))?;
                RequestEnd::Succeeded {
                    encoding: *encoding,
                    result,
                    size: payload.len() as u64,
                    metrics: self.metrics.as_deref(),
                    replays: self.replays(),
                }
            }
            Outcome::Failed(error) => RequestEnd::Failed(error),
        })
    }

    /// Returns whether the request is executed again after a restart, because it changed the worker's memory.
    fn replays(&self) -> bool {
        let makes_snapshot = |effect: &Effect| matches!(effect, Effect::SamplingSession(new) if new.snapshot.is_some());
        match self.finished.kind.replays() {
            Replays::Never => false,
            Replays::All => true,
            Replays::InMemory => self.effects.iter().any(makes_snapshot),
        }
    }
}

fn poll_of(outcome: Outcome) -> Poll {
    match outcome {
        Outcome::Succeeded { encoding, payload } => Poll::Succeeded { encoding, payload },
        Outcome::Failed(error) => Poll::Failed(error),
    }
}

/// Result of recording a completion.
pub(super) enum Recorded {
    /// The completion was recorded; the folders are no longer needed.
    Ended(Box<EndedRequest>, Poll, Vec<PathBuf>),
    /// The request had already ended.
    Known,
    /// The lease has passed to another worker, whose completion will count.
    Stale,
}

impl Write for RecordCompletion {
    type Output = Recorded;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn subjects(&self) -> Vec<Subject> {
        match (&self.finished.run, &self.finished.sampling_session) {
            (Some(run), _) => vec![Subject::Run(run.clone())],
            (None, Some(session)) => vec![Subject::Request(self.request.clone()), Subject::Samples(session.clone())],
            (None, None) => Vec::new(),
        }
    }

    // Ready unless the result goes to a file.
    fn is_ready(&mut self) -> bool {
        match self.outcome.encoded() {
            Ok(Outcome::Succeeded { payload, .. }) if self.result.is_none() => {
                self.result = StoredBytes::in_row(&payload);
                self.result.is_some()
            }
            _ => true,
        }
    }

    async fn prepare(&mut self, core: &Core) -> Result<(), Error> {
        if let Outcome::Succeeded { payload, .. } = self.outcome.encoded()?
            && self.result.is_none()
        {
            self.result = Some(core.blobs.put(self.result_name(), &payload).await?);
        }
        Ok(())
    }

    fn counts(&self, core: &Core) -> Vec<String> {
        let stores =
            self.measured.sample.is_some() || self.effects.iter().any(|effect| matches!(effect, Effect::Checkpoint(_)));
        if stores { admission::counted(core, &self.finished.tenant, Quota::StorageBytes) } else { Vec::new() }
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.finished.sampling_session.iter().map(|_| self.finished.session.clone()).collect()
    }

    // Returns whether the write may join others: a sample without effects may, unless its stored content counts against
    // a quota.
    fn joins(&self, core: &Core) -> bool {
        let joins = self.finished.sampling_session.is_some() && self.effects.is_empty() && core.worker_id().is_some();
        joins && self.counts(core).is_empty()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Recorded, Error> {
        let now = core.now();
        self.encode_metrics()?;
        if !holds_lease(conn, core, &self.finished.fence).await? {
            return Ok(Recorded::Stale);
        }
        let reported = self.outcome.encoded()?;
        let Self { request, finished, effects, .. } = &*self;
        let writes = EffectWrites { request, finished, effects, error: self.outcome.error() };
        let (outcome, discarded) = writes.apply(conn, core, reported, now).await?;
        let end = self.end(&outcome)?;
        let claim = sample_claim(core, &finished.fence);
        let ended = results::end_request(conn, request, &end, claim, now).await?;
        let Some(ended) = ended else { return Ok(Recorded::Known) };
        let poll = poll_of(outcome);
        self.record_usage(conn, &poll, now).await?;
        if matches!(poll, Poll::Succeeded { .. }) {
            store_samples(conn, core, &self.stored_sample().into_iter().collect::<Vec<_>>(), now).await?;
        }
        if let Some(run) = &ended.creates {
            match &poll {
                Poll::Failed(cause) => runs::fail_run(conn, run, &creation_failed(run, cause), false).await?,
                _ => runs::ready_run(conn, run).await?,
            };
        }
        // In the same transaction: results of later requests, which were computed from that memory, are stale.
        if let Some((run, epoch)) = self.memory_given_up()
            && let Some(worker) = core.worker_id()
        {
            leases::release_run(conn, worker, run, epoch).await?;
        }
        Ok(Recorded::Ended(Box::new(ended), poll, discarded))
    }

    async fn apply_all(
        mut writes: Vec<&mut Self>,
        conn: &mut Conn,
        core: &Core,
    ) -> Result<Vec<Result<Recorded, Error>>, Error> {
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in &mut writes {
            outcomes.push(write.outcome.encoded()?);
        }
        let mut samples = Vec::with_capacity(writes.len());
        for (write, outcome) in writes.iter().zip(&outcomes) {
            let InFlightRequest { sampling_session, fence, seq_id, .. } = &write.finished;
            if let (Some(session), Some(claim)) = (sampling_session, sample_claim(core, fence)) {
                let end = write.end(outcome)?;
                samples.push(SampleEnd { id: &write.request, end, claim, session, seq_id: *seq_id });
            }
        }
        let now = core.now();
        let mut ended = results::end_samples(conn, &samples, now).await?;
        drop(samples);
        let succeeded =
            writes.iter().zip(&outcomes).filter(|(_, outcome)| matches!(outcome, Outcome::Succeeded { .. }));
        let used = succeeded.filter(|(write, _)| ended.contains_key(&write.request) && write.measured.used.total() > 0);
        let used: Vec<(&RequestId, Tokens)> = used.map(|(write, _)| (&write.request, write.measured.used)).collect();
        usage::insert_usage(conn, &used, now).await?;
        drop(used);
        let succeeded = writes.iter().zip(&outcomes);
        let succeeded = succeeded.filter(|(write, outcome)| {
            matches!(outcome, Outcome::Succeeded { .. }) && ended.contains_key(&write.request)
        });
        let stored: Vec<EndedSample<'_>> = succeeded.filter_map(|(write, _)| write.stored_sample()).collect();
        store_samples(conn, core, &stored, now).await?;
        drop(stored);
        let mut outputs = Vec::with_capacity(writes.len());
        for (write, outcome) in writes.into_iter().zip(outcomes) {
            outputs.push(match ended.remove(&write.request) {
                Some(ended) => Ok(Recorded::Ended(Box::new(ended), poll_of(outcome), Vec::new())),
                None => write.apply(conn, core).await,
            });
        }
        Ok(outputs)
    }

    fn signals(&self, output: &Recorded, signals: &mut Vec<Signal>) {
        if let Recorded::Ended(ended, ..) = output {
            ended.signals(&self.request, signals);
            signals.extend(self.recorded_metrics(ended).cloned().map(Signal::Metrics));
            signals.extend(self.stored_for(ended).cloned().map(Signal::StoredSamples));
            signals.extend(self.memory_given_up().map(|_| Signal::Released));
        }
    }

    fn simplify(&mut self) -> bool {
        if self.given_up != GivenUp::No {
            return false;
        }
        let changed_memory = self.outcome.error().is_none() && self.replays();
        self.given_up = if changed_memory { GivenUp::ResultAndMemory } else { GivenUp::Result };
        let error = OpError::server("the result could not be stored: the database refuses it");
        self.outcome = CompletionOutcome::Encoded(Outcome::Failed(error));
        self.effects.retain(|effect| matches!(effect, Effect::RunFailed(_)));
        (self.measured, self.metrics, self.result) = (Measured::default(), None, None);
        true
    }

    fn abandoned(&mut self, core: &Arc<Core>) {
        // Nothing of the run may become durable without it. It is restored, and the request is executed again.
        if let Fence::Run(run, epoch) = &self.finished.fence {
            core.with_queue(|queue| queue.revoke_run(run, *epoch));
            core.record(ReleaseRun { run: run.clone(), epoch: *epoch });
        }
    }

    fn committed(&mut self, output: &Recorded, core: &Arc<Core>) {
        match output {
            Recorded::Ended(ended, poll, discarded) => {
                // Clients fetch results from the processes that serve them.
                if core.options.serves_clients {
                    core.results.put(self.finished.tenant.clone(), self.request.clone(), poll.clone());
                }
                let InFlightRequest { cost, started, .. } = &self.finished;
                let stages = Stages {
                    accepted: cost.accepted,
                    started: *started,
                    executed: self.executed,
                    committed: core.now(),
                };
                core.announce_end(&self.request, ended, Some(stages));
                if let Some(run) = self.recorded_metrics(ended) {
                    core.waiters.metrics_recorded(run);
                }
                if let Some(run) = self.stored_for(ended) {
                    core.waiters.stored_samples_changed(run);
                }
                if let Some((run, epoch)) = self.memory_given_up() {
                    core.with_queue(|queue| queue.revoke_run(run, epoch));
                    core.wake_claims_of_released();
                }
                for dir in discarded.iter().cloned() {
                    let shared = Arc::clone(core);
                    core.runtime.spawn(async move { shared.remove_folder(dir).await });
                }
            }
            // It may have ended by this very completion if the answer to its commit was lost.
            Recorded::Known => core.waiters.request_ended(&self.request),
            Recorded::Stale => self.stale(core),
        }
    }
}

impl RecordCompletion {
    fn encode_metrics(&mut self) -> Result<(), Error> {
        if let Some(metrics) = self.measured.metrics.take() {
            // JSON has neither NaN nor infinity: both become null.
            let text = serde_json::to_string(&metrics).map_err(|error| Error::store("record metrics", error))?;
            self.metrics = Some(text);
        }
        Ok(())
    }

    /// Returns the run, with the epoch of its lease, whose state in memory contains what was given up.
    fn memory_given_up(&self) -> Option<(&RunId, i64)> {
        match &self.finished.fence {
            Fence::Run(run, epoch) if self.given_up == GivenUp::ResultAndMemory => Some((run, *epoch)),
            _ => None,
        }
    }

    /// Returns the run whose metrics grew by this end.
    fn recorded_metrics<'a>(&self, ended: &'a EndedRequest) -> Option<&'a RunId> {
        ended.run.as_ref().filter(|_| self.metrics.is_some() && ended.state == RequestState::Succeeded)
    }

    /// Returns the content to store of a successful sample.
    fn stored_sample(&self) -> Option<EndedSample<'_>> {
        let InFlightRequest { tenant, sampling_session, .. } = &self.finished;
        let (session, new) = (sampling_session.as_ref()?, self.measured.sample.as_ref()?);
        Some(EndedSample { tenant, request: &self.request, session, new })
    }

    /// Returns the run for which a sample with this end may be stored.
    fn stored_for(&self, ended: &EndedRequest) -> Option<&RunId> {
        let new = self.measured.sample.as_ref().filter(|_| ended.state == RequestState::Succeeded);
        new.map(|new| &new.storage.run)
    }

    /// Records the usage of the request, which has just ended.
    async fn record_usage(&self, conn: &mut Conn, poll: &Poll, now: Timestamp) -> Result<(), Error> {
        if self.measured.used.total() == 0 || !matches!(poll, Poll::Succeeded { .. }) {
            return Ok(());
        }
        usage::insert_usage(conn, &[(&self.request, self.measured.used)], now).await
    }

    fn stale(&self, core: &Arc<Core>) {
        let request = &self.request;
        match &self.finished.fence {
            Fence::Run(run, epoch) => {
                tracing::warn!(%request, %run, epoch, "stale completion ignored: lease epoch superseded");
                core.with_queue(|queue| queue.revoke_run(run, *epoch));
            }
            Fence::Sample(claim) => tracing::warn!(%request, claim, "stale completion ignored: claim superseded"),
        }
    }
}

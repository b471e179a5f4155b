//! The worker's side; called from a plain thread.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use trainyard_protocol::{OpError, RequestId, RunId, TenantId};

use crate::core::Core;
use crate::leases::ReleaseSamples;
use crate::queue::{Doom, Doomed, Fence, Flight, Queue, creation_failed, session_ended};
use crate::quotas::Level;
use crate::signals::Signal;
use crate::store::blobs::Stored;
use crate::store::db::{Conn, sql};
use crate::store::results::{self, End, Ended, SampleEnd};
use crate::store::{checkpoints, failed, folders, leases, quotas, requests, runs, sampling, sessions};
use crate::waiters::lock;
use crate::writer::{Urgency, Write};
use crate::{Effect, Encode, Error, Outcome, Poll, RequestKind, RequestState, Scheduler, Timestamp, WorkItem};

impl Scheduler {
    /// What is ready now: heads of runs in seq order (one in flight per run), samples in arrival order.
    pub fn take_work(&self) -> Vec<WorkItem> {
        self.core.with_queue(|queue| {
            let items = queue.take(self.core.now());
            self.note_started(queue, &items);
            let requests: Vec<RequestId> = items.iter().filter_map(newly_started).collect();
            if !requests.is_empty() {
                let spent = spent(&self.core, queue, &requests);
                self.core.record(Started { requests, spent });
            }
            items
        })
    }

    /// As [`Self::take_work`], but blocks the calling thread until something is ready or time is up.
    pub fn wait_work(&self, timeout: Duration) -> Vec<WorkItem> {
        let start = Instant::now();
        loop {
            let items = self.take_work();
            let left = timeout.saturating_sub(start.elapsed());
            if !items.is_empty() || left.is_zero() {
                return items;
            }
            let queue = lock(&self.core.queue);
            let now = self.core.now();
            if !queue.is_ready(now) {
                let left = queue.wakes_at(now).map_or(left, |at| left.min(now.until(at)));
                drop(self.core.ready.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn note_started(&self, queue: &Queue, items: &[WorkItem]) {
        for item in items {
            let WorkItem::Start(work) = item else { continue };
            let Some(flight) = queue.flight(&work.request) else { continue };
            let Flight { tenant, kind, cost, started, replay, .. } = flight;
            if *replay {
                self.core.metrics.replayed.inc();
            } else if !kind.is_upkeep() {
                self.core.metrics.started(*kind, tenant, cost.accepted.until(*started));
            }
            tracing::debug!(
                request = %work.request, run = work.run.as_ref().map(tracing::field::display), kind = kind.as_str(),
                seq_id = work.seq_id, replay, "a request started"
            );
        }
    }

    /// Reports what came of a request. Returns at once; the run's next request is ready now, and
    /// waiters wake after the commit that holds outcome and effects together. What the worker does not
    /// hold, as a cancelled sample, is ignored.
    pub fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>) {
        self.end(request, Told::Ready(outcome), effects);
    }

    /// As [`Self::complete`], for a success whose result is still to be encoded.
    pub fn complete_encoded_by(&self, request: RequestId, encode: Encode) {
        self.end(request, Told::Later(encode), Vec::new());
    }

    fn end(&self, request: RequestId, told: Told, effects: Vec<Effect>) {
        self.core.with_queue(|queue| {
            let error = match &told {
                Told::Ready(Outcome::Failed(error)) => Some(error),
                Told::Ready(Outcome::Succeeded { .. }) | Told::Later(_) => None,
            };
            let Some(flight) = queue.finish(&request, error) else {
                return tracing::debug!(%request, "a completion came for a request that is not in flight");
            };
            if flight.kind.is_upkeep() && !flight.replay {
                return self.core.upkept(queue, &flight, effects);
            }
            if flight.replay {
                return;
            }
            note_effects(queue, &flight, &effects, error);
            if let Some(run) = &flight.run {
                queue.keep_up(run);
            }
            self.core.record(Complete { request, flight, told: Some(told), result: None, effects });
        });
    }
}

fn newly_started(item: &WorkItem) -> Option<RequestId> {
    match item {
        WorkItem::Start(work) if !work.replay && !work.kind.is_upkeep() => Some(work.request.clone()),
        _ => None,
    }
}

/// What the queue has to know of effects.
fn note_effects(queue: &mut Queue, flight: &Flight, effects: &[Effect], error: Option<&OpError>) {
    for effect in effects {
        match (effect, &flight.run) {
            (Effect::SamplingSession(new), Some(run)) => {
                if let Some(key) = &new.snapshot {
                    queue.add_snapshot(&flight.session, key.clone(), run.clone(), true);
                }
            }
            (Effect::RunFailed(run), _) if flight.kind != RequestKind::CreateModel => {
                let failure = unusable(run, error);
                tracing::warn!(%run, cause = %failure, "a run can't be used any more");
                queue.fail_run(run, failure);
            }
            _ => {}
        }
    }
}

fn unusable(run: &RunId, cause: Option<&OpError>) -> OpError {
    let text = format!("training run {run} can't be used any more");
    OpError::server(cause.map_or(text.clone(), |cause| format!("{text}: {}", cause.message)))
}

/// Tokens of requests that just started, by tenants that have a pace.
fn spent(core: &Core, queue: &Queue, requests: &[RequestId]) -> BTreeMap<TenantId, u64> {
    let mut spent = BTreeMap::new();
    for Flight { tenant, cost, .. } in requests.iter().filter_map(|request| queue.flight(request)) {
        if cost.tokens > 0 && core.options.policies.of(tenant).tokens_per_minute.is_some() {
            *spent.entry(tenant.clone()).or_insert(0) += cost.tokens;
        }
    }
    spent
}

/// The worker has these requests.
struct Started {
    requests: Vec<RequestId>,
    /// What they take of their tenants' paces. Should it be written twice, it is taken twice.
    spent: BTreeMap<TenantId, u64>,
}

impl Write for Started {
    type Output = Vec<Level>;
    const URGENCY: Urgency = Urgency::Note;

    fn counts(&self, _core: &Core) -> Vec<String> {
        self.spent.keys().map(ToString::to_string).collect()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Vec<Level>, Error> {
        let Some(worker) = core.worker_id() else { return Ok(Vec::new()) };
        requests::start_requests(conn, worker, &self.requests).await?;
        let now = core.now();
        let mut levels = Vec::with_capacity(self.spent.len());
        for (tenant, tokens) in &self.spent {
            let Some(rate) = core.options.policies.of(tenant).tokens_per_minute else { continue };
            levels.push(quotas::spend(conn, tenant, rate, *tokens, now).await?);
        }
        Ok(levels)
    }

    fn committed(&mut self, levels: &Vec<Level>, core: &Arc<Core>) {
        let now = core.now();
        core.with_queue(|queue| {
            for ((tenant, tokens), level) in self.spent.iter().zip(levels) {
                queue.tell_pace(tenant, Some(*level), *tokens, now);
            }
        });
    }
}

/// What the worker told of a request.
enum Told {
    Ready(Outcome),
    Later(Encode),
}

impl Told {
    fn outcome(self) -> Outcome {
        match self {
            Self::Ready(outcome) => outcome,
            Self::Later(encode) => encode(),
        }
    }
}

/// Outcome and effects of a request.
struct Complete {
    request: RequestId,
    flight: Flight,
    told: Option<Told>,
    /// Where the result is, once it is prepared.
    result: Option<Stored>,
    effects: Vec<Effect>,
}

impl Complete {
    /// Encoded when it is first asked for, and kept for the case that it is written again.
    fn outcome(&mut self) -> Result<Outcome, Error> {
        let told = self.told.take().map(Told::outcome);
        let told = told.ok_or_else(|| Error::store("complete a request", "its outcome is gone"))?;
        self.told = Some(Told::Ready(told.clone()));
        Ok(told)
    }

    /// A name for the result that no other worker gives to one: who has lost the lease must not replace it.
    fn result_name(&self) -> String {
        let (Fence::Run(_, number) | Fence::Sample(number)) = &self.flight.fence;
        format!("{}.result-{number}", self.request)
    }

    /// The outcome, unless an effect contradicts what the store holds: then the request failed. And the folders
    /// that nothing needs now.
    async fn outcome_with_effects(
        &mut self,
        conn: &mut Conn,
        core: &Core,
        now: Timestamp,
    ) -> Result<(Outcome, Vec<PathBuf>), Error> {
        let told = self.outcome()?;
        if self.effects.is_empty() {
            return Ok((told, Vec::new()));
        }
        execute(conn, "SAVEPOINT effects").await?;
        let outcome = match self.apply_effects(conn, core, now).await {
            Ok(discarded) => (told, discarded),
            // Not the effect's fault: the whole is tried again.
            Err(error @ (Error::Store(_) | Error::Unavailable(_) | Error::Conflict(_))) => return Err(error),
            Err(error) => {
                execute(conn, "ROLLBACK TO SAVEPOINT effects").await?;
                (Outcome::Failed(OpError::user(error.to_string())), self.written())
            }
        };
        execute(conn, "RELEASE SAVEPOINT effects").await?;
        Ok(outcome)
    }

    /// Why the request failed, once that is known.
    fn error(&self) -> Option<&OpError> {
        match &self.told {
            Some(Told::Ready(Outcome::Failed(error))) => Some(error),
            _ => None,
        }
    }

    /// The folders that the request wrote.
    fn written(&self) -> Vec<PathBuf> {
        let folder = |effect: &Effect| match effect {
            Effect::Checkpoint(new) => Some(new.dir.clone()),
            _ => None,
        };
        self.effects.iter().filter_map(folder).collect()
    }

    /// Returns the folders that nothing needs any more.
    async fn apply_effects(&self, conn: &mut Conn, core: &Core, now: Timestamp) -> Result<Vec<PathBuf>, Error> {
        let mut discarded = Vec::new();
        for effect in &self.effects {
            if let Some(dir) = self.apply_effect(conn, effect, now).await?
                && !folders::is_needed(conn, &dir, core.revivable_after()).await?
            {
                discarded.push(dir);
            }
        }
        Ok(discarded)
    }

    /// Returns the folder of a checkpoint that was replaced.
    async fn apply_effect(&self, conn: &mut Conn, effect: &Effect, now: Timestamp) -> Result<Option<PathBuf>, Error> {
        let tenant = &self.flight.tenant;
        match effect {
            // Of the scheduler's own requests, which are recorded otherwise.
            Effect::RunSaved(_) | Effect::SnapshotSaved { .. } => {}
            Effect::RunReady(run) => {
                runs::ready_run(conn, run).await?;
            }
            // A creation that failed is recorded with its cause.
            Effect::RunFailed(_) if self.flight.kind == RequestKind::CreateModel => {}
            Effect::RunFailed(run) => {
                runs::fail_run(conn, run, &unusable(run, self.error()), true).await?;
            }
            Effect::Checkpoint(new) => {
                runs::run(conn, tenant, &new.path.run).await?;
                return checkpoints::upsert_checkpoint(conn, tenant, new, now).await;
            }
            Effect::SamplingSession(new) => {
                let save = self.flight.run.as_ref().map(|run| (run, &self.request));
                let origin = sampling::Origin { checkpoint_dir: None, save: save.filter(|_| new.snapshot.is_some()) };
                sampling::insert_sampling_session(conn, tenant, new, origin, now).await?;
                // A key that comes again, as that of in-flight saves, stands for the newest weights.
                if let (Some(run), Some(key)) = (&self.flight.run, &new.snapshot) {
                    sampling::set_snapshot_dir(conn, run, key, None).await?;
                }
            }
        }
        Ok(None)
    }

    /// How it ends with this outcome.
    fn end<'a>(&'a self, outcome: &'a Outcome) -> Result<End<'a>, Error> {
        Ok(match outcome {
            Outcome::Succeeded { encoding, payload } => {
                let result = self.result.as_ref().ok_or(Error::Store("complete a request"))?;
                End::Succeeded { encoding: *encoding, result, size: payload.len() as u64, replays: self.replays() }
            }
            Outcome::Failed(error) => End::Failed(error),
        })
    }

    /// Whether the request is executed again after a restart: it changed what the worker holds in memory.
    fn replays(&self) -> bool {
        match self.flight.kind {
            RequestKind::CreateModel
            | RequestKind::LoadWeights
            | RequestKind::ForwardBackward
            | RequestKind::OptimStep => true,
            RequestKind::SaveWeightsForSampler => self
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::SamplingSession(new) if new.snapshot.is_some())),
            RequestKind::Forward
            | RequestKind::SaveWeights
            | RequestKind::SaveWeightsExternal
            | RequestKind::Sample
            | RequestKind::SaveRun
            | RequestKind::SaveSnapshot
            | RequestKind::RestoreRun => false,
        }
    }
}

fn poll_of(outcome: Outcome) -> Poll {
    match outcome {
        Outcome::Succeeded { encoding, payload } => Poll::Succeeded { encoding, payload },
        Outcome::Failed(error) => Poll::Failed(error),
    }
}

/// What became of the report of a request's end.
enum Reported {
    /// It stands, and these folders are needed no more.
    Ended(Ended, Poll, Vec<PathBuf>),
    /// The request had ended before.
    Known,
    /// The lease has passed to another worker, whose report will stand.
    Stale,
}

impl Write for Complete {
    type Output = Reported;
    const URGENCY: Urgency = Urgency::Record;

    async fn prepare(&mut self, core: &Core) -> Result<(), Error> {
        if let Outcome::Succeeded { payload, .. } = self.outcome()?
            && self.result.is_none()
        {
            self.result = Some(core.blobs.put(self.result_name(), &payload).await?);
        }
        Ok(())
    }

    // Of a sample, unless it has to be told together with something else.
    fn joins(&self, core: &Core) -> bool {
        self.flight.sampling_session.is_some() && self.effects.is_empty() && core.worker_id().is_some()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Reported, Error> {
        let now = core.now();
        if !holds(conn, core, &self.flight.fence).await? {
            return Ok(Reported::Stale);
        }
        let (outcome, discarded) = self.outcome_with_effects(conn, core, now).await?;
        let end = self.end(&outcome)?;
        let ended = results::end_request(conn, &self.request, &end, claim_of(core, &self.flight.fence), now).await?;
        let Some(ended) = ended else { return Ok(Reported::Known) };
        let poll = poll_of(outcome);
        if let Some(run) = &ended.creates {
            match &poll {
                Poll::Failed(cause) => runs::fail_run(conn, run, &creation_failed(run, cause), false).await?,
                _ => runs::ready_run(conn, run).await?,
            };
        }
        Ok(Reported::Ended(ended, poll, discarded))
    }

    async fn apply_all(
        writes: Vec<&mut Self>,
        conn: &mut Conn,
        core: &Core,
    ) -> Result<Vec<Result<Reported, Error>>, Error> {
        let mut outcomes = Vec::with_capacity(writes.len());
        let mut writes = writes;
        for write in &mut writes {
            outcomes.push(write.outcome()?);
        }
        let mut samples = Vec::with_capacity(writes.len());
        for (write, outcome) in writes.iter().zip(&outcomes) {
            let Flight { sampling_session, fence, seq_id, .. } = &write.flight;
            if let (Some(session), Some(claim)) = (sampling_session, claim_of(core, fence)) {
                let end = write.end(outcome)?;
                samples.push(SampleEnd { id: &write.request, end, claim, session, seq_id: *seq_id });
            }
        }
        let mut ended = results::end_samples(conn, &samples, core.now()).await?;
        drop(samples);
        let mut outputs = Vec::with_capacity(writes.len());
        for (write, outcome) in writes.into_iter().zip(outcomes) {
            outputs.push(match ended.remove(&write.request) {
                Some(ended) => Ok(Reported::Ended(ended, poll_of(outcome), Vec::new())),
                None => write.apply(conn, core).await,
            });
        }
        Ok(outputs)
    }

    fn signals(&self, output: &Reported, signals: &mut Vec<Signal>) {
        if let Reported::Ended(ended, ..) = output {
            ended.signals(&self.request, signals);
        }
    }

    fn committed(&mut self, output: &Reported, core: &Arc<Core>) {
        match output {
            Reported::Ended(ended, poll, discarded) => {
                core.cache.put(self.flight.tenant.clone(), self.request.clone(), poll.clone());
                let served = self.flight.started.until(core.now());
                core.announce(&self.request, ended, Some(served));
                for dir in discarded.iter().cloned() {
                    let shared = Arc::clone(core);
                    core.runtime.spawn(async move { shared.remove_folder(dir).await });
                }
            }
            // Perhaps by this very report, of whose commit nobody heard.
            Reported::Known => core.waiters.wake(&self.request),
            Reported::Stale => {
                tracing::warn!(request = %self.request, "a report came too late: its lease has passed to another worker");
                if let Fence::Run(run, epoch) = &self.flight.fence {
                    core.with_queue(|queue| queue.lose_lease(run, *epoch));
                }
            }
        }
    }
}

/// Ends of requests that never reached the worker, or that it gave up; and runs that can't be restored.
pub(crate) struct EndUnstarted {
    lost: Vec<(RunId, i64, OpError)>,
    doomed: Vec<Doomed>,
}

impl EndUnstarted {
    pub(crate) fn new(lost: Vec<(RunId, i64, OpError)>, doomed: Vec<Doomed>) -> Self {
        Self { lost, doomed }
    }
}

/// What became of them.
pub(crate) struct Unstarted {
    ended: Vec<(RequestId, Ended)>,
    /// Samples, with their claims, whose session came back before they were cancelled: nobody has them now.
    spared: Vec<(RequestId, i64)>,
}

impl Write for EndUnstarted {
    type Output = Unstarted;
    const URGENCY: Urgency = Urgency::Record;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Unstarted, Error> {
        let now = core.now();
        for (run, epoch, error) in &self.lost {
            if holds(conn, core, &Fence::Run(run.clone(), *epoch)).await? {
                runs::fail_run(conn, run, error, true).await?;
            }
        }
        let mut all = Unstarted { ended: Vec::with_capacity(self.doomed.len()), spared: Vec::new() };
        for Doomed { request, fence, doom } in &self.doomed {
            if !holds(conn, core, fence).await? {
                continue;
            }
            let (end, cause) = match doom {
                Doom::Cancelled if sessions::is_session_active(conn, request).await? => {
                    if let Fence::Sample(claim) = fence {
                        all.spared.push((request.clone(), *claim));
                    }
                    continue;
                }
                Doom::Cancelled => (End::Cancelled, session_ended()),
                Doom::Failed(error) => (End::Failed(error), error.clone()),
            };
            let claim = claim_of(core, fence);
            let Some(ended) = results::end_request(conn, request, &end, claim, now).await? else { continue };
            if let Some(run) = &ended.creates {
                runs::fail_run(conn, run, &creation_failed(run, &cause), false).await?;
            }
            all.ended.push((request.clone(), ended));
        }
        Ok(all)
    }

    fn signals(&self, output: &Unstarted, signals: &mut Vec<Signal>) {
        for (request, ended) in &output.ended {
            ended.signals(request, signals);
        }
    }

    fn committed(&mut self, output: &Unstarted, core: &Arc<Core>) {
        for (request, ended) in &output.ended {
            core.announce(request, ended, None);
        }
        if !output.spared.is_empty() {
            core.record(ReleaseSamples { samples: output.spared.clone(), quiet: false });
        }
        // What was taken out of a run's order is read again: its place is free now, or it is still to be executed.
        let cancelled = self.doomed.iter().filter(|doomed| matches!(doomed.doom, Doom::Cancelled));
        let runs: Vec<(&RunId, &RequestId)> = cancelled
            .filter_map(|doomed| match &doomed.fence {
                Fence::Run(run, _) => Some((run, &doomed.request)),
                Fence::Sample(_) => None,
            })
            .collect();
        core.with_queue(|queue| runs.iter().for_each(|(run, request)| queue.cancellation_stands(run, request)));
        let mut hints = lock(&core.hints);
        hints.extend(runs.into_iter().map(|(run, _)| run.clone()));
        if !hints.is_empty() {
            core.wake.notify_one();
        }
    }
}

impl Ended {
    /// What others may wait for.
    pub(crate) fn signals(&self, request: &RequestId, signals: &mut Vec<Signal>) {
        signals.push(Signal::Done(request.clone()));
        if let Some((session, clone)) = &self.sample {
            signals.push(Signal::Event(session.clone(), *clone));
        }
    }
}

impl Core {
    /// Wakes who waits for a request that ended, and frees what it no longer needs. It may have been executed for
    /// the time `served`.
    pub(crate) fn announce(&self, request: &RequestId, ended: &Ended, served: Option<Duration>) {
        let Ended { tenant, kind, state, tokens, .. } = ended;
        self.activity.fetch_add(1, Ordering::Relaxed);
        self.metrics.ended(*kind, tenant, *state, served, *tokens);
        tracing::debug!(%request, kind = kind.as_str(), state = state.as_str(), ?served, "a request ended");
        match (&ended.creates, state) {
            (Some(run), RequestState::Succeeded) => tracing::info!(%run, %request, "a run is ready"),
            (Some(run), _) => tracing::info!(%run, %request, "a run could not be created"),
            (None, _) => {}
        }
        self.waiters.wake(request);
        if let Some(sample) = &ended.sample {
            self.events.wake(sample);
        }
        if let Some(file) = ended.unneeded.clone() {
            let blobs = self.blobs.clone();
            self.runtime.spawn(async move { blobs.remove(vec![file]).await });
        }
    }
}

/// Whether this worker still has the run that a write is about. A sample's claim is checked as the sample is ended.
pub(crate) async fn holds(conn: &mut Conn, core: &Core, fence: &Fence) -> Result<bool, Error> {
    match (fence, core.worker_id()) {
        (Fence::Run(run, epoch), Some(worker)) => leases::holds_run(conn, worker, run, *epoch).await,
        (Fence::Sample(_), Some(_)) => Ok(true),
        (_, None) => Ok(false),
    }
}

fn claim_of<'a>(core: &'a Core, fence: &Fence) -> Option<(&'a str, i64)> {
    match fence {
        Fence::Run(..) => None,
        Fence::Sample(claim) => core.worker_id().map(|worker| (worker, *claim)),
    }
}

async fn execute(conn: &mut Conn, text: &'static str) -> Result<(), Error> {
    sql(text).execute(conn).await.map_err(failed("complete a request"))?;
    Ok(())
}

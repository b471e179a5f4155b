//! The canceller: requests of sessions that ended without success are cancelled in batches, in transactions of bounded
//! length, so that commits of others come between.
//!
//! The end of a session is stored first and is the mark of what is to be cancelled: after a crash, maintenance finds the
//! sessions of which requests are left.

use std::sync::Arc;

use trainyard_protocol::{RequestId, RunId, SessionId};

use crate::Error;
use crate::budgets::CHANGED_TOGETHER;
use crate::context::core::{Core, Subject, Urgency};
use crate::execution::cancellations::{PartDone, PartState, Reinstated, SessionPart};
use crate::lease::{ReleaseSamples, holds_lease, sample_claim};
use crate::processes::signals::Signal;
use crate::queue::{Fence, creation_failed, session_ended};
use crate::store::cancellations::{self, CancelledRequest};
use crate::store::db::{Conn, RowScope};
use crate::store::results::{self, RequestEnd};
use crate::store::{runs, sessions};
use crate::writer::write::Write;

/// Maximum number of sessions that one maintenance finds with requests to cancel.
const FOUND: usize = 1000;

impl Core {
    /// Cancels the requests of a session that has ended, in the background. `requests` are those that this process's
    /// worker had in its queue.
    pub(crate) fn cancel_requests_of(&self, session: &SessionId, requests: Vec<(RequestId, Fence)>) {
        if self.cancellations.add(session, requests) {
            self.cancel_batch();
        }
    }

    /// Continues cancellations that a crash interrupted.
    pub(crate) async fn resume_cancellations(&self) -> Result<(), Error> {
        let found = cancellations::sessions_to_cancel(&mut self.system_reader().await?, FOUND).await?;
        for session in found {
            self.cancel_requests_of(&session, Vec::new());
        }
        Ok(())
    }

    fn cancel_batch(&self) {
        self.record(CancelBatch { parts: self.cancellations.next(CHANGED_TOGETHER) });
    }

    /// Gives revived sessions what the worker had taken out of its queue.
    fn reinstate(self: &Arc<Self>, back: Reinstated) {
        self.cancellations_stand(back.requests.iter());
        for samples in back.claims.chunks(CHANGED_TOGETHER) {
            self.record(ReleaseSamples { samples: samples.to_vec(), quiet: false });
        }
    }

    /// Reads runs again whose requests left their order to be cancelled: their places are consumed, or they are still to
    /// be executed.
    fn cancellations_stand<'a>(self: &Arc<Self>, requests: impl Iterator<Item = &'a (RequestId, Fence)>) {
        let of_runs: Vec<(&RunId, &RequestId)> = requests
            .filter_map(|(request, fence)| match fence {
                Fence::Run(run, _) => Some((run, request)),
                Fence::Sample(_) => None,
            })
            .collect();
        if of_runs.is_empty() {
            return;
        }
        self.with_queue(|queue| of_runs.iter().for_each(|(run, request)| queue.cancellation_stands(run, request)));
        self.claims.read_again(of_runs.into_iter().map(|(run, _)| run.clone()));
    }
}

/// A write that cancels the next requests of sessions that have ended.
struct CancelBatch {
    parts: Vec<SessionPart>,
}

/// Requests that a batch cancelled, and the sessions that it looked at.
struct Batch {
    cancelled: Vec<CancelledRequest>,
    parts: Vec<PartDone>,
}

impl Write for CancelBatch {
    type Output = Batch;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn rows(&self) -> usize {
        CHANGED_TOGETHER
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.parts.iter().map(|part| part.session.clone()).collect()
    }

    fn subjects(&self) -> Vec<Subject> {
        let requests = self.parts.iter().flat_map(|part| &part.requests);
        let runs = requests.filter_map(|(_, fence)| match fence {
            Fence::Run(run, _) => Some(Subject::Run(run.clone())),
            Fence::Sample(_) => None,
        });
        runs.collect()
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Batch, Error> {
        let mut batch = Batch { cancelled: Vec::new(), parts: Vec::new() };
        let mut left = CHANGED_TOGETHER;
        for part in &self.parts {
            if left == 0 {
                break;
            }
            batch.parts.push(cancel_part(conn, core, part, &mut left, &mut batch.cancelled).await?);
        }
        Ok(batch)
    }

    fn abandoned(&mut self, core: &Arc<Core>) {
        core.reinstate(core.cancellations.give_up());
    }

    fn signals(&self, batch: &Batch, signals: &mut Vec<Signal>) {
        for CancelledRequest { id, ended, claimed } in &batch.cancelled {
            ended.signals(id, signals);
            if *claimed {
                signals.push(Signal::Cancel(id.clone()));
            }
        }
    }

    fn committed(&mut self, batch: &Batch, core: &Arc<Core>) {
        let samples = batch.cancelled.iter().filter(|request| request.ended.sample.is_some());
        core.with_queue(|queue| samples.for_each(|sample| queue.drop_sample(&sample.id)));
        for CancelledRequest { id, ended, .. } in &batch.cancelled {
            core.announce_end(id, ended, None);
        }
        let parts = self.parts.iter().zip(&batch.parts);
        core.cancellations_stand(parts.flat_map(|(part, done)| part.requests.iter().take(done.handled)));
        let (back, more) = core.cancellations.advance(&batch.parts);
        core.reinstate(back);
        if more {
            core.cancel_batch();
        }
    }
}

/// Cancels the next requests of a session, at most `left`.
async fn cancel_part(
    conn: &mut Conn,
    core: &Core,
    part: &SessionPart,
    left: &mut usize,
    cancelled: &mut Vec<CancelledRequest>,
) -> Result<PartDone, Error> {
    let SessionPart { session, requests } = part;
    let done = |handled, state| PartDone { session: session.clone(), handled, state };
    if !is_cancelled(conn, session).await? {
        return Ok(done(0, PartState::Revived));
    }
    let (own, mut ends) = (requests.iter().take(*left), Vec::new());
    let handled = own.len();
    *left -= handled;
    for (request, fence) in own {
        if !holds_lease(conn, core, fence).await? {
            continue;
        }
        let claim = sample_claim(core, fence);
        let ended = results::end_request(conn, request, &RequestEnd::Cancelled, claim, core.now()).await?;
        if let Some(ended) = ended {
            ends.push(CancelledRequest { id: request.clone(), ended, claimed: false });
        }
    }
    let asked = *left;
    let free = cancellations::cancel_next(conn, session, asked, core.now()).await?;
    *left -= free.len();
    let state = match free.len() < asked && handled == requests.len() {
        false => PartState::More,
        true if is_cancelled(conn, session).await? => PartState::Complete,
        true => PartState::Revived,
    };
    ends.extend(free);
    for CancelledRequest { ended, .. } in &ends {
        if let Some(run) = &ended.creates {
            runs::fail_run(conn, run, &creation_failed(run, &session_ended()), false).await?;
        }
    }
    cancelled.append(&mut ends);
    Ok(done(handled, state))
}

/// Returns whether a session has ended so that its requests are cancelled.
async fn is_cancelled(conn: &mut Conn, session: &SessionId) -> Result<bool, Error> {
    let ended = sessions::ended_sessions(conn, vec![session.clone()]).await?;
    Ok(ended.first().is_some_and(|(_, status)| status.cancels()))
}

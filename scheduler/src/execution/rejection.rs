//! Records requests that end without having been executed, and runs that could not be restored.

use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, RunId, SessionId};

use crate::Error;
use crate::context::core::{Core, Subject, Urgency};
use crate::context::lock::lock;
use crate::lease::{ReleaseSamples, holds_lease, sample_claim};
use crate::processes::signals::Signal;
use crate::queue::{Fence, Rejected, Rejection, creation_failed, session_ended};
use crate::store::db::{Conn, RowScope};
use crate::store::results::{self, EndedRequest, RequestEnd};
use crate::store::{runs, sessions};
use crate::writer::write::Write;

/// A write that ends rejected or cancelled requests, and fails runs that could not be restored.
pub(crate) struct RecordRejections {
    /// Runs with the epoch of their lease.
    unrestorable: Vec<(RunId, i64, OpError)>,
    rejected: Vec<Rejected>,
    /// Sessions of the samples among the requests.
    sessions: Vec<SessionId>,
}

impl RecordRejections {
    pub(crate) fn new(unrestorable: Vec<(RunId, i64, OpError)>, rejected: Vec<Rejected>) -> Self {
        Self { unrestorable, rejected, sessions: Vec::new() }
    }

    fn samples(&self) -> impl Iterator<Item = &RequestId> {
        let samples = self.rejected.iter().filter(|rejected| matches!(rejected.fence, Fence::Sample(_)));
        samples.map(|rejected| &rejected.request)
    }
}

/// Results of the rejections.
#[derive(Default)]
pub(crate) struct Rejections {
    ended: Vec<(RequestId, EndedRequest)>,
    /// Samples with their claims whose session was revived before they were cancelled; no queue contains them now.
    reinstated: Vec<(RequestId, i64)>,
}

impl Write for RecordRejections {
    type Output = Rejections;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn subjects(&self) -> Vec<Subject> {
        let runs = self.unrestorable.iter().map(|(run, ..)| Subject::Run(run.clone()));
        let requests = self.rejected.iter().map(|rejected| match &rejected.fence {
            Fence::Run(run, _) => Subject::Run(run.clone()),
            Fence::Sample(_) => Subject::Request(rejected.request.clone()),
        });
        runs.chain(requests).collect()
    }

    fn is_ready(&mut self) -> bool {
        self.samples().next().is_none()
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.sessions.clone()
    }

    async fn prepare(&mut self, core: &Core) -> Result<(), Error> {
        let samples: Vec<RequestId> = self.samples().cloned().collect();
        self.sessions = core.sessions_of_samples(&samples, &RowScope::System).await?;
        Ok(())
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Rejections, Error> {
        for (run, epoch, error) in &self.unrestorable {
            if holds_lease(conn, core, &Fence::Run(run.clone(), *epoch)).await? {
                runs::fail_run(conn, run, error, true).await?;
            }
        }
        let mut all = Rejections::default();
        for rejected in &self.rejected {
            reject(conn, core, rejected, &mut all).await?;
        }
        Ok(all)
    }

    fn signals(&self, output: &Rejections, signals: &mut Vec<Signal>) {
        for (request, ended) in &output.ended {
            ended.signals(request, signals);
        }
    }

    fn committed(&mut self, output: &Rejections, core: &Arc<Core>) {
        for (request, ended) in &output.ended {
            core.announce_end(request, ended, None);
        }
        if !output.reinstated.is_empty() {
            core.record(ReleaseSamples { samples: output.reinstated.clone(), quiet: false });
        }
        // Cancelled requests left their run's order, which is read again: their place is consumed, or they
        // are still to be executed.
        let cancelled = self.rejected.iter().filter(|rejected| rejected.rejection == Rejection::Cancelled);
        let runs: Vec<(&RunId, &RequestId)> = cancelled
            .filter_map(|rejected| match &rejected.fence {
                Fence::Run(run, _) => Some((run, &rejected.request)),
                Fence::Sample(_) => None,
            })
            .collect();
        core.with_queue(|queue| runs.iter().for_each(|(run, request)| queue.cancellation_stands(run, request)));
        let mut runs_to_read = lock(&core.runs_to_read);
        runs_to_read.extend(runs.into_iter().map(|(run, _)| run.clone()));
        if !runs_to_read.is_empty() {
            core.claim_wakeup.notify_one();
        }
    }
}

async fn reject(conn: &mut Conn, core: &Core, rejected: &Rejected, all: &mut Rejections) -> Result<(), Error> {
    let Rejected { request, fence, rejection } = rejected;
    if !holds_lease(conn, core, fence).await? {
        return Ok(());
    }
    let (end, cause) = match rejection {
        Rejection::Cancelled if sessions::is_session_active(conn, request).await? => {
            if let Fence::Sample(claim) = fence {
                all.reinstated.push((request.clone(), *claim));
            }
            return Ok(());
        }
        Rejection::Cancelled => (RequestEnd::Cancelled, session_ended()),
        Rejection::Failed(error) => (RequestEnd::Failed(error), error.clone()),
    };
    let ended = results::end_request(conn, request, &end, sample_claim(core, fence), core.now()).await?;
    let Some(ended) = ended else { return Ok(()) };
    if let Some(run) = &ended.creates {
        runs::fail_run(conn, run, &creation_failed(run, &cause), false).await?;
    }
    all.ended.push((request.clone(), ended));
    Ok(())
}

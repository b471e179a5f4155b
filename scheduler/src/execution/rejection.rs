//! Records requests that fail without having been executed, and runs that could not be restored.

use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, RunId, SessionId};

use crate::Error;
use crate::budgets::CHANGED_TOGETHER;
use crate::context::core::{Core, Subject, Urgency};
use crate::lease::{holds_lease, sample_claim};
use crate::processes::signals::Signal;
use crate::queue::{Fence, Rejected, creation_failed};
use crate::store::db::{Conn, RowScope};
use crate::store::results::{self, EndedRequest, RequestEnd};
use crate::store::runs;
use crate::writer::write::Write;

/// A write that fails rejected requests, and runs that could not be restored.
pub(crate) struct RecordRejections {
    /// Runs with the epoch of their lease.
    unrestorable: Vec<(RunId, i64, OpError)>,
    rejected: Vec<Rejected>,
    /// Sessions of the samples among the requests.
    sessions: Vec<SessionId>,
    /// Whether the errors were replaced, because the database refuses them.
    simplified: bool,
}

impl RecordRejections {
    /// Returns the writes of these rejections, each of bounded length, in their order.
    pub(crate) fn in_parts(unrestorable: Vec<(RunId, i64, OpError)>, rejected: Vec<Rejected>) -> Vec<Self> {
        let part = |unrestorable, rejected| Self { unrestorable, rejected, sessions: Vec::new(), simplified: false };
        let mut parts = Vec::new();
        if !unrestorable.is_empty() {
            parts.push(part(unrestorable, Vec::new()));
        }
        parts.extend(rejected.chunks(CHANGED_TOGETHER).map(|some| part(Vec::new(), some.to_vec())));
        parts
    }

    fn samples(&self) -> impl Iterator<Item = &RequestId> {
        let samples = self.rejected.iter().filter(|rejected| matches!(rejected.fence, Fence::Sample(_)));
        samples.map(|rejected| &rejected.request)
    }
}

impl Write for RecordRejections {
    /// Requests that failed by this write.
    type Output = Vec<(RequestId, EndedRequest)>;
    const URGENCY: Urgency = Urgency::Record;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    fn rows(&self) -> usize {
        self.rejected.len().max(1)
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

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Self::Output, Error> {
        for (run, epoch, error) in &self.unrestorable {
            if holds_lease(conn, core, &Fence::Run(run.clone(), *epoch)).await? {
                runs::fail_run(conn, run, error, true).await?;
            }
        }
        let mut ended = Vec::with_capacity(self.rejected.len());
        for rejected in &self.rejected {
            ended.extend(reject(conn, core, rejected).await?);
        }
        Ok(ended)
    }

    fn simplify(&mut self) -> bool {
        let error = OpError::server("the request failed, and the database refuses its error");
        for (.., cause) in &mut self.unrestorable {
            *cause = error.clone();
        }
        for rejected in &mut self.rejected {
            rejected.error = error.clone();
        }
        !std::mem::replace(&mut self.simplified, true)
    }

    fn signals(&self, ended: &Self::Output, signals: &mut Vec<Signal>) {
        for (request, ended) in ended {
            ended.signals(request, signals);
        }
    }

    fn committed(&mut self, ended: &Self::Output, core: &Arc<Core>) {
        for (request, ended) in ended {
            core.announce_end(request, ended, None);
        }
    }
}

/// Fails a request. Returns `None` if it had ended, or passed to another worker.
async fn reject(conn: &mut Conn, core: &Core, rejected: &Rejected) -> Result<Option<(RequestId, EndedRequest)>, Error> {
    let Rejected { request, fence, error } = rejected;
    if !holds_lease(conn, core, fence).await? {
        return Ok(None);
    }
    let end = RequestEnd::Failed(error);
    let ended = results::end_request(conn, request, &end, sample_claim(core, fence), core.now()).await?;
    let Some(ended) = ended else { return Ok(None) };
    if let Some(run) = &ended.creates {
        runs::fail_run(conn, run, &creation_failed(run, error), false).await?;
    }
    Ok(Some((request.clone(), ended)))
}

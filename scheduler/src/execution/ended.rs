//! Consequences of a request's end: waiting clients wake, here and in other processes.

use trainyard_protocol::RequestId;

use crate::RequestState;
use crate::context::core::Core;
use crate::context::origin::{Executed, Stages};
use crate::context::work_log::Times;
use crate::processes::signals::Signal;
use crate::store::results::EndedRequest;

impl EndedRequest {
    /// Adds the signals for which clients of other processes may wait.
    pub(crate) fn signals(&self, request: &RequestId, signals: &mut Vec<Signal>) {
        signals.push(Signal::Done(request.clone()));
        if let Some((session, clone)) = &self.sample {
            signals.push(Signal::Event(session.clone(), *clone));
        }
    }
}

impl Core {
    /// Wakes the tasks that wait for a request that ended, and removes its payload file once unneeded.
    /// `stages` are the times of its execution, if it was executed.
    pub(crate) fn announce_end(&self, request: &RequestId, ended: &EndedRequest, stages: Option<Stages>) {
        let times = stages.map(|Stages { accepted, started, committed, .. }| Times {
            waited: accepted.until(started),
            served: started.until(committed),
        });
        let origin = self.origins.take(request);
        let EndedRequest { tenant, kind, state, tokens, .. } = ended;
        self.sessions.count_activity();
        self.metrics.ended(*kind, tenant, *state, times.map(|times| times.served), *tokens);
        self.work_log.ended(&self.runtime, request, ended, times, origin.as_ref());
        if let (Some(origin), Some(stages), Some(observer)) = (&origin, stages, self.execution_observer()) {
            let EndedRequest { run, failure, .. } = ended;
            observer(Executed {
                request,
                kind: *kind,
                tenant,
                run: run.as_ref(),
                tokens: *tokens,
                failure: failure.as_ref(),
                origin,
                stages,
            });
        }
        match (&ended.creates, state) {
            (Some(run), RequestState::Succeeded) => tracing::info!(%run, %request, "run is ready"),
            (Some(run), _) => tracing::info!(%run, %request, "run could not be created"),
            (None, _) => {}
        }
        self.waiters.request_ended(request);
        if let Some(sample) = &ended.sample {
            self.waiters.sample_ended(sample);
        }
        if let Some(file) = ended.unneeded.clone() {
            let blobs = self.blobs.clone();
            self.runtime.spawn(async move { blobs.remove(vec![file]).await });
        }
    }
}

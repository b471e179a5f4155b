//! Completions that the worker reports: outcome and effects of a request become durable in one transaction.

mod effects;
mod outcome;
mod record;

use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId, RunId};

use self::outcome::CompletionOutcome;
use self::record::RecordCompletion;
use crate::context::core::Core;
use crate::queue::{InFlightRequest, Queue};
use crate::{Effect, Encode, Measured, Outcome, RequestKind, Scheduler};

impl Scheduler {
    /// Completes a request. Returns at once; the run's next request is ready now, and waiting clients wake after the
    /// commit that holds outcome and effects together. The completion of any other than an in-flight request,
    /// as of a cancelled sample, is ignored.
    pub fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>) {
        self.core.complete(request, CompletionOutcome::Encoded(outcome), effects, Measured::default());
    }

    /// As [`Self::complete`], for a success that used tokens or measured something, and whose result is still to be
    /// encoded.
    pub fn complete_encoded_by(&self, request: RequestId, measured: Measured, encode: Encode) {
        self.core.complete(request, CompletionOutcome::ToEncode(encode), Vec::new(), measured);
    }
}

impl Core {
    fn complete(
        self: &Arc<Self>,
        request: RequestId,
        outcome: CompletionOutcome,
        effects: Vec<Effect>,
        measured: Measured,
    ) {
        let now = self.now();
        self.with_queue(|queue| {
            let error = outcome.error();
            if error.is_none() {
                self.admit_samples(queue, std::slice::from_ref(&request));
            }
            let Some(finished) = queue.finish(&request, error, now) else {
                return tracing::debug!(%request, "stale completion ignored: not an in-flight request");
            };
            if finished.kind.is_maintenance() && !finished.replay {
                return self.record_maintenance(queue, &finished, effects);
            }
            if finished.replay {
                return;
            }
            apply_to_queue(queue, &finished, &effects, error);
            if let Some(run) = &finished.run {
                queue.schedule_maintenance(run);
            }
            self.record(RecordCompletion::new(request, finished, (outcome, measured), effects, now));
        });
    }
}

/// Effects that change the queue.
fn apply_to_queue(queue: &mut Queue, finished: &InFlightRequest, effects: &[Effect], error: Option<&OpError>) {
    for effect in effects {
        match (effect, &finished.run) {
            (Effect::SamplingSession(new), Some(run)) => {
                if let Some(key) = &new.snapshot {
                    queue.add_snapshot(&finished.session, key.clone(), run.clone(), true);
                }
            }
            (Effect::RunFailed(run), _) if finished.kind != RequestKind::CreateModel => {
                let failure = run_unusable(run, error);
                tracing::warn!(%run, cause = %failure, "run failed: it can't be used any more");
                queue.fail_run(run, failure);
            }
            _ => {}
        }
    }
}

/// The failure of a run that an operation left unusable.
fn run_unusable(run: &RunId, cause: Option<&OpError>) -> OpError {
    let text = format!("training run {run} can't be used any more");
    OpError::server(cause.map_or(text.clone(), |cause| format!("{text}: {}", cause.message)))
}

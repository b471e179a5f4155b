//! Completions that the worker reports: outcome and effects of a request become durable in one transaction.

mod effects;
mod outcome;
mod record;

use std::sync::Arc;

use trainyard_protocol::{OpError, RequestId};

use self::effects::run_unusable;
use self::outcome::CompletionOutcome;
use self::record::RecordCompletion;
use crate::context::core::Core;
use crate::queue::{InFlightRequest, Queue};
use crate::{Effect, Encode, Measured, Outcome, RequestKind, Scheduler};

impl Scheduler {
    /// Completes a request. Returns at once. The run's next request becomes ready immediately, and waiting clients wake
    /// after the commit that contains outcome and effects. Ignored unless the request is in flight; a cancelled sample
    /// is not.
    pub fn complete(&self, request: RequestId, outcome: Outcome, effects: Vec<Effect>) {
        self.core.complete(request, CompletionOutcome::Encoded(outcome), effects, Measured::default());
    }

    /// Completes a successful request that used tokens or measured something. Its result is encoded later. See
    /// [`Self::complete`].
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
            self.record(RecordCompletion::new(request, finished, outcome, measured, effects, now));
        });
    }
}

/// Applies those effects that change the queue.
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
                tracing::warn!(%run, cause = %failure, "run failed: it is no longer usable");
                queue.fail_run(run, failure);
            }
            _ => {}
        }
    }
}

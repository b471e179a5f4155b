//! A worker that computes nothing: every request succeeds.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use trainyard_protocol::SessionId;
use trainyard_scheduler::{Effect, Encoding, NewSamplingSession, Outcome, RequestKind, Scheduler, Work, WorkItem};

/// Name of the base model that the worker claims to serve.
pub(super) const MODEL: &str = "bench";

/// A thread that completes requests.
pub(super) struct IdleEngine {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
}

impl IdleEngine {
    pub(super) fn start(scheduler: Arc<Scheduler>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                for item in scheduler.wait_work(Duration::from_millis(50)) {
                    if let WorkItem::Start(work) = item {
                        let effects = effects_of(&work);
                        scheduler.complete(work.request, succeeded(), effects);
                    }
                }
            }
        };
        Self { thread: thread::spawn(run), stop }
    }

    /// Stops and joins the thread.
    pub(super) fn stop(self) -> Result<(), Box<dyn Error>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the worker's thread panicked".into())
    }
}

/// Returns the sampling session that a save of a run creates.
pub(super) fn snapshot_of(session: &SessionId) -> NewSamplingSession {
    NewSamplingSession {
        session: session.clone(),
        seq_id: 0,
        base_model: MODEL.to_owned(),
        model_path: None,
        snapshot: Some(format!("{session}/0")),
    }
}

fn effects_of(work: &Work) -> Vec<Effect> {
    let session = work.run.as_ref().and_then(|run| run.as_str().split_once(':')).map(|(session, _)| session);
    match (work.kind, session) {
        (RequestKind::SaveWeightsForSampler, Some(session)) => {
            vec![Effect::SamplingSession(snapshot_of(&SessionId::new(session)))]
        }
        _ => Vec::new(),
    }
}

fn succeeded() -> Outcome {
    Outcome::Succeeded { encoding: Encoding::Json, payload: b"{}".to_vec().into() }
}

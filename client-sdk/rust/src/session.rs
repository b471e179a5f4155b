//! A client's session with the service: its numbers, and the heartbeats that keep it alive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

use crate::api::{Api, Request};
use crate::error::Error;
use crate::generated::types::{CreateSessionRequest, CreateSessionResponse, FinishKind};

const HEARTBEAT: Duration = Duration::from_secs(10);

/// Longest time that closing a client waits for a server that does not answer.
const FAREWELL: Duration = Duration::from_secs(5);

/// A session that its first use opens.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) api: Api,
    /// Request that opens the session. Its idempotency key makes repetitions find the same session.
    create: Request,
    id: OnceCell<String>,
    runs: AtomicU64,
    samplers: AtomicU64,
    heartbeats: OnceLock<AbortHandle>,
}

impl Session {
    pub(crate) fn new(api: Api, body: &CreateSessionRequest) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self {
            api,
            create: Request::post("create_session").json(body)?,
            id: OnceCell::new(),
            runs: AtomicU64::new(0),
            samplers: AtomicU64::new(0),
            heartbeats: OnceLock::new(),
        }))
    }

    pub(crate) async fn id(&self) -> Result<&str, Error> {
        let create = async {
            let created: CreateSessionResponse = self.api.send_for_json(self.create.clone()).await?;
            let beats = tokio::spawn(beat(self.api.clone(), created.session_id.clone()));
            let _ = self.heartbeats.set(beats.abort_handle());
            Ok(created.session_id)
        };
        self.id.get_or_try_init(|| create).await.map(String::as_str)
    }

    /// Returns the number of the session's next run, from 0.
    pub(crate) fn next_run(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number of the session's next sampler, from 0.
    pub(crate) fn next_sampler(&self) -> u64 {
        self.samplers.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends the session, if there is one; the service unloads its runs.
    pub(crate) async fn finish(&self, kind: FinishKind, detail: Option<&str>) -> Result<(), Error> {
        if let Some(heartbeats) = self.heartbeats.get() {
            heartbeats.abort();
        }
        let Some(id) = self.id.get() else { return Ok(()) };
        let request = Request::new(reqwest::Method::POST, &["api", "v1", "sessions", id, "finish"])
            .json(&json!({"reason": {"type": kind}, "detail": detail}))?
            .deadline(Some(Instant::now() + FAREWELL));
        self.api.send_for_nothing(request).await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(heartbeats) = self.heartbeats.get() {
            heartbeats.abort();
        }
    }
}

async fn beat(api: Api, session: String) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let Ok(request) = Request::post("session_heartbeat").json(&json!({"session_id": session})) else { return };
        match api.send_for_nothing(request.deadline(Some(Instant::now() + HEARTBEAT))).await {
            Ok(()) => {}
            Err(error) if error.status() == Some(410) => {
                tracing::warn!(session, "session has ended");
                return;
            }
            Err(error) => tracing::warn!(session, %error, "heartbeat failed"),
        }
    }
}

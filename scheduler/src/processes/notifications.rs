//! Receives notifications of other processes on the same database through LISTEN.

use std::sync::{Arc, Weak};
use std::time::Duration;

use trainyard_protocol::{RunId, SessionId};

use crate::Error;
use crate::context::core::Core;
use crate::processes::progress_exchange::channel_of;
use crate::processes::signals::{self, CHANNEL, Signal};
use crate::store::db::{Listener, Notification, Pool};
use crate::store::{requests, sessions};

/// Pause before another attempt to listen.
const RETRY: Duration = Duration::from_millis(500);

/// Interval at which a waiting listener checks whether the scheduler still exists.
const LOOK: Duration = Duration::from_secs(1);

/// Listens until the scheduler is dropped. SQLite has only one process, which does not need notifications.
pub(crate) async fn listen(core: Weak<Core>) {
    while let Some(strong) = core.upgrade().filter(|core| !core.is_closed()) {
        let Pool::Postgres(pool) = strong.readers.clone() else { return };
        let own = channel_of(&strong.process);
        drop(strong);
        let readers = Pool::Postgres(pool.clone());
        let done = match pool.listener(CHANNEL, own).await {
            Ok(listener) => receive(listener, &core).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            tracing::warn!(%error, "notifications interrupted; reconnecting");
            readers.suspect();
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn receive(mut listener: Listener, core: &Weak<Core>) -> Result<(), sqlx::Error> {
    // Reading makes up for notifications that were missed until now.
    let Some(listening) = core.upgrade() else { return Ok(()) };
    listening.catch_up().await;
    drop(listening);
    while core.upgrade().is_some_and(|core| !core.is_closed()) {
        let Some(notification) = listener.next(LOOK).await? else { continue };
        let Some(core) = core.upgrade() else { return Ok(()) };
        match notification {
            Notification::Shared(text) => {
                signals::decode(&core.process, &text).into_iter().for_each(|signal| core.handle_signal(signal));
            }
            Notification::Own(text) => core.progress_arrived(&text),
        }
    }
    Ok(())
}

impl Core {
    /// Reads the state behind all notifications that may have been missed.
    async fn catch_up(self: &Arc<Self>) {
        if let Err(error) = self.wake_ended().await {
            tracing::debug!(%error, "ended requests could not be read after missed notifications; retrying");
        }
        self.grants.directory_changed();
        self.waiters.look_again();
        self.progress.request_again();
        if self.options.worker.is_some() {
            if let Err(error) = self.read_all_new_requests().await {
                tracing::debug!(%error, "new requests could not be read after missed notifications; retrying");
            }
            self.claims.wake();
        }
    }

    /// Wakes tasks that wait for requests that have ended, found by one statement for all of them.
    pub(crate) async fn wake_ended(&self) -> Result<(), Error> {
        let awaited = self.waiters.awaited_requests();
        if awaited.is_empty() {
            return Ok(());
        }
        let pending = requests::unfinished_of(&mut self.system_reader().await?, &awaited).await?;
        awaited
            .iter()
            .filter(|request| !pending.contains(*request))
            .for_each(|request| self.waiters.request_ended(request));
        Ok(())
    }

    fn handle_signal(self: &Arc<Self>, signal: Signal) {
        let works = self.options.worker.is_some();
        match signal {
            Signal::Done(request) => self.waiters.request_ended(&request),
            Signal::Event(session, clone) => self.waiters.sample_ended(&(session, clone)),
            Signal::Metrics(run) => self.waiters.metrics_recorded(&run),
            Signal::StoredSamples(run) => self.waiters.stored_samples_changed(&run),
            Signal::Run(run, owner) if works => self.run_has_request(run, owner.as_deref()),
            Signal::Directory => self.grants.directory_changed(),
            Signal::Samples if works => self.claims.wake(),
            Signal::Released if works => self.wake_claims_of_released(),
            Signal::Watch { request, process, from_start } if works => self.watched_by(request, process, from_start),
            Signal::Cancel(request) if works => self.with_queue(|queue| queue.drop_sample(&request)),
            Signal::Session(session) if works && self.queue.read().has_session(&session) => {
                let core = Arc::clone(self);
                self.runtime.spawn(async move { core.session_ended(session).await });
            }
            Signal::Run(..)
            | Signal::Samples
            | Signal::Released
            | Signal::Cancel(_)
            | Signal::Session(_)
            | Signal::Watch { .. } => {}
        }
    }

    /// Handles a new request of a run whose owner was `owner`: the owner reads it, other workers may claim the run.
    pub(crate) fn run_has_request(&self, run: RunId, owner: Option<&str>) {
        let is_here = self.queue.read().next_seq(&run).is_some();
        // The run may be about to arrive here.
        self.claims.add_unread(run);
        if is_here {
            self.claims.read_soon();
        } else if owner.is_none_or(|owner| Some(owner) == self.worker_id()) {
            self.claims.wake();
        }
    }

    async fn session_ended(self: Arc<Self>, session: SessionId) {
        let status = match self.system_reader().await {
            Ok(mut conn) => sessions::session_status(&mut conn, &session).await,
            Err(error) => Err(error),
        };
        let done = match status {
            Ok(status) => self.end_session_here(&session, &status).await,
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            tracing::warn!(%session, %error, "session ended in another process, but its end could not be read");
        }
    }
}

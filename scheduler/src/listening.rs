//! Hearing of what other processes did.

use std::sync::{Arc, Weak};
use std::time::Duration;

use sqlx::postgres::PgListener;
use trainyard_protocol::SessionId;

use crate::core::Core;
use crate::signals::{self, CHANNEL, Signal};
use crate::store::db::Pool;
use crate::store::sessions;
use crate::waiters::lock;

/// How long to wait before another attempt to listen.
const RETRY: Duration = Duration::from_millis(500);

/// Listens until the scheduler is gone. SQLite has one process, which needs no telling.
pub(crate) async fn listen(core: Weak<Core>) {
    while let Some(strong) = core.upgrade().filter(|core| !core.messages_closed()) {
        let Pool::Postgres(pool) = strong.readers.clone() else { return };
        drop(strong);
        let heard = match PgListener::connect_with(&pool).await {
            Ok(listener) => hear(listener, &core).await,
            Err(error) => Err(error),
        };
        if let Err(error) = heard {
            tracing::debug!(%error, "no notifications for now");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn hear(mut listener: PgListener, core: &Weak<Core>) -> Result<(), sqlx::Error> {
    listener.listen(CHANNEL).await?;
    // What was told while nobody listened is read instead.
    let mut missed = true;
    loop {
        let Some(strong) = core.upgrade().filter(|core| !core.messages_closed()) else { return Ok(()) };
        if missed {
            strong.catch_up().await;
        }
        drop(strong);
        let heard = tokio::time::timeout(Duration::from_secs(1), listener.try_recv()).await;
        missed = false;
        match heard {
            Ok(Ok(Some(notification))) => {
                let Some(core) = core.upgrade() else { return Ok(()) };
                for signal in signals::decode(&core.process, notification.payload()) {
                    core.heed(signal);
                }
            }
            Ok(Ok(None)) => missed = true,
            Ok(Err(error)) => return Err(error),
            // Time to see whether the scheduler is still there.
            Err(_) => {}
        }
    }
}

impl Core {
    /// Looks at everything that a notification could have told of.
    async fn catch_up(self: &Arc<Self>) {
        self.waiters.wake_all();
        self.events.wake_all();
        if self.options.worker.is_some() {
            if let Err(error) = self.read_all_new_requests().await {
                tracing::debug!(%error, "what was missed could not be read; the next round does it");
            }
            self.wake.notify_one();
        }
    }

    fn heed(self: &Arc<Self>, signal: Signal) {
        let works = self.options.worker.is_some();
        match signal {
            Signal::Done(request) => self.waiters.wake(&request),
            Signal::Event(session, clone) => self.events.wake(&(session, clone)),
            Signal::Run(run) if works => {
                lock(&self.hints).insert(run);
                self.wake.notify_one();
            }
            Signal::Samples | Signal::Released if works => self.wake.notify_one(),
            Signal::Cancel(request) if works => self.with_queue(|queue| queue.forget_sample(&request)),
            Signal::Session(session) if works && lock(&self.queue).has_session(&session) => {
                let core = Arc::clone(self);
                self.runtime.spawn(async move { core.session_ended(session).await });
            }
            Signal::Run(_) | Signal::Samples | Signal::Released | Signal::Cancel(_) | Signal::Session(_) => {}
        }
    }

    async fn session_ended(self: Arc<Self>, session: SessionId) {
        let status = match self.reader().await {
            Ok(mut conn) => sessions::session_status(&mut conn, &session).await,
            Err(error) => Err(error),
        };
        let done = match status {
            Ok(status) => self.end_session_here(&session, &status).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => {}
            Err(error) => tracing::warn!(%session, %error, "the end of a session could not be read"),
        }
    }
}

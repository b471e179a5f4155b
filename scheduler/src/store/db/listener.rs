//! Notifications of a PostgreSQL server.

use std::io;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::{Instant, timeout};

use super::deadline::{CONNECT, PROBE, within};

/// How often a listener notifies itself.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// What was received.
pub(crate) enum Notification {
    /// On the channel that all listen on.
    Shared(String),
    /// On the listener's own channel, from another process.
    Own(String),
}

/// Receives notifications, and proves that they arrive: it notifies itself on a channel of its own, and fails when a
/// notification, which has no text, has not come back by the time of the next one. A connection that was lost without a word is silent like
/// one on which nothing happens.
pub(crate) struct Listener {
    inner: PgListener,
    own: String,
    /// When it notifies itself again.
    due: Instant,
    /// Whether its last notification has not come back yet.
    awaits_own: bool,
}

impl Listener {
    /// Listens on `channel` and on `own`, a channel that nobody else listens on.
    pub(super) async fn connect(options: PgConnectOptions, channel: &str, own: String) -> Result<Self, sqlx::Error> {
        // The driver makes listeners of its own pools only; this one has a single connection.
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT).test_before_acquire(false);
        let pool = pool.connect_lazy_with(options);
        let mut inner = within(CONNECT, PgListener::connect_with(&pool)).await?;
        // Whoever listens has to read what was missed before: a lost connection is an error.
        inner.eager_reconnect(false);
        within(PROBE, inner.listen_all([channel, own.as_str()])).await?;
        Ok(Self { inner, own, due: Instant::now(), awaits_own: false })
    }

    /// The next notification; `None` when there is none for so long.
    ///
    /// # Errors
    /// When the connection is lost, or notifications do not arrive any more.
    pub(crate) async fn next(&mut self, wait: Duration) -> Result<Option<Notification>, sqlx::Error> {
        if Instant::now() >= self.due {
            self.notify_itself().await?;
        }
        match timeout(wait, self.inner.try_recv()).await {
            Err(_) => Ok(None),
            Ok(Ok(Some(notification))) if notification.channel() != self.own => {
                Ok(Some(Notification::Shared(notification.payload().to_owned())))
            }
            Ok(Ok(Some(notification))) if notification.payload().is_empty() => {
                self.awaits_own = false;
                Ok(None)
            }
            Ok(Ok(Some(notification))) => Ok(Some(Notification::Own(notification.payload().to_owned()))),
            Ok(Ok(None)) => Err(lost("the connection was closed")),
            Ok(Err(error)) => Err(error),
        }
    }

    async fn notify_itself(&mut self) -> Result<(), sqlx::Error> {
        const SQL: &str = "-- notify_itself
            SELECT pg_notify($1, '')";
        if self.awaits_own {
            return Err(lost("its own notification did not come back"));
        }
        within(PROBE, sqlx::query(SQL).bind(&self.own).execute(&mut self.inner)).await?;
        self.awaits_own = true;
        self.due = Instant::now() + HEARTBEAT;
        Ok(())
    }
}

fn lost(reason: &'static str) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::ConnectionAborted, reason))
}

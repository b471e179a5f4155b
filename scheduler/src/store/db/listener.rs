//! Receives notifications of a PostgreSQL server.

use std::io;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::time::{Instant, timeout};

use super::deadline::{CONNECT, PROBE, within};
use super::remote::read_only;

/// Interval at which a listener notifies itself.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// A notification that was received.
pub(crate) enum Notification {
    /// A text on the channel that all processes share.
    Shared(String),
    /// A text on the listener's own channel, from another process.
    Own(String),
}

/// A listener that proves that notifications arrive: it notifies itself on its own channel without text, and fails if
/// that notification is not back when the next one is due. Otherwise a silently lost connection would look like a quiet
/// one.
pub(crate) struct Listener {
    inner: PgListener,
    own: String,
    /// Time of the next notification to itself.
    due: Instant,
    /// Whether the listener still waits for its last notification.
    awaits_own: bool,
}

impl Listener {
    /// Listens on `channel` and on `own`, a channel of only this listener.
    pub(super) async fn connect(options: PgConnectOptions, channel: &str, own: String) -> Result<Self, sqlx::Error> {
        // The driver makes listeners only from its own pools; this one has a single connection.
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT).test_before_acquire(false);
        let pool = pool.connect_lazy_with(options);
        let mut inner = within(CONNECT, PgListener::connect_with(&pool)).await?;
        // After a lost connection the caller must read missed state first, so the loss is an error.
        inner.eager_reconnect(false);
        within(PROBE, inner.listen_all([channel, own.as_str()])).await?;
        Ok(Self { inner, own, due: Instant::now(), awaits_own: false })
    }

    /// Returns the next notification, or `None` if there is none for `wait`.
    ///
    /// # Errors
    /// The connection is lost, the server can't be written, or notifications do not arrive.
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
            SELECT current_setting('transaction_read_only')::boolean FROM pg_notify($1, '')";
        if self.awaits_own {
            return Err(lost("its own notification was not received"));
        }
        if within(PROBE, sqlx::query_scalar(SQL).bind(&self.own).fetch_one(&mut self.inner)).await? {
            return Err(read_only());
        }
        self.awaits_own = true;
        self.due = Instant::now() + HEARTBEAT;
        Ok(())
    }
}

fn lost(reason: &'static str) -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::ConnectionAborted, reason))
}

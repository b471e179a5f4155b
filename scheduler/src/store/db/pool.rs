//! Pools of connections that read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sqlx::SqlitePool;
use sqlx::postgres::PgConnectOptions;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::Conn;
use super::deadline::ACQUIRE;
use super::listener::Listener;
use super::reader_shares::{ReaderShare, ReaderShares};
use super::remote::{Idle, Remote};
use super::row_scope::RowScope;

/// Pause before another attempt to connect to a server that refuses.
const RETRY: Duration = Duration::from_millis(100);

/// Pool of connections that read.
#[derive(Clone)]
pub(crate) enum Pool {
    Sqlite(LocalPool),
    Postgres(RemotePool),
}

impl Pool {
    /// Returns a connection that sees the rows of a scope.
    ///
    /// # Errors
    /// [`TooManyReads`](crate::context::error::TooManyReads) if the tenant's other reads hold all that it may have;
    /// [`sqlx::Error::PoolTimedOut`] if none is free, or the server does not answer.
    pub(crate) async fn acquire(&self, scope: &RowScope) -> Result<Conn, sqlx::Error> {
        let shares = match self {
            Self::Sqlite(LocalPool { shares, .. }) | Self::Postgres(RemotePool { shares, .. }) => shares,
        };
        let deadline = Instant::now() + ACQUIRE;
        let share = shares.enter(scope.tenant(), deadline).await?;
        let lend = async {
            match self {
                Self::Sqlite(pool) => pool.lend(share).await,
                Self::Postgres(pool) => pool.lend(scope, share).await.map(Conn::Postgres),
            }
        };
        timeout_at(deadline, lend).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Returns the number of connections in use, and their limit.
    pub(crate) fn usage(&self) -> (usize, usize) {
        match self {
            Self::Sqlite(LocalPool { pool, .. }) => {
                let idle = pool.num_idle();
                ((pool.size() as usize).saturating_sub(idle), pool.options().get_max_connections() as usize)
            }
            Self::Postgres(pool) => (pool.size.saturating_sub(pool.slots.available_permits()), pool.size),
        }
    }

    /// Replaces the connections to a server that another connection has found lost or read-only.
    pub(crate) fn suspect(&self) {
        if let Self::Postgres(pool) = self {
            pool.idle.forget();
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(LocalPool { pool, .. }) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Connections to a SQLite file.
#[derive(Clone)]
pub(crate) struct LocalPool {
    pool: SqlitePool,
    shares: ReaderShares,
}

impl LocalPool {
    pub(super) fn new(pool: SqlitePool) -> Self {
        let shares = ReaderShares::of(pool.options().get_max_connections() as usize);
        Self { pool, shares }
    }

    async fn lend(&self, share: ReaderShare) -> Result<Conn, sqlx::Error> {
        Ok(Conn::SqlitePooled { conn: self.pool.acquire().await?, _share: share })
    }
}

/// Connections to a PostgreSQL server. The driver's own pool would wait without a deadline for lost connections.
#[derive(Clone)]
pub(crate) struct RemotePool {
    options: Arc<PgConnectOptions>,
    size: usize,
    /// A slot for each connection that may exist; closed with the pool.
    slots: Arc<Semaphore>,
    shares: ReaderShares,
    idle: Idle,
}

impl RemotePool {
    /// Creates a pool of at most `size` connections, which are made on demand.
    pub(super) fn new(options: PgConnectOptions, size: usize) -> Self {
        let (slots, shares) = (Arc::new(Semaphore::new(size)), ReaderShares::of(size));
        Self { options: Arc::new(options), size, slots, shares, idle: Idle::default() }
    }

    /// Returns a connection on which the server answers.
    async fn lend(&self, scope: &RowScope, share: ReaderShare) -> Result<Remote, sqlx::Error> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let remote = match self.idle.pop() {
            Some(mut idle) => match idle.answers_in(scope).await {
                true => idle,
                false => {
                    // Connections that were idle for longer are lost as well.
                    self.idle.forget();
                    self.connect(scope).await?
                }
            },
            None => self.connect(scope).await?,
        };
        Ok(remote.lent_by(self.idle.clone(), slot, share))
    }

    async fn connect(&self, scope: &RowScope) -> Result<Remote, sqlx::Error> {
        loop {
            match Remote::connect(&self.options).await {
                Err(error) if is_starting(&error) => tokio::time::sleep(RETRY).await,
                Err(error) => return Err(error),
                Ok(mut remote) => {
                    remote.enter(scope).await?;
                    return Ok(remote);
                }
            }
        }
    }

    /// Listens on `channel` and on `own`, with a connection outside the pool. No other listener uses `own`.
    pub(crate) async fn listener(&self, channel: &str, own: String) -> Result<Listener, sqlx::Error> {
        Listener::connect((*self.options).clone(), channel, own).await
    }

    async fn close(&self) {
        self.slots.close();
        for idle in self.idle.take_all() {
            let _ = idle.close().await;
        }
    }
}

/// Returns whether a server may accept connections soon: nothing listens at its address yet, it is starting or full, or a
/// failover is in progress.
fn is_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => {
            matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::ReadOnlyFilesystem)
        }
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

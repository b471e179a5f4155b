//! Examines a store without changing it.

use std::time::{Duration, Instant};

use crate::store::clock::database_now;
use crate::store::db::{Conn, Dialect, RowScope, bypass, connect_to_look, sql};
use crate::store::{api_keys, schema};
use crate::{Clock, Database, Error, SystemClock};

/// Number of round trips to the store that are timed.
const ROUND_TRIPS: usize = 7;

/// State of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// Version of its schema; 0 if it has none.
    pub schema: i64,
    /// Schema version that this program needs.
    pub newest: i64,
    /// Whether this program can use the store, after migrating an older schema.
    pub is_workable: bool,
    /// Durations of statements that do nothing.
    pub round_trips: Vec<Duration>,
    /// Lead of the store's clock over this machine's, in ms; `None` if the store has no clock of its own.
    pub clock_ahead_ms: Option<i64>,
    /// Whether a pooler gives a session another connection for each transaction.
    pub pools_transactions: bool,
    /// Whether an API key was ever created; `None` if the schema is not the one of this program, or a pooler prevents
    /// reading it.
    pub has_keys: Option<bool>,
    /// Reason why row-level security does not separate tenants, if it does not; `None` for a database without it.
    pub bypass: Option<String>,
}

/// Reason why a store can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreUnusable(String);

impl From<Error> for StoreUnusable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl From<sqlx::Error> for StoreUnusable {
    fn from(error: sqlx::Error) -> Self {
        Self(error.to_string())
    }
}

/// Examines a store. Returns `None` for a SQLite file that does not exist yet.
///
/// # Errors
/// The reason why the store can't be used.
pub async fn look_at_store(database: &Database) -> Result<Option<StoreState>, StoreUnusable> {
    if let Database::Sqlite(path) = database
        && !path.exists()
    {
        return Ok(None);
    }
    let mut conn = connect_to_look(database).await?;
    let mut round_trips = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        sql("SELECT 1").execute(&mut conn).await?;
        round_trips.push(start.elapsed());
    }
    let version = schema::version(&mut conn).await?;
    let mut state = StoreState {
        schema: version,
        newest: schema::newest(),
        is_workable: match schema::ensure_workable(&mut conn, database).await {
            Ok(_) => true,
            Err(Error::Invalid(_)) => false,
            Err(error) => return Err(error.into()),
        },
        round_trips,
        clock_ahead_ms: clock_ahead(&mut conn).await?,
        pools_transactions: pools_transactions(&mut conn, database).await?,
        has_keys: None,
        bypass: bypass(&mut conn).await?,
    };
    // A session that shares its connections has no scope of its own.
    if version == state.newest && !state.pools_transactions {
        state.has_keys = Some(has_keys(&mut conn).await?);
    }
    conn.close().await?;
    Ok(Some(state))
}

/// Looks for keys of all organisations.
async fn has_keys(conn: &mut Conn) -> Result<bool, StoreUnusable> {
    conn.enter(&RowScope::System).await?;
    Ok(api_keys::has_api_keys(conn).await?)
}

/// Returns whether two sessions share a connection of the server, or one session changes its own. A second session, in an
/// open transaction, takes the connection that the first one leaves to a pooler.
async fn pools_transactions(conn: &mut Conn, database: &Database) -> Result<bool, StoreUnusable> {
    if conn.dialect() == Dialect::Sqlite {
        return Ok(false);
    }
    match share_connections(conn, database).await {
        Err(error) if is_of_another_session(&error) => Ok(true),
        compared => Ok(compared?),
    }
}

/// Returns whether an error is about a prepared statement that another session has made, or that this one made elsewhere.
fn is_of_another_session(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|refusal| refusal.code());
    matches!(code.as_deref(), Some("42P05" | "26000"))
}

async fn share_connections(conn: &mut Conn, database: &Database) -> Result<bool, sqlx::Error> {
    let first = server_process(conn).await?;
    let mut other = connect_to_look(database).await?;
    other.begin().await?;
    let second = server_process(&mut other).await?;
    if first == second {
        return Ok(true);
    }
    let again = server_process(conn).await?;
    other.rollback().await?;
    other.close().await?;
    Ok(first != again)
}

/// Returns the id of the server's process behind a session.
async fn server_process(conn: &mut Conn) -> Result<Option<i64>, sqlx::Error> {
    const SQL: &str = "-- server_process
        SELECT CAST(pg_backend_pid() AS BIGINT)";
    sql(SQL).scalar(conn).await
}

async fn clock_ahead(conn: &mut Conn) -> Result<Option<i64>, Error> {
    if conn.dialect() == Dialect::Sqlite {
        return Ok(None);
    }
    let before = SystemClock.now();
    let there = database_now(conn).await?;
    let after = SystemClock.now();
    Ok(Some(there.as_millis() - before.plus(before.until(after) / 2).as_millis()))
}

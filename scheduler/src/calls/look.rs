//! Examines a store without changing it.

use std::time::{Duration, Instant};

use crate::store::clock::database_now;
use crate::store::db::{Conn, Dialect, bypass, connect_to_look, sql};
use crate::store::schema;
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
    let state = StoreState {
        schema: schema::version(&mut conn).await?,
        newest: schema::newest(),
        is_workable: match schema::ensure_workable(&mut conn, database).await {
            Ok(_) => true,
            Err(Error::Invalid(_)) => false,
            Err(error) => return Err(error.into()),
        },
        round_trips,
        clock_ahead_ms: clock_ahead(&mut conn).await?,
        bypass: bypass(&mut conn).await?,
    };
    conn.close().await?;
    Ok(Some(state))
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

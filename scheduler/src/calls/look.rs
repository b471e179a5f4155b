//! A look at a store that changes nothing.

use std::time::{Duration, Instant};

use crate::store::clock::database_now;
use crate::store::db::{Conn, Dialect, bypass, connect_to_look, sql};
use crate::store::schema;
use crate::{Clock, Database, Error, SystemClock};

/// How often the time to the store and back is measured.
const ROUND_TRIPS: usize = 7;

/// What a store is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// The version of its schema; 0 when it has none.
    pub schema: i64,
    /// The version that this program needs.
    pub newest: i64,
    /// Whether this program can work with it, once it is brought up to that version if it is older.
    pub is_workable: bool,
    /// How long statements took that do nothing.
    pub round_trips: Vec<Duration>,
    /// How much its clock is ahead of this machine's, in ms; `None` when it has no clock of its own.
    pub clock_ahead_ms: Option<i64>,
    /// Why row-level security does not keep tenants apart, if it does not; `None` for a database without it.
    pub bypass: Option<String>,
}

/// Why a store can't be used.
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

/// Looks at a store; `None` when it is a SQLite file that is not there yet.
///
/// # Errors
/// With the reason why it can't be used.
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

//! Access to the tables: one file per table, each statement next to the function named for it.
//!
//! The functions take a connection: the writer's inside a transaction, or a reader's.

/// Present time of the database, in ms since the epoch. Leases begin and end by this clock, because those of the
/// processes may differ.
macro_rules! now_ms {
    (sqlite) => {
        "CAST((julianday('now') - 2440587.5) * 86400000 AS BIGINT)"
    };
    (postgres) => {
        "CAST(extract(epoch FROM now()) * 1000 AS BIGINT)"
    };
}

pub(crate) mod agent_sessions;
pub(crate) mod agent_turns;
pub(crate) mod api_keys;
pub(crate) mod audit;
pub(crate) mod backup_holds;
pub(crate) mod base_models;
pub(crate) mod blobs;
pub(crate) mod browser_sessions;
pub(crate) mod cancellations;
pub(crate) mod checkpoint_search;
pub(crate) mod checkpoints;
pub(crate) mod clock;
pub(crate) mod collected_samplers;
pub(crate) mod copies;
pub(crate) mod custom_losses;
pub(crate) mod db;
pub(crate) mod ended_requests;
pub(crate) mod folders;
mod former_schema;
pub(crate) mod gc;
pub(crate) mod leases;
pub(crate) mod locks;
pub(crate) mod metrics_thinning;
pub(crate) mod notify;
pub(crate) mod numerics;
pub(crate) mod organisation_limits;
pub(crate) mod organisations;
pub(crate) mod overview;
pub(crate) mod quotas;
pub(crate) mod records;
pub(crate) mod requests;
pub(crate) mod results;
pub(crate) mod room;
pub(crate) mod run_listing;
pub(crate) mod run_metrics;
pub(crate) mod run_samples;
pub(crate) mod runs;
pub(crate) mod sample_claims;
pub(crate) mod sampling;
pub(crate) mod saved_snapshots;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod session_search;
pub(crate) mod sessions;
pub(crate) mod training_queue;
pub(crate) mod uploads;
pub(crate) mod usage;
pub(crate) mod usage_by_hour;
pub(crate) mod workers;
pub(crate) mod write_probes;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use db::{Row, column};

/// Converts a database error into one without detail for the client.
pub(crate) fn failed(doing: &'static str) -> impl Fn(sqlx::Error) -> Error {
    move |error| Error::database(doing, &error)
}

/// Returns a column's value through a conversion that refuses unexpected values.
fn parsed<T>(row: &Row, name: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Error> {
    let text: String = column(row, name)?;
    parse(&text).ok_or_else(|| Error::store("read a row", format!("column {name} holds {text:?}")))
}

fn from_json<T: DeserializeOwned>(row: &Row, name: &'static str) -> Result<T, Error> {
    let text: String = column(row, name)?;
    serde_json::from_str(&text).map_err(|error| Error::store("read a row", format!("column {name}: {error}")))
}

fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::store("write a row", error))
}

/// Converts a size or count for a column.
fn as_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts a size or count from a column.
fn as_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

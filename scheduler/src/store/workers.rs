//! The table `workers`: workers and the expiry of their leases.

use std::collections::BTreeMap;
use std::time::Duration;

use super::db::{Conn, column, sql, sql_by};
use super::numerics::StoredNumerics;
use super::{failed, from_json, to_json};
use crate::context::clock::millis;
use crate::{EngineReport, Error};

/// Registers a worker, or its restart, with leases that end after `lease`. Returns how often it has started.
pub(crate) async fn register_worker(
    conn: &mut Conn,
    id: &str,
    models: &[String],
    devices: &[String],
    lease: Duration,
) -> Result<i64, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- register_worker
        INSERT INTO workers (id, incarnation, models, devices, registered_at, expires_at)
        SELECT $1, 1, $2, $3, now_ms, now_ms + $4 FROM (SELECT ",
                now_ms!($database),
                " AS now_ms) AS clock WHERE true
        ON CONFLICT (id) DO UPDATE SET incarnation = workers.incarnation + 1, models = excluded.models,
            devices = excluded.devices, registered_at = excluded.registered_at, expires_at = excluded.expires_at
        RETURNING incarnation"
            )
        };
    }
    let incarnation = sql_by(text!(sqlite), text!(postgres))
        .bind(id)
        .bind(to_json(&models)?)
        .bind(to_json(&devices)?)
        .bind(millis(lease))
        .scalar(conn)
        .await
        .map_err(failed("register a worker"))?;
    incarnation.ok_or_else(|| Error::store("register a worker", "no row came back"))
}

/// Returns the time until the first lease of a worker expires, in ms; negative after that. Returns `None` without a
/// worker.
pub(crate) async fn shortest_lease(conn: &mut Conn) -> Result<Option<i64>, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- shortest_lease
        SELECT expires_at - ",
                now_ms!($database),
                " FROM workers ORDER BY expires_at LIMIT 1"
            )
        };
    }
    sql_by(text!(sqlite), text!(postgres)).scalar(conn).await.map_err(failed("read leases"))
}

/// Waits for claims of an earlier start of a worker, and keeps others from using the worker until the transaction ends.
pub(crate) async fn lock_worker(conn: &mut Conn, id: &str) -> Result<(), Error> {
    const SQLITE: &str = "-- lock_worker
        SELECT id FROM workers WHERE id = $1";
    const POSTGRES: &str = "-- lock_worker
        SELECT id FROM workers WHERE id = $1 FOR UPDATE";
    let locked = sql_by(SQLITE, POSTGRES).bind(id).execute(conn).await;
    locked.map(drop).map_err(failed("register a worker"))
}

/// Records a heartbeat: a worker's leases end after `lease` from now on, and its engine's report is stored. Returns
/// false if the leases were revoked, or the worker was restarted.
pub(crate) async fn renew_worker(
    conn: &mut Conn,
    id: &str,
    incarnation: i64,
    lease: Duration,
    engine: &EngineReport,
) -> Result<bool, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- renew_worker
        UPDATE workers SET engine = $4, expires_at = $3 + ",
                now_ms!($database),
                " WHERE id = $1 AND incarnation = $2"
            )
        };
    }
    let renewed = sql_by(text!(sqlite), text!(postgres)).bind(id).bind(incarnation).bind(millis(lease));
    let renewed = renewed.bind(to_json(engine)?);
    Ok(renewed.execute(conn).await.map_err(failed("renew leases"))? == 1)
}

/// Returns workers except `me` whose leases expired; other transactions do not see them during this one.
pub(crate) async fn expired_workers(conn: &mut Conn, me: Option<&str>) -> Result<Vec<String>, Error> {
    macro_rules! text {
        ($database:ident, $lock:literal) => {
            concat!(
                "-- expired_workers
        SELECT id FROM workers WHERE expires_at < ",
                now_ms!($database),
                " AND ($1 IS NULL OR id <> $1) ORDER BY id",
                $lock
            )
        };
    }
    let expired = sql_by(text!(sqlite, ""), text!(postgres, " FOR UPDATE SKIP LOCKED")).bind(me);
    expired.scalars(conn).await.map_err(failed("find expired workers"))
}

/// Returns whether a worker's leases are valid and it was not restarted, and keeps it so until the transaction ends.
/// Heartbeats do not wait for that.
pub(crate) async fn is_registered(conn: &mut Conn, id: &str, incarnation: i64) -> Result<bool, Error> {
    const SQLITE: &str = "-- is_registered
        SELECT incarnation FROM workers WHERE id = $1 AND incarnation = $2";
    const POSTGRES: &str = "-- is_registered
        SELECT incarnation FROM workers WHERE id = $1 AND incarnation = $2 FOR KEY SHARE";
    let found: Option<i64> =
        sql_by(SQLITE, POSTGRES).bind(id).bind(incarnation).scalar(conn).await.map_err(failed("find a worker"))?;
    Ok(found.is_some())
}

/// Returns workers except `me` that have leases but are not registered: they claimed something before they learned that
/// their leases had expired, and may never learn it.
pub(crate) async fn unregistered_holders(conn: &mut Conn, me: Option<&str>) -> Result<Vec<String>, Error> {
    const SQL: &str = "-- unregistered_holders
        SELECT id FROM (
            SELECT worker_id AS id FROM runs WHERE worker_id IS NOT NULL
            UNION
            SELECT worker_id FROM requests WHERE worker_id IS NOT NULL AND finished_at IS NULL) AS holders
        WHERE id NOT IN (SELECT id FROM workers) AND ($1 IS NULL OR id <> $1) ORDER BY id";
    sql(SQL).bind(me).scalars(conn).await.map_err(failed("find expired workers"))
}

pub(crate) async fn delete_worker(conn: &mut Conn, id: &str) -> Result<(), Error> {
    const SQL: &str = "-- delete_worker
        DELETE FROM workers WHERE id = $1";
    sql(SQL).bind(id).execute(conn).await.map(drop).map_err(failed("delete a worker"))
}

/// A worker with valid leases.
pub(crate) struct LiveWorker {
    pub(crate) id: String,
    /// Numerics by base model, if the worker reported them.
    pub(crate) models: BTreeMap<String, Option<StoredNumerics>>,
    /// Engine's report with the last heartbeat; `None` before the first.
    pub(crate) engine: Option<EngineReport>,
}

pub(crate) async fn live_workers(conn: &mut Conn) -> Result<Vec<LiveWorker>, Error> {
    macro_rules! text {
        ($database:ident) => {
            concat!(
                "-- live_workers
        SELECT id, models, engine, model, weights, arithmetic FROM workers LEFT JOIN worker_numerics ON worker_id = id
        WHERE expires_at >= ",
                now_ms!($database),
                " ORDER BY id"
            )
        };
    }
    let rows = sql_by(text!(sqlite), text!(postgres)).fetch_all(conn).await.map_err(failed("list workers"))?;
    let mut workers: Vec<LiveWorker> = Vec::new();
    for row in &rows {
        let id: String = column(row, "id")?;
        if workers.last().is_none_or(|worker| worker.id != id) {
            let models: Vec<String> = from_json(row, "models")?;
            let engine: Option<String> = column(row, "engine")?;
            // A newer program may report something else.
            let engine = engine.and_then(|text| serde_json::from_str(&text).ok());
            workers.push(LiveWorker { id, models: models.into_iter().map(|model| (model, None)).collect(), engine });
        }
        let model: Option<String> = column(row, "model")?;
        if let (Some(model), Some(worker)) = (model, workers.last_mut()) {
            worker.models.insert(model, StoredNumerics::of(row)?);
        }
    }
    Ok(workers)
}

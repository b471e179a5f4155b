//! The table `worker_numerics` and columns of `runs`: numerics of workers and of runs, which decide the bits of
//! results.

use trainyard_protocol::{Numerics, RequestId, RunId, TenantId};

use super::db::{Conn, Row, column, sql};
use super::{failed, from_json, to_json};
use crate::{Error, NumericsChange};

/// Whether a worker may execute a row of `runs`: no results bind the run, or the worker computes with the same weights
/// in the same way, or it is told to continue in another way while no registered worker computes like the run.
macro_rules! may_execute {
    ($worker:literal, $continues:literal) => {
        concat!(
            "(runs.weights IS NULL OR runs.state <> 'ready' OR EXISTS (
                SELECT 1 FROM worker_numerics AS mine
                WHERE mine.worker_id = ",
            $worker,
            " AND mine.model = runs.base_model AND mine.weights = runs.weights
                    AND (mine.arithmetic = runs.arithmetic OR (",
            $continues,
            " AND NOT ",
            $crate::store::numerics::some_worker_equals!(),
            "))))"
        )
    };
}

/// Whether a registered worker computes as the results of a row of `runs` were computed.
macro_rules! some_worker_equals {
    () => {
        "EXISTS (SELECT 1 FROM worker_numerics AS equal WHERE equal.model = runs.base_model
            AND equal.weights = runs.weights AND equal.arithmetic = runs.arithmetic)"
    };
}

pub(crate) use {may_execute, some_worker_equals};

/// Columns of [`Numerics`] in rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoredNumerics {
    pub(crate) weights: String,
    pub(crate) arithmetic: String,
}

impl From<&Numerics> for StoredNumerics {
    fn from(numerics: &Numerics) -> Self {
        Self { weights: numerics.weights.clone(), arithmetic: numerics.arithmetic() }
    }
}

impl StoredNumerics {
    /// Reads the columns of a row, which may be empty.
    pub(crate) fn of(row: &Row) -> Result<Option<Self>, Error> {
        let weights: Option<String> = column(row, "weights")?;
        let arithmetic: Option<String> = column(row, "arithmetic")?;
        Ok(weights.zip(arithmetic).map(|(weights, arithmetic)| Self { weights, arithmetic }))
    }
}

/// Records the numerics of a worker by base model, in place of earlier ones.
pub(crate) async fn register_numerics<'n>(
    conn: &mut Conn,
    worker: &str,
    numerics: impl IntoIterator<Item = (&'n String, &'n Numerics)>,
) -> Result<(), Error> {
    const CLEAR: &str = "-- register_numerics: clear
        DELETE FROM worker_numerics WHERE worker_id = $1";
    const SQL: &str = "-- register_numerics
        INSERT INTO worker_numerics (worker_id, model, weights, arithmetic) VALUES ($1, $2, $3, $4)";
    let doing = || failed("register a worker");
    sql(CLEAR).bind(worker).execute(conn).await.map_err(doing())?;
    for (model, numerics) in numerics {
        let StoredNumerics { weights, arithmetic } = numerics.into();
        let insert = sql(SQL).bind(worker).bind(model.as_str()).bind(weights).bind(arithmetic);
        insert.execute(conn).await.map_err(doing())?;
    }
    Ok(())
}

/// Returns base models that another registered worker serves with other weights under the same name.
pub(crate) async fn models_of_other_weights(conn: &mut Conn, worker: &str) -> Result<Vec<String>, Error> {
    const SQL: &str = "-- models_of_other_weights
        SELECT DISTINCT mine.model FROM worker_numerics AS mine JOIN worker_numerics AS other ON other.model = mine.model
        WHERE mine.worker_id = $1 AND other.worker_id <> $1 AND other.weights <> mine.weights ORDER BY mine.model";
    sql(SQL).bind(worker).scalars(conn).await.map_err(failed("compare workers"))
}

/// Returns whether workers serve two base models with the same weights.
pub(crate) async fn are_same_weights(conn: &mut Conn, one: &str, other: &str) -> Result<bool, Error> {
    const SQL: &str = "-- are_same_weights
        SELECT EXISTS (SELECT 1 FROM worker_numerics AS one JOIN worker_numerics AS other ON other.weights = one.weights
            WHERE one.model = $1 AND other.model = $2)";
    let same: Option<bool> = sql(SQL).bind(one).bind(other).scalar(conn).await.map_err(failed("compare weights"))?;
    Ok(same.unwrap_or(false))
}

/// Records that the results of a run are computed differently from now on.
pub(crate) async fn change_numerics(conn: &mut Conn, run: &RunId, change: &NumericsChange) -> Result<(), Error> {
    const OLD: &str = "-- change_numerics: older
        SELECT coalesce(numerics_changes, '[]') AS numerics_changes FROM runs WHERE id = $1";
    const SQL: &str = "-- change_numerics
        UPDATE runs SET arithmetic = $2, numerics_changes = $3 WHERE id = $1";
    let doing = || failed("record a change of numerics");
    let old = sql(OLD).bind(run.as_str()).fetch_optional(conn).await.map_err(doing())?;
    let mut changes: Vec<NumericsChange> =
        old.map(|row| from_json(&row, "numerics_changes")).transpose()?.unwrap_or_default();
    changes.push(change.clone());
    let update = sql(SQL).bind(run.as_str()).bind(change.to.as_str()).bind(to_json(&changes)?);
    update.execute(conn).await.map(drop).map_err(doing())
}

/// Requirements of a queued request for its worker.
pub(crate) struct Needs {
    pub(crate) model: String,
    /// Numerics of the request's run, while no worker has the run and results bind it.
    pub(crate) numerics: Option<StoredNumerics>,
}

/// Returns the requirements; `None` if the request is not queued, or belongs to another tenant.
pub(crate) async fn needs_of_queued(
    conn: &mut Conn,
    tenant: &TenantId,
    request: &RequestId,
) -> Result<Option<Needs>, Error> {
    // With `coalesce`, which is not leakproof, PostgreSQL would read all runs before it applies the policy.
    const SQL: &str = "-- needs_of_queued
        SELECT coalesce(runs.base_model, sampler.base_model) AS base_model,
            CASE WHEN runs.state = 'ready' AND runs.worker_id IS NULL THEN runs.weights END AS weights, runs.arithmetic
        FROM requests
        LEFT JOIN sampling_sessions AS sampler ON sampler.id = requests.sampling_session_id
        LEFT JOIN runs ON runs.id = CASE WHEN requests.run_id IS NULL THEN sampler.run_id ELSE requests.run_id END
        WHERE requests.id = $1 AND requests.tenant = $2 AND requests.state = 'queued'";
    let found = sql(SQL).bind(request.as_str()).bind(tenant.as_str()).fetch_optional(conn).await;
    let Some(row) = found.map_err(failed("find a request's base model"))? else { return Ok(None) };
    Ok(Some(Needs { model: column(&row, "base_model")?, numerics: StoredNumerics::of(&row)? }))
}

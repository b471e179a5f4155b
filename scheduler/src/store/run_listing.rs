//! Listings of the table `runs`.

use trainyard_protocol::TenantId;

use super::db::{Conn, page_of, sql};
use super::runs::to_run;
use super::{as_i64, as_u64, failed};
use crate::{AccessScope, Error, Page, Run, RunFilter, Timestamp};

/// Returns a page of the runs that match a filter, newest first, and their number on all pages.
///
/// Runs that exist only for a download are left out. With [`AccessScope::Accessible`] and without a project, runs of
/// other tenants that have a public checkpoint are included; a project contains only runs of the tenant.
pub(crate) async fn list_runs(
    conn: &mut Conn,
    tenant: &TenantId,
    filter: &RunFilter,
    page: Page,
    now: Timestamp,
) -> Result<(Vec<Run>, u64), Error> {
    const SQL: &str = "-- list_runs
        SELECT id, tenant, session_id, spec, state, user_metadata, created_at, last_request_at, corrupted,
            coalesce(numerics_changes, '[]') AS numerics_changes
        FROM runs WHERE tenant = $1 AND listed
        ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3";
    const COUNT: &str = "-- list_runs: count
        SELECT count(*) FROM runs WHERE tenant = $1 AND listed";
    const OF_PROJECT: &str = "-- list_runs: of a project
        SELECT id, tenant, session_id, spec, state, user_metadata, created_at, last_request_at, corrupted,
            coalesce(numerics_changes, '[]') AS numerics_changes
        FROM runs
        WHERE session_id IN (SELECT id FROM sessions WHERE tenant = $1 AND project_id = $4) AND listed
        ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3";
    const COUNT_OF_PROJECT: &str = "-- list_runs: count of a project
        SELECT count(*) FROM runs
        WHERE session_id IN (SELECT id FROM sessions WHERE tenant = $1 AND project_id = $2) AND listed";
    // Read as many of the tenant's own as the page may contain, and all of the others, which are few.
    const ACCESSIBLE: &str = "-- list_runs: accessible
        SELECT id, tenant, session_id, spec, state, user_metadata, created_at, last_request_at, corrupted,
            coalesce(numerics_changes, '[]') AS numerics_changes
        FROM runs WHERE id IN (
            SELECT id FROM (SELECT id FROM runs WHERE tenant = $1 AND listed
                ORDER BY created_at DESC, id DESC LIMIT $2 + $3) AS own
            UNION ALL
            SELECT run_id FROM checkpoints
            WHERE public AND (tenant <> $1) IS TRUE AND (expires_at IS NULL OR expires_at > $4))
        ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3";
    // The concatenation makes SQLite use the index of public checkpoints instead of reading all of them.
    const COUNT_OF_OTHERS: &str = "-- list_runs: count of others
        SELECT count(DISTINCT run_id || '') FROM checkpoints
        WHERE public AND (tenant <> $1) IS TRUE AND (expires_at IS NULL OR expires_at > $2)";
    let (mut list, mut count) = match (&filter.project_id, filter.scope) {
        (Some(_), _) => (sql(OF_PROJECT), sql(COUNT_OF_PROJECT)),
        (None, AccessScope::Owned) => (sql(SQL), sql(COUNT)),
        (None, AccessScope::Accessible) => (sql(ACCESSIBLE), sql(COUNT)),
    };
    list = list.bind(tenant.as_str()).bind(i64::from(page.limit)).bind(as_i64(page.offset));
    count = count.bind(tenant.as_str());
    let mut others = None;
    match (&filter.project_id, filter.scope) {
        (Some(project), _) => (list, count) = (list.bind(project.as_str()), count.bind(project.as_str())),
        (None, AccessScope::Owned) => {}
        (None, AccessScope::Accessible) => {
            list = list.bind(now.0);
            others = Some(sql(COUNT_OF_OTHERS).bind(tenant.as_str()).bind(now.0));
        }
    }
    let rows = page_of(list, conn, "list runs").await?;
    let mut total: i64 = count.scalar(&mut *conn).await.map_err(failed("count runs"))?.unwrap_or(0);
    if let Some(others) = others {
        let more: Option<i64> = others.scalar(conn).await.map_err(failed("count runs"))?;
        total += more.unwrap_or(0);
    }
    Ok((rows.iter().map(to_run).collect::<Result<_, _>>()?, as_u64(total)))
}

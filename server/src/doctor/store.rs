//! The store: whether it answers, how fast, the version of its schema, and its clock.

use std::time::Duration;

use trainyard_scheduler::{Database, StoreState, look_at_store};

use super::Check;
use super::disk::median;
use crate::config::{Config, Exposure};

const GROUP: &str = "store";
const SLOW: Duration = Duration::from_millis(10);
/// The accepted difference of clocks. Everything expires by the database's, but certificates and buckets need the right
/// time too.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

pub(super) async fn check(config: &Config) -> Vec<Check> {
    let database = &config.database;
    match look_at_store(database).await {
        Ok(None) => {
            let mut checks =
                vec![Check::ok(GROUP, "database", format!("{database}, which will be created at the start"))];
            checks.extend(config.exposure.map(|exposure| keys(exposure, Some(false))));
            checks
        }
        Ok(Some(state)) => judge(&state, config),
        Err(error) => {
            let advice = match database {
                Database::Sqlite(_) => {
                    "pass another --data-dir or --database-url, or restore a backup (docs/operators/backup.md)"
                }
                Database::Postgres(_) => {
                    "start the server, and compare address, user, password, sslmode and pg_hba.conf with --database-url"
                }
            };
            vec![Check::failure(GROUP, "database", format!("{database}: {error}"), advice)]
        }
    }
}

fn judge(state: &StoreState, config: &Config) -> Vec<Check> {
    let mut checks = vec![
        Check::ok(GROUP, "database", config.database.to_string()),
        round_trip(median(state.round_trips.clone())),
        schema(state, matches!(config.database, Database::Sqlite(_)) || config.migrate),
    ];
    checks.extend(state.clock_ahead_ms.map(clock));
    checks.extend(config.exposure.map(|exposure| keys(exposure, state.has_keys)));
    if matches!(config.database, Database::Postgres(_)) {
        checks.push(row_level_security(state.bypass.as_deref()));
        checks.extend(state.pools_transactions.then(pooler));
    }
    checks
}

/// Judges a server that others can reach, whose keys can only be in the store.
fn keys(exposure: Exposure, has_keys: Option<bool>) -> Check {
    const NAME: &str = "keys";
    match has_keys {
        Some(true) => Check::ok(GROUP, NAME, "those of the store"),
        Some(false) => Check::failure(GROUP, NAME, exposure.to_string(), "see docs/users/getting-started.md"),
        None => Check::warning(GROUP, NAME, "unknown until the schema is migrated", exposure.to_string()),
    }
}

fn row_level_security(bypass: Option<&str>) -> Check {
    const NAME: &str = "row-level security";
    match bypass {
        None => Check::ok(GROUP, NAME, "keeps tenants apart".to_owned()),
        Some(reason) => {
            let advice = "connect with a role of its own that owns the database and is not a superuser (docs/operators/operations.md)";
            Check::warning(GROUP, NAME, format!("does not keep tenants apart: {reason}"), advice)
        }
    }
}

fn pooler() -> Check {
    let value = "gives a session another connection for each transaction".to_owned();
    let advice = "set pool_mode = session, or connect to the server itself: tenants would be mixed up, and notifications \
        lost (docs/operators/deployment.md)";
    Check::failure(GROUP, "pooler", value, advice)
}

fn round_trip(time: Duration) -> Check {
    let value = format!("{:.1} ms", time.as_secs_f64() * 1e3);
    if time > SLOW {
        let advice = "every request needs several round trips: run the server nearer to its database";
        return Check::warning(GROUP, "round trip", value, advice);
    }
    Check::ok(GROUP, "round trip", value)
}

fn schema(state: &StoreState, migrates: bool) -> Check {
    let StoreState { schema, newest, is_workable, .. } = *state;
    let value = format!("version {schema}, but this program needs {newest}");
    match schema.cmp(&newest) {
        std::cmp::Ordering::Equal => Check::ok(GROUP, "schema", format!("version {schema}")),
        std::cmp::Ordering::Less if !is_workable => {
            let advice =
                "a program from before the first release created it: migrate it with the last such program first";
            Check::failure(GROUP, "schema", value, advice)
        }
        std::cmp::Ordering::Less if migrates => {
            Check::ok(GROUP, "schema", format!("version {schema}, which will be migrated to {newest} at the start"))
        }
        std::cmp::Ordering::Less => Check::failure(GROUP, "schema", value, "run trainyard migrate, or pass --migrate"),
        std::cmp::Ordering::Greater if is_workable => Check::ok(
            GROUP,
            "schema",
            format!("version {schema}, which is compatible with {newest}, the version of this program"),
        ),
        std::cmp::Ordering::Greater => {
            Check::failure(GROUP, "schema", value, "use the release that created it, or a newer one")
        }
    }
}

fn clock(ahead_ms: i64) -> Check {
    let difference = Duration::from_millis(ahead_ms.unsigned_abs());
    let side = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let value = format!("{:.3} s {side} this machine's", difference.as_secs_f64());
    let advice = "let both machines follow the same time servers (chrony, systemd-timesyncd)";
    if difference > CLOCKS_DIFFER {
        Check::warning(GROUP, "clock", value, advice)
    } else {
        Check::ok(GROUP, "clock", value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    fn state(schema: i64) -> StoreState {
        StoreState {
            schema,
            newest: 20,
            is_workable: schema <= 21,
            round_trips: vec![Duration::from_millis(1)],
            clock_ahead_ms: Some(0),
            pools_transactions: false,
            has_keys: Some(true),
            bypass: None,
        }
    }

    #[test]
    fn schemas_are_judged() {
        assert_eq!(schema(&state(20), false).status, Status::Ok);
        assert_eq!(schema(&state(19), true).status, Status::Ok);
        let old = schema(&state(0), false);
        assert!(old.status == Status::Failure && old.advice.is_some_and(|advice| advice.contains("migrate")));
        assert_eq!(schema(&state(21), true).status, Status::Ok);
        assert_eq!(schema(&state(22), true).status, Status::Failure);
        let former = schema(&StoreState { is_workable: false, ..state(19) }, true);
        assert_eq!(former.status, Status::Failure);
        assert!(former.advice.is_some_and(|advice| advice.contains("first release")));
    }

    #[test]
    fn a_server_that_others_reach_needs_a_key_in_the_store() {
        let exposure = Exposure::PublicUrl;
        let statuses = [Some(true), Some(false), None].map(|has_keys| keys(exposure, has_keys).status);
        assert_eq!(statuses, [Status::Ok, Status::Failure, Status::Warning]);
        assert!(keys(exposure, Some(false)).value.starts_with("--public-url"));
    }

    #[test]
    fn a_role_that_row_level_security_does_not_hold_is_reported() {
        assert_eq!(row_level_security(None).status, Status::Ok);
        let bypassed = row_level_security(Some("the role postgres is a superuser"));
        assert_eq!(bypassed.status, Status::Warning);
        assert!(bypassed.value.ends_with("the role postgres is a superuser"));
    }

    #[test]
    fn clocks_and_round_trips_are_judged() {
        assert_eq!(clock(-1_500).status, Status::Ok);
        assert_eq!(clock(59_000).status, Status::Ok);
        assert_eq!(clock(-90_000).status, Status::Warning);
        assert!(clock(-90_000).value.starts_with("90.000 s behind"));
        assert_eq!(round_trip(Duration::from_millis(1)).status, Status::Ok);
        assert_eq!(round_trip(Duration::from_millis(50)).status, Status::Warning);
    }
}

//! Refuses further rows of what a client creates one by one, once there are as many as its budget permits.

use super::db::{Conn, sql};
use super::{as_i64, failed};
use crate::Error;
use crate::budgets::{KEYS, PROJECTS, RUNS, SAMPLERS, USERS};

/// Objects of which their owner, an organisation or a session, may have so many.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounded {
    Projects,
    Users,
    Keys,
    Runs,
    SamplingSessions,
}

impl Bounded {
    fn most(self) -> u64 {
        match self {
            Self::Projects => PROJECTS,
            Self::Users => USERS,
            Self::Keys => KEYS,
            Self::Runs => RUNS,
            Self::SamplingSessions => SAMPLERS,
        }
    }

    /// Returns the owner's kind, and what it has.
    fn names(self) -> [&'static str; 2] {
        match self {
            Self::Projects => ["organisation", "projects"],
            Self::Users => ["organisation", "users"],
            Self::Keys => ["organisation", "API keys"],
            Self::Runs => ["session", "training runs"],
            Self::SamplingSessions => ["session", "sampling sessions"],
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Self::Projects => {
                "-- ensure_room: projects
                SELECT count(*) FROM (SELECT 1 AS found FROM projects WHERE organisation = $1 LIMIT $2) AS counted"
            }
            Self::Users => {
                "-- ensure_room: users
                SELECT count(*) FROM (SELECT 1 AS found FROM users WHERE organisation = $1 LIMIT $2) AS counted"
            }
            Self::Keys => {
                "-- ensure_room: keys
                SELECT count(*) FROM (SELECT 1 AS found FROM api_keys WHERE organisation = $1 LIMIT $2) AS counted"
            }
            Self::Runs => {
                "-- ensure_room: runs
                SELECT count(*) FROM (SELECT 1 AS found FROM runs WHERE session_id = $1 LIMIT $2) AS counted"
            }
            Self::SamplingSessions => {
                "-- ensure_room: sampling sessions
                SELECT count(*) FROM (
                    SELECT 1 AS found FROM sampling_sessions WHERE session_id = $1 LIMIT $2) AS counted"
            }
        }
    }
}

/// Refuses a further object of an owner that has as many as it may have.
///
/// # Errors
/// [`Error::Invalid`] with the number.
pub(crate) async fn ensure_room(conn: &mut Conn, bounded: Bounded, owner: &str) -> Result<(), Error> {
    let most = bounded.most();
    let counted = sql(bounded.statement()).bind(owner).bind(as_i64(most)).scalar::<i64>(conn).await;
    if counted.map_err(failed("count objects"))?.unwrap_or(0) < as_i64(most) {
        return Ok(());
    }
    let [kind, what] = bounded.names();
    let way_out = if kind == "session" { "; create another session for further ones" } else { "" };
    Err(Error::Invalid(format!("{kind} {owner} has {most} {what}, as many as it may have{way_out}")))
}

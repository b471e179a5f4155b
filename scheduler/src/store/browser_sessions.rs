//! The table `ended_browser_sessions`: logged-out sessions of browsers.

use super::db::{Conn, sql};
use super::failed;
use crate::{Error, Timestamp};

/// Records the end of a session whose token would be accepted until `expires_at`, and forgets sessions whose tokens
/// have expired.
pub(crate) async fn end_browser_session(
    conn: &mut Conn,
    token_id: &str,
    expires_at: Timestamp,
    now: Timestamp,
) -> Result<(), Error> {
    const EXPIRED: &str = "-- end_browser_session: expired
        DELETE FROM ended_browser_sessions WHERE expires_at < $1";
    const SQL: &str = "-- end_browser_session
        INSERT INTO ended_browser_sessions (token_id, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sql(EXPIRED).bind(now.0).execute(conn).await.map_err(failed("end a browser's session"))?;
    let ended = sql(SQL).bind(token_id).bind(expires_at.0).execute(conn).await;
    ended.map(drop).map_err(failed("end a browser's session"))
}

/// Returns whether a session has ended before its token expires.
pub(crate) async fn has_ended(conn: &mut Conn, token_id: &str) -> Result<bool, Error> {
    const SQL: &str = "-- has_ended
        SELECT EXISTS (SELECT 1 FROM ended_browser_sessions WHERE token_id = $1)";
    let ended = sql(SQL).bind(token_id).scalar(conn).await.map_err(failed("find a browser's session"))?;
    Ok(ended.unwrap_or(false))
}

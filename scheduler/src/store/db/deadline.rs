//! Deadlines of what is asked of a PostgreSQL server. A connection that was lost without a word answers nothing and
//! fails nothing, so only this side's clock tells.

use std::io;
use std::time::Duration;

/// For a connection: address, TLS, authentication.
pub(super) const CONNECT: Duration = Duration::from_secs(8);
/// For a statement. The server has given up before: see [`STATEMENT_ON_SERVER_MS`].
pub(super) const STATEMENT: Duration = Duration::from_secs(15);
/// For a statement that costs nothing.
pub(super) const PROBE: Duration = Duration::from_secs(3);
/// For a connection of the pool, including the time for which the server refuses new ones, as while it restarts.
pub(super) const ACQUIRE: Duration = Duration::from_secs(15);
/// After so long the server cancels a statement itself.
pub(super) const STATEMENT_ON_SERVER_MS: &str = "14000";

/// The answer, unless the limit passes before: then an input error of the kind "timed out".
pub(super) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let text = format!("no answer within {} s", limit.as_secs());
            Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, text)))
        }
    }
}

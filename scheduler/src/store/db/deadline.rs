//! Deadlines of operations on a PostgreSQL server. A connection that was lost silently neither answers nor fails, so
//! only the clock of this process can detect it.

use std::io;
use std::time::Duration;

/// Limit for a connection: address, TLS, authentication.
pub(super) const CONNECT: Duration = Duration::from_secs(8);
/// Limit for a statement. The server gives up earlier: see [`STATEMENT_ON_SERVER_MS`].
pub(super) const STATEMENT: Duration = Duration::from_secs(15);
/// Limit for a statement that costs nothing.
pub(super) const PROBE: Duration = Duration::from_secs(3);
/// Limit for a connection of the pool, including the time during which the server refuses new ones, for example while
/// it restarts.
pub(super) const ACQUIRE: Duration = Duration::from_secs(15);
/// Time after which the server itself cancels a statement.
pub(super) const STATEMENT_ON_SERVER_MS: &str = "14000";

/// Returns the answer, or an input error of the kind "timed out" if the limit passes first.
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

//! TLS to a PostgreSQL server: distinguishes its failures from an outage, and warns if it is not used.

use std::io;
use std::net::IpAddr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::{Conn, sql};
use crate::Error;
use crate::store::failed;

/// Returns why a connection could not be opened. Mistakes that an operator must repair here are named; everything else
/// may be an outage.
pub(super) fn open_failed(error: &sqlx::Error) -> Error {
    const OPENING: &str = "open the database";
    match tls_failure(error) {
        Some(reason) => Error::Tls(reason),
        None => Error::database(OPENING, error),
    }
}

fn tls_failure(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::Tls(error) => Some(error.to_string()),
        // The error is about certificates or keys: the rest of the configuration was checked before.
        sqlx::Error::Configuration(error) => Some(error.to_string()),
        sqlx::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => Some(error.to_string()),
            // Addresses do not fail like this, so the error is about a file.
            None if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                Some(format!("a certificate or key of the database URL, or its socket, can't be opened: {error}"))
            }
            None => None,
        },
        _ => None,
    }
}

/// Warns if passwords and data cross a network unencrypted.
pub(super) async fn warn_of_plaintext(conn: &mut Conn, options: &PgConnectOptions) -> Result<(), Error> {
    const SQL: &str = "-- warn_of_plaintext
        SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    if is_local(options) {
        return Ok(());
    }
    let encrypted = match options.get_ssl_mode() {
        PgSslMode::Require | PgSslMode::VerifyCa | PgSslMode::VerifyFull => true,
        PgSslMode::Disable | PgSslMode::Allow => false,
        // Behind a connection pooler there may be no answer.
        PgSslMode::Prefer => sql(SQL).scalar(conn).await.map_err(failed("open the database"))?.unwrap_or(true),
    };
    if !encrypted {
        tracing::warn!(
            host = options.get_host(),
            "the connection to the database is not encrypted: set sslmode=verify-full in the database URL"
        );
    }
    Ok(())
}

/// Returns whether the server is on this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host().trim_matches(['[', ']']);
    options.get_socket().is_some()
        || host.starts_with('/')
        || host == "localhost"
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::str::FromStr;

    use super::*;

    #[test]
    fn sockets_and_loopback_are_local() {
        let local = |url| is_local(&PgConnectOptions::from_str(url).unwrap());
        for url in ["postgres://u@127.0.0.1/db", "postgres://u@[::1]/db", "postgres://u@localhost:5433/db"] {
            assert!(local(url), "{url}");
        }
        assert!(local("postgres://%2Fvar%2Frun%2Fpostgresql/db"));
        for url in ["postgres://u@10.0.0.7/db", "postgres://u@db/db", "postgres://u@localhost.example/db"] {
            assert!(!local(url), "{url}");
        }
    }
}

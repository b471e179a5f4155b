//! A database for each test: a SQLite file, or a database on the server that `TEST_DATABASE_URL` names.

use std::path::Path;

use sqlx::{Connection, Executor, PgConnection};
use uuid::Uuid;

use crate::Database;

/// Variable that names a PostgreSQL server whose user may create databases and roles.
const URL: &str = "TEST_DATABASE_URL";

/// Kind of database that a test runs on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

/// Role that owns the tests' databases. The server's user may be a superuser, for whom row-level security does not
/// hold.
const ROLE: &str = "trainyard_test";

/// Creates the role, unless another test has created it.
async fn create_role(conn: &mut PgConnection) {
    // Tests may fill a large database without checks of each row.
    let text = format!(
        "CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE}'; GRANT SET ON PARAMETER session_replication_role TO {ROLE}"
    );
    let created = conn.execute(sqlx::AssertSqlSafe(text)).await;
    if let Err(error) = created {
        let code = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
        // Duplicate object, or unique violation if two tests create it at once.
        assert!(matches!(code.as_deref(), Some("42710" | "23505")), "{error}");
    }
}

/// A database that is removed after the test.
pub(crate) struct TestDatabase {
    pub(crate) database: Database,
    /// URL of the server and name of the database.
    created: Option<(String, String)>,
}

impl TestDatabase {
    pub(crate) async fn new(backend: Backend, dir: &Path) -> Self {
        match backend {
            Backend::Sqlite => Self { database: Database::Sqlite(dir.join("trainyard.db")), created: None },
            Backend::Postgres => Self::on_server().await,
        }
    }

    /// Creates a database without a schema.
    pub(crate) async fn empty(backend: Backend, dir: &Path) -> Self {
        match backend {
            Backend::Sqlite => Self::new(backend, dir).await,
            Backend::Postgres => Self::created_on_server().await,
        }
    }

    async fn on_server() -> Self {
        let created = Self::created_on_server().await;
        crate::migrate(&created.database).await.unwrap();
        created
    }

    async fn created_on_server() -> Self {
        let server = std::env::var(URL).unwrap_or_else(|_| {
            panic!("{URL} names no PostgreSQL server: `make test` starts one, and so does `cargo xtask postgres`")
        });
        let name = format!("trainyard_test_{}", Uuid::now_v7().simple());
        let mut conn = PgConnection::connect(&server).await.unwrap();
        create_role(&mut conn).await;
        conn.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name} OWNER {ROLE}"))).await.unwrap();
        conn.close().await.unwrap();
        let (base, query) = server.split_once('?').unwrap_or((&server, ""));
        let authority = base["postgres://".len()..].split('/').next().unwrap();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let url = format!("postgres://{ROLE}:{ROLE}@{host}/{name}{}{query}", if query.is_empty() { "" } else { "?" });
        let database = Database::Postgres(url);
        Self { database, created: Some((server, name)) }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some((server, name)) = self.created.take() else { return };
        // Use a separate runtime, because the current one may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut conn = PgConnection::connect(&server).await.unwrap();
                conn.execute(sqlx::AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"))).await.unwrap();
            });
        });
        dropped.join().unwrap();
    }
}

//! Databases from before the first release. Their schema, made by 31 migrations, is the one that the first migration of
//! this program creates, so only the migration history is replaced.

use sqlx::migrate::Migration;

use super::db::{Conn, Dialect, sql};
use super::failed;
use crate::Error;

/// SHA-384 of the last of these migrations, `0031_run_samples.sql`, for SQLite.
const SQLITE: [u8; 48] = [
    0x22, 0x8c, 0x73, 0xfd, 0x4f, 0x94, 0x13, 0x5e, 0x7e, 0x30, 0x57, 0x2a, 0x5b, 0x3b, 0x8e, 0xcf, 0x61, 0x6a, 0x75,
    0x01, 0xd0, 0x72, 0x3a, 0x82, 0x25, 0x03, 0xec, 0x97, 0x64, 0x09, 0x96, 0xf6, 0xca, 0x68, 0x50, 0xd5, 0x52, 0xf4,
    0x1d, 0xe8, 0x18, 0xe9, 0x2d, 0x67, 0x7b, 0xbd, 0x3f, 0x09,
];
/// The same for PostgreSQL.
const POSTGRES: [u8; 48] = [
    0x80, 0x73, 0xd8, 0x26, 0xf9, 0x7b, 0xd7, 0xcc, 0x41, 0xce, 0x80, 0x9e, 0x5f, 0xe9, 0x5c, 0x97, 0x9f, 0x2e, 0x6e,
    0x46, 0xbd, 0x5a, 0x96, 0x60, 0x84, 0xe6, 0x78, 0xed, 0x9f, 0xe4, 0xe9, 0x69, 0xc1, 0x91, 0xe9, 0x22, 0xd0, 0x1b,
    0xbf, 0x1e, 0x90, 0x23, 0x90, 0xcb, 0x3a, 0x18, 0x4d, 0x3a,
];

/// The checksum of the last of these migrations.
pub(super) fn checksum(dialect: Dialect) -> [u8; 48] {
    match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
    }
}

/// Rewrites the history of such a database to that of a new one.
pub(super) async fn adopt(conn: &mut Conn, initial: &Migration) -> Result<(), Error> {
    let former = checksum(conn.dialect());
    conn.begin().await.map_err(failed("migrate the database"))?;
    let done = rewrite(conn, initial, &former).await;
    let ended = if done.is_ok() { conn.commit().await } else { conn.rollback().await };
    done.and(ended).map_err(failed("migrate the database"))
}

async fn rewrite(conn: &mut Conn, initial: &Migration, former: &[u8]) -> Result<(), sqlx::Error> {
    const FORGET: &str = "-- adopt: forget
        DELETE FROM _sqlx_migrations WHERE version < $1";
    const RENAME: &str = "-- adopt: rename
        UPDATE _sqlx_migrations SET description = $1, checksum = $2 WHERE version = $3 AND checksum = $4";
    // SQLite files were left at the version that introduced the table.
    const COMPATIBILITY: &str = "-- adopt: compatibility
        UPDATE schema_compatibility SET oldest_program = $1 WHERE oldest_program < $1";
    sql(FORGET).bind(initial.version).execute(conn).await?;
    let rename = sql(RENAME).bind(&*initial.description).bind(&*initial.checksum).bind(initial.version).bind(former);
    rename.execute(conn).await?;
    sql(COMPATIBILITY).bind(initial.version).execute(conn).await.map(drop)
}

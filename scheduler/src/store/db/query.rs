//! Statements with parameters, and rows of results.

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, TryStreamExt};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Decode, Postgres, Row as _, Sqlite, Type};

use super::deadline::STATEMENT;
use super::value::Value;
use super::{Conn, Raw};
use crate::Error;
use crate::budgets::PAGE_BYTES;
use crate::store::failed;

/// A statement with its parameters.
pub(crate) struct Sql<'q> {
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
    pub(super) values: Vec<Value<'q>>,
    /// Longest time that a PostgreSQL server may take for the statement.
    pub(super) limit: Duration,
}

/// Returns a statement that both databases support.
pub(crate) fn sql<'q>(text: &'static str) -> Sql<'q> {
    sql_by(text, text)
}

/// Returns a statement with a text for each database.
pub(crate) fn sql_by<'q>(sqlite: &'static str, postgres: &'static str) -> Sql<'q> {
    Sql { sqlite, postgres, values: Vec::new(), limit: STATEMENT }
}

impl<'q> Sql<'q> {
    /// Returns a statement that both databases support, with the values of its parameters.
    pub(crate) fn of(text: &'static str, values: Vec<Value<'q>>) -> Self {
        Self { values, ..sql(text) }
    }

    /// Binds the value of the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Sets the longest time that a PostgreSQL server may take.
    pub(super) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Executes the statement and returns the number of changed rows.
    pub(crate) async fn execute(self, conn: &mut Conn) -> Result<u64, sqlx::Error> {
        #[cfg(test)]
        self.record();
        match conn.raw() {
            Raw::Sqlite(conn) => for_sqlite(self).execute(conn).await.map(|done| done.rows_affected()),
            Raw::Postgres(conn) => {
                let done = conn.run(self.limit, |conn| for_postgres(self).execute(conn)).await;
                done.map(|done| done.rows_affected())
            }
        }
    }

    pub(crate) async fn fetch_all(self, conn: &mut Conn) -> Result<Vec<Row>, sqlx::Error> {
        #[cfg(test)]
        self.record();
        Ok(match conn.raw() {
            Raw::Sqlite(conn) => for_sqlite(self).fetch_all(conn).await?.into_iter().map(Row::Sqlite).collect(),
            Raw::Postgres(conn) => {
                let rows = conn.run(self.limit, |conn| for_postgres(self).fetch_all(conn)).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// The first rows, while a column of texts has no more than so many bytes in them together; the first row in any case.
    /// Rows that follow are not kept.
    pub(crate) async fn fetch_within(
        self,
        conn: &mut Conn,
        texts: &'static str,
        most: usize,
    ) -> Result<BoundedRows, sqlx::Error> {
        #[cfg(test)]
        self.record();
        match conn.raw() {
            Raw::Sqlite(conn) => bounded(for_sqlite(self).fetch(conn).map_ok(Row::Sqlite), texts, most).await,
            Raw::Postgres(conn) => {
                let read = |conn| bounded(for_postgres(self).fetch(conn).map_ok(Row::Postgres), texts, most);
                conn.run(STATEMENT, read).await
            }
        }
    }

    pub(crate) async fn fetch_optional(self, conn: &mut Conn) -> Result<Option<Row>, sqlx::Error> {
        #[cfg(test)]
        self.record();
        Ok(match conn.raw() {
            Raw::Sqlite(conn) => for_sqlite(self).fetch_optional(conn).await?.map(Row::Sqlite),
            Raw::Postgres(conn) => {
                conn.run(self.limit, |conn| for_postgres(self).fetch_optional(conn)).await?.map(Row::Postgres)
            }
        })
    }

    /// Returns the first column of all rows.
    pub(crate) async fn scalars<T: Column>(self, conn: &mut Conn) -> Result<Vec<T>, sqlx::Error> {
        self.fetch_all(conn).await?.iter().map(|row| row.get(0)).collect()
    }

    /// Returns the first column of the first row.
    pub(crate) async fn scalar<T: Column>(self, conn: &mut Conn) -> Result<Option<T>, sqlx::Error> {
        self.fetch_optional(conn).await?.map(|row| row.get(0)).transpose()
    }
}

/// Rows of which no more were read than their texts allow.
pub(crate) struct BoundedRows {
    pub(crate) rows: Vec<Row>,
    /// Whether there are more.
    pub(crate) is_cut: bool,
}

/// The rows of one page of a listing. A page that its metadata does not allow is refused: one that is cut would look like
/// the last.
pub(crate) async fn page_of(list: Sql<'_>, conn: &mut Conn, doing: &'static str) -> Result<Vec<Row>, Error> {
    let read = list.fetch_within(conn, "user_metadata", PAGE_BYTES).await.map_err(failed(doing))?;
    if read.is_cut {
        let (mib, fit) = (PAGE_BYTES >> 20, read.rows.len());
        return Err(Error::Invalid(format!(
            "limit: the page has more than {mib} MiB of user_metadata, which its first {fit} entries fill; ask for fewer \
             entries at once"
        )));
    }
    Ok(read.rows)
}

async fn bounded(
    rows: impl Stream<Item = Result<Row, sqlx::Error>>,
    texts: &'static str,
    most: usize,
) -> Result<BoundedRows, sqlx::Error> {
    let mut stream = pin!(rows);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = stream.try_next().await? {
        bytes += row.text_bytes(texts)?;
        if bytes > most && !rows.is_empty() {
            return Ok(BoundedRows { rows, is_cut: true });
        }
        rows.push(row);
    }
    Ok(BoundedRows { rows, is_cut: false })
}

fn for_sqlite(statement: Sql<'_>) -> Query<'_, Sqlite, SqliteArguments> {
    bind_sqlite(sqlx::query(statement.sqlite), statement.values)
}

pub(super) fn bind_sqlite<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    values: Vec<Value<'q>>,
) -> Query<'q, Sqlite, SqliteArguments> {
    let mut query = query;
    for value in values {
        query = match value {
            Value::Text(text) => query.bind(text),
            Value::OwnedText(text) => query.bind(text),
            Value::Int(number) => query.bind(number),
            Value::Bool(truth) => query.bind(truth),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Texts(texts) => query.bind(serde_json::Value::from(texts).to_string()),
        };
    }
    query
}

fn for_postgres(statement: Sql<'_>) -> Query<'_, Postgres, PgArguments> {
    bind_postgres(sqlx::query(statement.postgres), statement.values)
}

pub(super) fn bind_postgres<'q>(
    query: Query<'q, Postgres, PgArguments>,
    values: Vec<Value<'q>>,
) -> Query<'q, Postgres, PgArguments> {
    let mut query = query;
    for value in values {
        query = match value {
            Value::Text(text) => query.bind(text),
            Value::OwnedText(text) => query.bind(text),
            Value::Int(number) => query.bind(number),
            Value::Bool(truth) => query.bind(truth),
            Value::Bytes(bytes) => query.bind(bytes),
            Value::Texts(texts) => query.bind(texts),
        };
    }
    query
}

/// A row of a result.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Types that a column may contain.
pub(crate) trait Column:
    for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres>
{
}

impl<T> Column for T where T: for<'r> Decode<'r, Sqlite> + Type<Sqlite> + for<'r> Decode<'r, Postgres> + Type<Postgres> {}

impl Row {
    /// Bytes of a text.
    fn text_bytes(&self, column: &'static str) -> Result<usize, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get::<&str, _>(column).map(str::len),
            Self::Postgres(row) => row.try_get::<&str, _>(column).map(str::len),
        }
    }

    pub(super) fn get<T: Column>(&self, index: usize) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => row.try_get(index),
            Self::Postgres(row) => row.try_get(index),
        }
    }
}

/// Bytes of a column that holds a text.
pub(crate) fn text_bytes(row: &Row, name: &'static str) -> Result<usize, Error> {
    row.text_bytes(name).map_err(failed("read a row"))
}

/// Returns the value of a column.
pub(crate) fn column<T: Column>(row: &Row, name: &'static str) -> Result<T, Error> {
    let value = match row {
        Row::Sqlite(row) => row.try_get(name),
        Row::Postgres(row) => row.try_get(name),
    };
    value.map_err(failed("read a row"))
}

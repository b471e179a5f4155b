//! Rows of any table, and statements whose text consists of names of tables and columns.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use sqlx::AssertSqlSafe;

use super::deadline::STATEMENT;
use super::query::{Row, bind_postgres, bind_sqlite};
use super::value::Value;
use super::{Conn, Raw};

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    /// A boolean, which is an integer in SQLite.
    Bool,
    Bytes,
}

impl Kind {
    /// Returns the kind for the name of a type in either database.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "text" => Some(Self::Text),
            "integer" | "int" | "bigint" => Some(Self::Int),
            "boolean" => Some(Self::Bool),
            "blob" | "bytea" => Some(Self::Bytes),
            _ => None,
        }
    }
}

/// A value of a row. Booleans are 0 or 1, as in SQLite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
}

/// Key that marks bytes in JSON.
const BASE64: &str = "base64";

impl Cell {
    /// Returns the value as JSON: `null`, a string, a number, or `{"base64": …}`.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Text(text) => Json::from(text.as_str()),
            Self::Int(number) => Json::from(*number),
            Self::Bytes(bytes) => json!({ BASE64: STANDARD.encode(bytes) }),
        }
    }

    /// Reads the JSON of [`Self::to_json`] for a column of this kind; `None` if it does not fit.
    pub(crate) fn from_json(value: Json, kind: Kind) -> Option<Self> {
        match (value, kind) {
            (Json::Null, _) => Some(Self::Null),
            (Json::String(text), Kind::Text) => Some(Self::Text(text)),
            (Json::Number(number), Kind::Int) => number.as_i64().map(Self::Int),
            (Json::Number(number), Kind::Bool) => number.as_i64().filter(|truth| [0, 1].contains(truth)).map(Self::Int),
            (Json::Object(object), Kind::Bytes) => STANDARD.decode(object.get(BASE64)?.as_str()?).ok().map(Self::Bytes),
            _ => None,
        }
    }

    /// Returns the parameter for a column of this kind, which an absent value has too.
    pub(crate) fn bind(&self, kind: Kind) -> Value<'_> {
        match (self, kind) {
            (Self::Text(text), _) => Value::Text(Some(text)),
            (Self::Int(number), Kind::Bool) => Value::Bool(Some(*number != 0)),
            (Self::Int(number), _) => Value::Int(Some(*number)),
            (Self::Bytes(bytes), _) => Value::Bytes(Some(bytes)),
            (Self::Null, Kind::Text) => Value::Text(None),
            (Self::Null, Kind::Int) => Value::Int(None),
            (Self::Null, Kind::Bool) => Value::Bool(None),
            (Self::Null, Kind::Bytes) => Value::Bytes(None),
        }
    }
}

/// Returns the cells of a row whose columns are of these kinds.
pub(crate) fn cells(row: &Row, kinds: &[Kind]) -> Result<Vec<Cell>, sqlx::Error> {
    let cell = |(at, kind): (usize, &Kind)| {
        Ok(match kind {
            Kind::Text => row.get::<Option<String>>(at)?.map(Cell::Text),
            Kind::Int => row.get::<Option<i64>>(at)?.map(Cell::Int),
            Kind::Bool => row.get::<Option<bool>>(at)?.map(|truth| Cell::Int(i64::from(truth))),
            Kind::Bytes => row.get::<Option<Vec<u8>>>(at)?.map(Cell::Bytes),
        }
        .unwrap_or(Cell::Null))
    };
    kinds.iter().enumerate().map(cell).collect()
}

/// Reads with a statement whose text contains only names from the database and numbers.
pub(crate) async fn fetch_text(conn: &mut Conn, text: String, values: Vec<Value<'_>>) -> Result<Vec<Row>, sqlx::Error> {
    let query = AssertSqlSafe(text);
    Ok(match conn.raw() {
        Raw::Sqlite(conn) => {
            let rows = bind_sqlite(sqlx::query(query), values).fetch_all(conn).await?;
            rows.into_iter().map(Row::Sqlite).collect()
        }
        Raw::Postgres(conn) => {
            let read = |conn| bind_postgres(sqlx::query(query), values).fetch_all(conn);
            conn.run(STATEMENT, read).await?.into_iter().map(Row::Postgres).collect()
        }
    })
}

/// Changes rows with such a statement; see [`fetch_text`]. Returns the number of changed rows.
pub(crate) async fn execute_text(conn: &mut Conn, text: String, values: Vec<Value<'_>>) -> Result<u64, sqlx::Error> {
    let query = AssertSqlSafe(text);
    Ok(match conn.raw() {
        Raw::Sqlite(conn) => bind_sqlite(sqlx::query(query), values).execute(conn).await?.rows_affected(),
        Raw::Postgres(conn) => {
            let change = |conn| bind_postgres(sqlx::query(query), values).execute(conn);
            conn.run(STATEMENT, change).await?.rows_affected()
        }
    })
}

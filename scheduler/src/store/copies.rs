//! Copies of tables between databases of any kind. Columns are those of the database, so that a column added by a
//! migration is copied too. Tables are listed ([`TABLES`]) in an order in which rows can be inserted.

use serde_json::Value as Json;

use super::db::cells::{Cell, Kind, cells, execute_text, fetch_text};
use super::db::{Conn, Dialect, Value, column, sql_by};
use super::failed;
use crate::Error;

/// A table that a copy contains.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns of the primary key.
    key: &'static [&'static str],
    /// Number of rows that are read at once.
    page: i64,
    /// Columns that name a file of `blobs/` in the storage.
    pub(crate) blobs: &'static [&'static str],
    /// Columns that name a folder of the storage.
    pub(crate) folders: &'static [&'static str],
    /// Whether migrations insert its rows; those of a copy replace them.
    pub(crate) has_first_rows: bool,
}

/// Every table of a copy; tables that others refer to come first. Tables about processes are left out.
pub(crate) const TABLES: [Table; 27] = [
    table("secrets", &["name"]),
    table("sessions", &["id"]),
    Table { folders: &["snapshot_dir"], ..table("runs", &["id"]) },
    Table { folders: &["checkpoint_dir", "snapshot_dir"], ..table("sampling_sessions", &["id"]) },
    table("custom_losses", &["id"]),
    Table { blobs: &["payload_file", "result_file"], ..table("requests", &["arrival"]) },
    Table { folders: &["dir"], ..table("loads", &["request_id"]) },
    Table { folders: &["dir"], ..table("checkpoints", &["run_id", "kind", "name"]) },
    table("run_metrics", &["run_id", "step", "seq_id"]),
    // A row may take some hundred KiB.
    Table { page: 50, ..table("run_samples", &["run_id", "at", "request_id"]) },
    table("agent_sessions", &["id"]),
    // A row may take some hundred KiB.
    Table { page: 50, ..table("agent_turns", &["session_id", "number"]) },
    table("ended_browser_sessions", &["token_id"]),
    table("base_models", &["name"]),
    // Tokenizers take megabytes.
    Table { page: 4, ..table("base_model_files", &["model", "name"]) },
    table("rate_limits", &["tenant"]),
    table("organisations", &["name"]),
    table("projects", &["organisation", "id"]),
    table("users", &["id"]),
    table("api_keys", &["id"]),
    table("audit_log", &["id"]),
    table("usage", &["request_id"]),
    table("usage_by_hour", &["tenant", "hour", "session_id", "base_model", "project_id", "user_id"]),
    table("usage_rows", &["tenant", "hour"]),
    table("usage_kept", &["tenant"]),
    Table { has_first_rows: true, ..table("usage_progress", &["until_at"]) },
    table("stored_checkpoints", &["run_id", "kind", "name", "from_at"]),
];

const fn table(name: &'static str, key: &'static [&'static str]) -> Table {
    Table { name, key, page: 64, blobs: &[], folders: &[], has_first_rows: false }
}

/// Columns of a table, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(Vec<(String, Kind)>);

impl Columns {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the index of a column.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(column, _)| column == name)
    }

    /// Selects only these columns, in this order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unknown column.
    pub(crate) fn select(&self, names: &[String]) -> Result<Self, Error> {
        let find = |name: &String| {
            let found = self.position(name).map(|at| self.0[at].clone());
            found.ok_or_else(|| Error::Invalid(format!("unknown column {name:?}")))
        };
        names.iter().map(find).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the cells of a row that [`Cell::to_json`] wrote; `None` if they do not fit the columns.
    pub(crate) fn parse(&self, row: Vec<Json>) -> Option<Vec<Cell>> {
        if row.len() != self.0.len() {
            return None;
        }
        row.into_iter().zip(&self.0).map(|(value, (_, kind))| Cell::from_json(value, *kind)).collect()
    }

    fn list(&self) -> String {
        list(&self.names())
    }
}

/// Returns the names of a database's tables.
pub(crate) async fn table_names(conn: &mut Conn) -> Result<Vec<String>, Error> {
    const SQLITE: &str = "-- table_names
        SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    const POSTGRES: &str = "-- table_names
        SELECT table_name::text FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name";
    sql_by(SQLITE, POSTGRES).scalars(conn).await.map_err(failed("list the tables"))
}

/// Returns the columns of a table.
pub(crate) async fn columns(conn: &mut Conn, table: &str) -> Result<Columns, Error> {
    const SQLITE: &str = "-- columns
        SELECT name, type AS kind FROM pragma_table_info($1) ORDER BY cid";
    const POSTGRES: &str = "-- columns
        SELECT column_name::text AS name, data_type::text AS kind FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position";
    let doing = "list the columns of a table";
    let rows = sql_by(SQLITE, POSTGRES).bind(table).fetch_all(conn).await.map_err(failed(doing))?;
    let mut columns = Vec::with_capacity(rows.len());
    for row in &rows {
        let (name, kind): (String, String) = (column(row, "name")?, column(row, "kind")?);
        let unknown = || Error::store(doing, format!("{table}.{name} is of the type {kind}"));
        columns.push((name.clone(), Kind::of(&kind).ok_or_else(unknown)?));
    }
    Ok(Columns(columns))
}

/// Returns the next rows of a table in the order of its key, behind a row.
pub(crate) async fn next_rows(
    conn: &mut Conn,
    table: &Table,
    columns: &Columns,
    after: Option<&[Cell]>,
) -> Result<Vec<Vec<Cell>>, Error> {
    let (key, parameters) = (list(table.key), parameters(0, table.key.len()));
    let mut values = Vec::new();
    let behind = match after {
        None => String::new(),
        Some(row) => {
            for name in table.key {
                let Some(at) = columns.position(name) else { return Err(Error::store("read a table", name)) };
                values.push(row[at].bind(columns.0[at].1));
            }
            format!("WHERE ({key}) > {parameters}")
        }
    };
    values.push(Value::from(table.page));
    let text =
        format!("SELECT {} FROM \"{}\" {behind} ORDER BY {key} LIMIT ${}", columns.list(), table.name, values.len());
    let rows = fetch_text(conn, text, values).await.map_err(failed("read a table"))?;
    let kinds: Vec<Kind> = columns.0.iter().map(|(_, kind)| *kind).collect();
    rows.iter().map(|row| cells(row, &kinds).map_err(failed("read a table"))).collect()
}

/// Inserts rows with these columns; the other columns get their defaults.
pub(crate) async fn insert_rows(
    conn: &mut Conn,
    table: &Table,
    columns: &Columns,
    rows: &[Vec<Cell>],
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let width = columns.0.len();
    let groups: Vec<String> = (0..rows.len()).map(|row| parameters(row * width, width)).collect();
    // The copy keeps the order of arrival.
    let own_numbers = if conn.dialect() == Dialect::Postgres { "OVERRIDING SYSTEM VALUE" } else { "" };
    let text =
        format!("INSERT INTO \"{}\" ({}) {own_numbers} VALUES {}", table.name, columns.list(), groups.join(", "));
    let values = rows.iter().flat_map(|row| row.iter().zip(&columns.0)).map(|(cell, (_, kind))| cell.bind(*kind));
    execute_text(conn, text, values.collect()).await.map(drop).map_err(failed("fill a table"))
}

/// Deletes all rows of a table.
pub(crate) async fn clear(conn: &mut Conn, table: &Table) -> Result<(), Error> {
    let text = format!("DELETE FROM \"{}\"", table.name);
    execute_text(conn, text, Vec::new()).await.map(drop).map_err(failed("clear a table"))
}

/// Makes later requests arrive behind all that were copied.
pub(crate) async fn continue_arrivals(conn: &mut Conn) -> Result<(), Error> {
    // SQLite continues the numbers by itself.
    const SQLITE: &str = "-- continue_arrivals
        SELECT 1";
    const POSTGRES: &str = "-- continue_arrivals
        SELECT setval(pg_get_serial_sequence('requests', 'arrival'), coalesce(max(arrival), 0) + 1, false)
        FROM requests";
    let done = sql_by(SQLITE, POSTGRES).execute(conn).await;
    done.map(drop).map_err(failed("continue the order of arrivals"))
}

/// Returns whether a table is empty.
pub(crate) async fn is_empty(conn: &mut Conn, table: &str) -> Result<bool, Error> {
    let text = format!("SELECT 1 FROM \"{}\" LIMIT 1", table.replace('"', "\"\""));
    let rows = fetch_text(conn, text, Vec::new()).await.map_err(failed("look at a table"))?;
    Ok(rows.is_empty())
}

/// Returns a list of names, `"a", "b"`.
fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    quoted.join(", ")
}

/// Returns a list of parameters, `($1, $2)`, behind `before` others.
fn parameters(before: usize, count: usize) -> String {
    let numbered: Vec<String> = (before + 1..=before + count).map(|number| format!("${number}")).collect();
    format!("({})", numbered.join(", "))
}

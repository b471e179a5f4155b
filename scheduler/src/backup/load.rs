//! Loads the rows of a backup into a database.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;

use serde_json::Value as Json;

use super::rows::file_of;
use super::{BackupError, Manifest};
use crate::execution::crashes::WorkerEnd;
use crate::store::copies::{Columns, TABLES, Table, clear, columns, continue_arrivals, insert_rows};
use crate::store::db::Conn;
use crate::store::db::cells::Cell;
use crate::store::{failed, leases};

/// Number of rows that one statement inserts.
const ROWS: usize = 16;

/// Inserts all rows in one transaction, which also releases all leases.
pub(super) async fn load_tables(conn: &mut Conn, backup: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    conn.begin().await.map_err(failed("write"))?;
    match load_all(conn, backup, manifest).await {
        Ok(()) => Ok(conn.commit().await.map_err(failed("write"))?),
        Err(error) => {
            let _ = conn.rollback().await;
            Err(error)
        }
    }
}

async fn load_all(conn: &mut Conn, backup: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    for table in TABLES.iter().filter(|table| manifest.files.contains_key(&file_of(table))) {
        let loaded = load_table(conn, table, backup).await?;
        if manifest.rows.get(table.name) != Some(&loaded) {
            return Err(BackupError::Damaged(format!("{} has {loaded} rows", file_of(table))));
        }
    }
    let unknown = manifest.rows.keys().find(|name| TABLES.iter().all(|table| table.name != name.as_str()));
    if let Some(name) = unknown {
        return Err(BackupError::Refused(format!("unknown table {name} in the backup")));
    }
    continue_arrivals(conn).await?;
    leases::release_all(conn, None, WorkerEnd::Orderly).await?;
    Ok(())
}

async fn load_table(conn: &mut Conn, table: &Table, backup: &Path) -> Result<u64, BackupError> {
    let mut file = TableFile::open(table, backup)?;
    let columns = columns(conn, table.name).await?.select(&file.header()?)?;
    if table.has_first_rows {
        clear(conn, table).await?;
    }
    let mut count = 0;
    loop {
        let rows = file.rows(&columns, ROWS)?;
        if rows.is_empty() {
            return Ok(count);
        }
        insert_rows(conn, table, &columns, &rows).await?;
        count += rows.len() as u64;
    }
}

/// Line-by-line reader of a table's file.
struct TableFile {
    name: String,
    lines: Lines<BufReader<File>>,
}

impl TableFile {
    fn open(table: &Table, backup: &Path) -> Result<Self, BackupError> {
        let name = file_of(table);
        let path = backup.join(&name);
        let file = File::open(&path).map_err(BackupError::file(&path))?;
        Ok(Self { name, lines: BufReader::new(file).lines() })
    }

    /// Returns the names of the columns.
    fn header(&mut self) -> Result<Vec<String>, BackupError> {
        self.next()?.ok_or_else(|| self.damaged("the file is empty"))
    }

    /// Returns the next rows, at most `limit`.
    fn rows(&mut self, columns: &Columns, limit: usize) -> Result<Vec<Vec<Cell>>, BackupError> {
        let mut rows = Vec::new();
        while rows.len() < limit
            && let Some(values) = self.next::<Vec<Json>>()?
        {
            rows.push(columns.parse(values).ok_or_else(|| self.damaged("a row does not match its columns"))?);
        }
        Ok(rows)
    }

    fn next<T: serde::de::DeserializeOwned>(&mut self) -> Result<Option<T>, BackupError> {
        let Some(line) = self.lines.next() else { return Ok(None) };
        let line = line.map_err(|error| self.damaged(error))?;
        serde_json::from_str(&line).map(Some).map_err(|error| self.damaged(error))
    }

    fn damaged(&self, detail: impl std::fmt::Display) -> BackupError {
        BackupError::Damaged(format!("{}: {detail}", self.name))
    }
}

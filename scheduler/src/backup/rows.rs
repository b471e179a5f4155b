//! Tables as files: the first line contains the names of the columns, each further line a row, in the order of the key.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::BackupError;
use super::digest::{DigestWriter, FileDigest};
use super::files::Partial;
use crate::store::copies::{Columns, Table, columns, next_rows};
use crate::store::db::Conn;
use crate::store::db::cells::Cell;

/// Objects of the storage that rows name.
#[derive(Default)]
pub(super) struct Named {
    /// Names of files in `blobs/`.
    pub(super) blobs: BTreeSet<String>,
    pub(super) folders: BTreeSet<PathBuf>,
}

/// Returns the name of a table's file in a backup.
pub(super) fn file_of(table: &Table) -> String {
    format!("tables/{}.jsonl", table.name)
}

/// Copies a table to a backup. Returns the number of its rows.
pub(super) async fn dump(
    conn: &mut Conn,
    table: &Table,
    partial: &Partial,
    named: &mut Named,
) -> Result<(u64, FileDigest), BackupError> {
    let columns = columns(conn, table.name).await?;
    let mut file = DigestWriter::create(&partial.place(&file_of(table))?).await?;
    file.write(line(&columns.names())?.as_bytes()).await?;
    let (mut count, mut last): (u64, Option<Vec<Cell>>) = (0, None);
    loop {
        let mut rows = next_rows(conn, table, &columns, last.as_deref()).await?;
        for row in &rows {
            named.add(table, &columns, row);
            let row: Vec<_> = row.iter().map(Cell::to_json).collect();
            file.write(line(&row)?.as_bytes()).await?;
        }
        count += rows.len() as u64;
        match rows.pop() {
            Some(row) => last = Some(row),
            None => return Ok((count, file.finish().await?)),
        }
    }
}

impl Named {
    fn add(&mut self, table: &Table, columns: &Columns, row: &[Cell]) {
        let text = |name: &&str| match &row[columns.position(name)?] {
            Cell::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.blobs.extend(table.blobs.iter().filter_map(text));
        self.folders.extend(table.folders.iter().filter_map(text).map(PathBuf::from));
    }
}

fn line(values: &impl serde::Serialize) -> Result<String, BackupError> {
    let text = serde_json::to_string(values);
    text.map(|text| text + "\n").map_err(|error| BackupError::Refused(format!("a row can't be written: {error}")))
}

//! Columns of a run's metrics in a Parquet file: a row per request, a column per metric.

use std::collections::BTreeSet;

use trainyard_scheduler::RunMetrics;

use crate::parquet::{Column, ColumnKind, Values};

/// Columns that precede the metrics.
const FIXED: [(&str, ColumnKind); 4] = [
    ("step", ColumnKind::Integer),
    ("seq_id", ColumnKind::Integer),
    ("kind", ColumnKind::Text),
    ("time", ColumnKind::TimeMs),
];

/// Returns the columns of the file. Metrics have the same names as in results.
pub(super) fn columns(names: &BTreeSet<String>) -> Vec<Column> {
    let fixed = FIXED.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind });
    let metrics = names.iter().map(|name| Column { name: name.clone(), kind: ColumnKind::OptionalDouble });
    fixed.chain(metrics).collect()
}

/// Returns the values of the rows, column by column.
pub(super) fn values<'a>(rows: &'a [RunMetrics], names: &BTreeSet<String>) -> Vec<Values<'a>> {
    let mut values = vec![
        Values::Integers(rows.iter().map(|row| row.step).collect()),
        Values::Integers(rows.iter().map(|row| row.seq_id).collect()),
        Values::Texts(rows.iter().map(|row| row.kind.as_str()).collect()),
        Values::Integers(rows.iter().map(|row| row.at.as_millis()).collect()),
    ];
    for name in names {
        values.push(Values::OptionalDoubles(rows.iter().map(|row| row.values.get(name).copied().flatten()).collect()));
    }
    values
}

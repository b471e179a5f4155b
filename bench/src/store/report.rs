//! The report of the store that `trainyard-bench --store` prints.

use std::io::{self, Write};

use serde::Serialize;

use crate::measured::Spread;

/// Measurements of all stores.
#[derive(Debug, Serialize)]
pub(crate) struct StoreReport {
    /// Load average of the last minute.
    pub(super) load_average: Option<f64>,
    /// Numbers of retained requests, in ascending order.
    pub(super) retained: Vec<usize>,
    pub(super) stores: Vec<StoreTimes>,
}

/// Measurements of one store.
#[derive(Debug, Serialize)]
pub(super) struct StoreTimes {
    pub(super) name: &'static str,
    pub(super) operations: Vec<Operation>,
}

/// Times of an operation.
#[derive(Debug, Serialize)]
pub(super) struct Operation {
    pub(super) name: &'static str,
    /// Milliseconds for each number of retained requests.
    pub(super) ms: Vec<Spread>,
}

impl Operation {
    /// Returns the median at the most retained requests, relative to that at the fewest.
    pub(super) fn growth(&self) -> f64 {
        match (self.ms.first(), self.ms.last()) {
            (Some(first), Some(last)) => last.median / first.median,
            _ => f64::NAN,
        }
    }
}

impl StoreReport {
    /// Writes the report as a table for people.
    pub(crate) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "median ms by retained requests")?;
        if let Some(load) = self.load_average {
            write!(out, ", load average {load:.2}")?;
        }
        writeln!(out, "; growth from the fewest to the most")?;
        for store in &self.stores {
            write!(out, "\n{:<22}", store.name)?;
            for retained in &self.retained {
                write!(out, " {retained:>9}")?;
            }
            writeln!(out, " {:>9}", "growth")?;
            for operation in &store.operations {
                write!(out, "{:<22}", operation.name)?;
                for ms in &operation.ms {
                    write!(out, " {:>9.2}", ms.median)?;
                }
                writeln!(out, " {:>8.2}x", operation.growth())?;
            }
        }
        Ok(())
    }
}

//! The report of the engine that `trainyard-bench` prints.

use std::io::{self, Write};

use serde::Serialize;

use crate::measured::{Measured, Overhead, Spread};

/// All measurements of the engine.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) parameters: u64,
    pub(super) dtype: &'static str,
    /// Device: cpu, or a GPU.
    pub(super) device: String,
    pub(super) isa: &'static str,
    /// Caches and the way in which GEMMs are cut; for a GPU, its name and memory.
    pub(super) blocking: String,
    pub(super) threads: usize,
    /// Load average of the last minute.
    pub(super) load_average: Option<f64>,
    /// Rate of a packed GEMM of 2048x576 by 576x3072; on a GPU, of extents that take it 10 ms.
    pub(super) gemm_gflops: f64,
    /// Rate of reading memory in order with all threads; on a GPU, of copying its memory.
    pub(super) read_gb_per_second: f64,
    pub(super) workloads: Vec<Measured>,
    /// Cost of ranks that share the threads, relative to one rank with all threads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) overheads: Vec<Overhead>,
}

impl Report {
    /// Writes the report as tables for people.
    pub(super) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{} ({:.0} M parameters), {}", self.model, self.parameters as f64 / 1e6, self.dtype)?;
        write!(out, "{} with {} threads", self.isa, self.threads)?;
        if let Some(load) = self.load_average {
            write!(out, ", load average {load:.2}")?;
        }
        write!(out, "\n{}", self.blocking)?;
        let (gflops, read) = (self.gemm_gflops, self.read_gb_per_second);
        if self.device == "cpu" {
            writeln!(out, "\npacked GEMM 2048x576x3072: {gflops:.0} GFLOP/s; memory is read at {read:.1} GB/s\n")?;
        } else {
            writeln!(out, "\nGEMM in bf16: {gflops:.0} GFLOP/s; memory is copied at {read:.1} GB/s\n")?;
        }
        writeln!(
            out,
            "{:<6} {:<18} {:>9} {:>19} {:>9} {:>9} {:>9} {:>7} {:>9} {:>8} {:>8} {:>8}",
            "",
            "shape",
            "tokens/s",
            "[min - max]",
            "ms/token",
            "first s",
            "peak MiB",
            "others",
            "GEMM",
            "GFLOP/s",
            "of peak",
            "of read"
        )?;
        for work in &self.workloads {
            let rate = &work.tokens_per_second;
            writeln!(
                out,
                "{:<6} {:<18} {:>9.1} {:>19} {:>9} {:>9.2} {:>9} {:>7} {:>9} {:>8} {:>8} {:>8}",
                work.name,
                work.shape,
                rate.median,
                format!("[{:.1} - {:.1}]", rate.min, rate.max),
                optional(work.ms_per_token, 1),
                work.first_seconds,
                optional(work.peak_memory_mib, 0),
                optional(work.other_cores, 2),
                percent(work.gemm.map(|gemm| gemm.fraction)),
                optional(work.gemm.map(|gemm| gemm.gflops), 0),
                percent(work.gemm.map(|gemm| gemm.of_peak)),
                percent(work.read.map(|read| read.of_bandwidth)),
            )?;
        }
        self.write_ranks(out)?;
        writeln!(out, "\nfirst: the warm-up; others: cores that other processes kept busy")?;
        writeln!(out, "GEMM: fraction of all threads' time; of read: weights, relative to reading memory")
    }

    /// Writes the cost of ranks.
    fn write_ranks(&self, out: &mut impl Write) -> io::Result<()> {
        if self.overheads.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nRanks share the threads; the second line of a workload is theirs, and of rank 0 where it is of one rank"
        )?;
        for work in &self.workloads {
            let Some(exchanged) = work.collectives else { continue };
            writeln!(
                out,
                "{:<5} {:<10} {:.3} s in collectives ({:.0}%), {:.0} bytes per token",
                work.name,
                work.layout,
                exchanged.seconds,
                exchanged.fraction * 100.0,
                exchanged.bytes_per_token
            )?;
        }
        for Overhead { layout, name, ratio: Spread { median, min, max } } in &self.overheads {
            let percent = |ratio: &f64| (ratio - 1.0) * 100.0;
            let [median, min, max] = [median, min, max].map(percent);
            writeln!(out, "overhead of {layout}: {name} {median:.1}% [{min:.1} - {max:.1}]")?;
        }
        Ok(())
    }
}

fn percent(fraction: Option<f64>) -> String {
    fraction.map_or_else(|| "-".to_owned(), |fraction| format!("{:.0}%", fraction * 100.0))
}

fn optional(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

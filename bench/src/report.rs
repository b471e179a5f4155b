//! What `trainyard bench` prints.

use std::io::{self, Write};

use serde::Serialize;

/// Everything measured.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) parameters: u64,
    pub(super) dtype: &'static str,
    /// What was computed on: cpu, or a GPU.
    pub(super) device: String,
    pub(super) isa: &'static str,
    /// Caches, and how GEMMs are cut; of a GPU its name and memory.
    pub(super) blocking: String,
    pub(super) threads: usize,
    /// Of the last minute.
    pub(super) load_average: Option<f64>,
    /// Of a packed GEMM of 2048x576 by 576x3072; of a GPU with extents that take it 10 ms.
    pub(super) gemm_gflops: f64,
    /// Memory, read in order by all threads; of a GPU, copied on it.
    pub(super) read_gb_per_second: f64,
    pub(super) workloads: Vec<Measured>,
    /// Of ranks that share the threads, relative to one rank with all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) overheads: Vec<Overhead>,
}

/// What a layout costs in a workload.
#[derive(Debug, Serialize)]
pub(super) struct Overhead {
    pub(super) layout: String,
    pub(super) name: &'static str,
    /// Its seconds over those of one rank, of repetitions that follow each other.
    pub(super) ratio: Spread,
}

impl Overhead {
    pub(super) fn of(alone: &Measured, ranks: &Measured) -> Self {
        let ratios = ranks.seconds.iter().zip(&alone.seconds).map(|(ranks, alone)| ranks / alone).collect();
        Self { layout: ranks.layout.clone(), name: ranks.name, ratio: Spread::of(ratios) }
    }
}

/// One workload.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) name: &'static str,
    /// How ranks share the model.
    pub(super) layout: String,
    pub(super) shape: String,
    /// Counted per repetition.
    pub(super) tokens: usize,
    pub(super) tokens_per_second: Spread,
    /// Median time of a decoding step, prompts included.
    pub(super) ms_per_token: Option<f64>,
    /// The warm-up.
    pub(super) first_seconds: f64,
    /// Of each repetition.
    pub(super) seconds: Vec<f64>,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) gemm: Option<GemmTime>,
    /// Of workloads that read all weights for every token.
    pub(super) read: Option<Read>,
    /// Where there are several ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) collectives: Option<Exchanged>,
    /// Cores that other processes kept busy meanwhile.
    pub(super) other_cores: Option<f64>,
}

/// Matrix multiplications within a workload, attention's small ones apart.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct GemmTime {
    /// Fraction of the time of all threads.
    pub(super) fraction: f64,
    /// While they run.
    pub(super) gflops: f64,
    /// Fraction of the best of the packed GEMM.
    pub(super) of_peak: f64,
}

/// Reading of weights within a workload.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Read {
    /// Bytes of weights, over the time of the whole workload.
    pub(super) gb_per_second: f64,
    /// Of the speed at which memory is read.
    pub(super) of_bandwidth: f64,
}

/// What collectives cost rank 0 in a repetition.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Exchanged {
    /// Waits for other ranks included.
    pub(super) seconds: f64,
    /// Of the repetition.
    pub(super) fraction: f64,
    /// That it sends to others, for each token that counts.
    pub(super) bytes_per_token: f64,
}

/// Of several repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |i: usize| values.get(i).copied().unwrap_or(f64::NAN);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
        } else {
            at(middle)
        };
        Self { median, min: at(0), max: at(values.len().wrapping_sub(1)) }
    }
}

impl Report {
    /// For people.
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

    /// What ranks cost.
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

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Spread::of(vec![4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of(vec![5.0, 1.0, 3.0]), Spread { median: 3.0, min: 1.0, max: 5.0 });
    }
}

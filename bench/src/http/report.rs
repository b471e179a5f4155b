//! Report of `trainyard-bench --http`.

use std::io::{self, Write};

use serde::Serialize;

use crate::measured::Spread;

/// All measurements through HTTP.
#[derive(Debug, Serialize)]
pub(in super::super) struct HttpReport {
    pub(super) model: String,
    pub(super) url: String,
    /// Load average of the last minute.
    pub(super) load_average: Option<f64>,
    /// Median time of a small durable write to the server's disk, if the server runs on this machine.
    pub(super) sync_ms: Option<f64>,
    pub(super) latencies: Vec<Latency>,
    pub(super) rates: Vec<Rate>,
    /// Resident memory of the server before and after, if it runs on this machine.
    pub(super) server_mib: Option<[f64; 2]>,
}

/// Times of one operation at a time.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    pub(super) name: &'static str,
    pub(super) operations: usize,
    /// Milliseconds from submit to result.
    pub(super) ms: Quantiles,
    /// Median without the API, in milliseconds.
    pub(super) engine_ms: Option<f64>,
}

/// Rate of many operations at a time.
#[derive(Debug, Serialize)]
pub(super) struct Rate {
    pub(super) name: &'static str,
    /// Number of simultaneous operations, or most of them if they start on a schedule.
    pub(super) concurrency: usize,
    pub(super) operations: usize,
    pub(super) errors: usize,
    /// First error, if any operation failed.
    pub(super) error: Option<String>,
    /// Operations per second of each round.
    pub(super) per_second: Spread,
    /// Milliseconds from submit to result, or from the scheduled time.
    pub(super) ms: Quantiles,
    /// Cores that the server kept busy.
    pub(super) server_cores: Option<f64>,
    /// Cores that the client kept busy.
    pub(super) client_cores: Option<f64>,
}

/// Median, extremes and 99th percentile of many times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Quantiles {
    pub(super) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        let p99 =
            values.get((values.len() * 99).div_ceil(100).saturating_sub(1).min(last)).copied().unwrap_or(f64::NAN);
        let Spread { median, min, max } = Spread::of(values);
        Self { median, p99, min, max }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let range = format!("[{:.2} - {:.2}]", self.min, self.max);
        write!(out, "{:>9.2} {:>19} {:>9.2}", self.median, range, self.p99)
    }
}

impl HttpReport {
    /// Writes the report as tables for people.
    pub(in super::super) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{} through {}", self.model, self.url)?;
        if let Some(load) = self.load_average {
            write!(out, ", load average {load:.2}")?;
        }
        if let Some(sync) = self.sync_ms {
            write!(out, ", a durable write takes {sync:.2} ms")?;
        }
        writeln!(
            out,
            "\n\n{:<22} {:>9} {:>19} {:>9} {:>9} {:>9}",
            "one at a time", "ms", "[min - max]", "p99", "engine", "API"
        )?;
        for latency in &self.latencies {
            write!(out, "{:<22} ", latency.name)?;
            latency.ms.write(out)?;
            match latency.engine_ms {
                Some(engine) => writeln!(out, " {engine:>9.2} {:>9.2}", latency.ms.median - engine)?,
                None => writeln!(out, " {:>9} {:>9}", "-", "-")?,
            }
        }
        writeln!(
            out,
            "\n{:<22} {:>9} {:>19} {:>9} {:>19} {:>9} {:>7} {:>13}",
            "many at a time", "per s", "[min - max]", "ms", "[min - max]", "p99", "errors", "server/client"
        )?;
        for rate in &self.rates {
            let speed = &rate.per_second;
            let range = format!("[{:.0} - {:.0}]", speed.min, speed.max);
            write!(out, "{:<22} {:>9.0} {:>19} ", rate.name, speed.median, range)?;
            rate.ms.write(out)?;
            let cores = |cores: Option<f64>| cores.map_or_else(|| "-".to_owned(), |cores| format!("{cores:.2}"));
            let both = format!("{}/{}", cores(rate.server_cores), cores(rate.client_cores));
            writeln!(out, " {:>7} {both:>13}", rate.errors)?;
            if let Some(error) = &rate.error {
                writeln!(out, "  {error}")?;
            }
        }
        if let Some([before, after]) = self.server_mib {
            writeln!(out, "\nserver memory {before:.0} -> {after:.0} MiB")?;
        }
        writeln!(out, "engine: the median without the API; API: the rest; server/client: cores kept busy")
    }
}

#[cfg(test)]
mod tests {
    use super::Quantiles;

    #[test]
    fn the_p99_leaves_one_in_a_hundred_above_it() {
        let quantiles = Quantiles::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(quantiles, Quantiles { median: 100.5, p99: 198.0, min: 1.0, max: 200.0 });
        assert_eq!(Quantiles::of(vec![7.0]), Quantiles { median: 7.0, p99: 7.0, min: 7.0, max: 7.0 });
    }
}

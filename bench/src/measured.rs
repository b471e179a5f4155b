//! Measurements of a workload.

use serde::Serialize;

/// Cost of a layout in a workload.
#[derive(Debug, Serialize)]
pub(super) struct Overhead {
    pub(super) layout: String,
    pub(super) name: &'static str,
    /// Seconds relative to those of one rank, for repetitions that follow each other.
    pub(super) ratio: Spread,
}

impl Overhead {
    pub(super) fn of(alone: &Measured, ranks: &Measured) -> Self {
        let ratios = ranks.seconds.iter().zip(&alone.seconds).map(|(ranks, alone)| ranks / alone).collect();
        Self { layout: ranks.layout.clone(), name: ranks.name, ratio: Spread::of(ratios) }
    }
}

/// Measurements of one workload.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) name: &'static str,
    /// Layout of the ranks that share the model.
    pub(super) layout: String,
    pub(super) shape: String,
    /// Tokens counted per repetition.
    pub(super) tokens: usize,
    pub(super) tokens_per_second: Spread,
    /// Median time of a decoding step, prompts included.
    pub(super) ms_per_token: Option<f64>,
    /// Seconds of the warm-up.
    pub(super) first_seconds: f64,
    /// Seconds of each repetition.
    pub(super) seconds: Vec<f64>,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) gemm: Option<GemmTime>,
    /// Reading rate of weights, in workloads that read all weights for every token.
    pub(super) read: Option<Read>,
    /// Cost of collectives, if there are several ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) collectives: Option<Exchanged>,
    /// Cores that other processes kept busy at the same time.
    pub(super) other_cores: Option<f64>,
}

/// Matrix multiplications within a workload, except the small ones of attention.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct GemmTime {
    /// Fraction of the time of all threads.
    pub(super) fraction: f64,
    /// Rate while they run.
    pub(super) gflops: f64,
    /// Rate relative to the best rate of the packed GEMM.
    pub(super) of_peak: f64,
}

/// Reading of weights within a workload.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Read {
    /// Rate of reading weights, over the time of the whole workload.
    pub(super) gb_per_second: f64,
    /// Rate relative to the speed of reading memory.
    pub(super) of_bandwidth: f64,
}

/// Cost of collectives to rank 0 in a repetition.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Exchanged {
    /// Seconds, including waits for other ranks.
    pub(super) seconds: f64,
    /// Fraction of the repetition's time.
    pub(super) fraction: f64,
    /// Bytes sent to other ranks per counted token.
    pub(super) bytes_per_token: f64,
}

/// Median and extremes of several repetitions.
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

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(Spread::of(vec![4.0, 1.0, 3.0, 2.0]), Spread { median: 2.5, min: 1.0, max: 4.0 });
        assert_eq!(Spread::of(vec![5.0, 1.0, 3.0]), Spread { median: 3.0, min: 1.0, max: 5.0 });
    }
}

//! Log-sum-exp of a row of logits that is computed in parts.

use crate::Targets;

/// A partial log-sum-exp of logits of a row: maximum and sum, before the logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogSum {
    /// The largest logit; -inf if there are none.
    pub max: f32,
    /// Σ exp(x - max).
    pub sum: f32,
}

impl LogSum {
    /// The log-sum of zero logits.
    pub const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };

    /// Returns the log-sum of both together. [`LogSum::EMPTY`] leaves the other one unchanged, to the bit.
    pub fn and(self, other: Self) -> Self {
        if other.max == f32::NEG_INFINITY {
            return self;
        }
        if other.max > self.max {
            Self { max: other.max, sum: self.sum * (self.max - other.max).exp() + other.sum }
        } else {
            Self { max: self.max, sum: self.sum + other.sum * (other.max - self.max).exp() }
        }
    }

    /// Returns the log-sum of all parts of a row, in their order.
    pub fn of(parts: impl Iterator<Item = Self>) -> Self {
        parts.fold(Self::EMPTY, Self::and)
    }

    /// Returns the logarithm of the sum of exponentials.
    pub fn value(self) -> f32 {
        self.max + self.sum.ln()
    }
}

impl Targets {
    /// Converts the targets' logits to log-probabilities, given the log-sum of each row. Returns the log-sum-exps.
    pub fn normalise(&self, sums: &[LogSum], logits: &mut [f32]) -> Vec<f32> {
        let lse: Vec<f32> = sums.iter().map(|sum| sum.value()).collect();
        for (row, lse) in lse.iter().enumerate() {
            logits[self.of(row)].iter_mut().for_each(|logit| *logit -= lse);
        }
        lse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(logits: &[f32]) -> LogSum {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        LogSum { max, sum: logits.iter().map(|x| (x - max).exp()).sum() }
    }

    #[test]
    fn parts_make_the_whole() {
        let logits: Vec<f32> = (0..100).map(|i| ((i * 37) % 101) as f32 * 0.3 - 20.0).collect();
        let expected = whole(&logits).value();
        for part in [1, 7, 50, 99] {
            let found = LogSum::of(logits.chunks(part).map(whole)).value();
            assert!((found - expected).abs() < 1e-5, "{part}: {found}, {expected}");
        }
    }

    #[test]
    fn nothing_changes_nothing() {
        let some = whole(&[3.0, -1.5, 0.25]);
        assert_eq!(LogSum::of([some].into_iter()), some);
        assert_eq!(LogSum::of([LogSum::EMPTY, some, LogSum::EMPTY].into_iter()), some);
        assert_eq!(LogSum::of(std::iter::empty()).value(), f32::NEG_INFINITY);
    }
}

//! A low-rank update of a GEMM's output: which part of it an adapter changes, and by which products.

use std::ops::Range;

use super::lhs::PackedLhs;
use super::partition::{GemmWork, OutputBlock, check_fit};
use super::rhs::GemmRhs;

/// `out[rows, at .. at + n] += Σ z Wᵀ`, terms in order.
pub(crate) struct LowRankUpdate<'a> {
    /// Rows of the output.
    pub rows: Range<usize>,
    /// First column of the output.
    pub at: usize,
    /// `z[rows, rank]` and `W[n, rank]` of each term; `n` is the same in all, the rank need not be.
    pub terms: Vec<(&'a PackedLhs, GemmRhs<'a>)>,
}

impl LowRankUpdate<'_> {
    pub(super) fn columns(&self) -> Range<usize> {
        self.at..self.at + self.terms.first().map_or(0, |(_, w)| w.n())
    }

    /// Panics unless it lies within `rows` and `n` columns and its matrices fit together.
    pub(super) fn check(&self, rows: &Range<usize>, n: usize) {
        let columns = self.columns();
        let inside = rows.start <= self.rows.start && self.rows.end <= rows.end && columns.end <= n;
        assert!(inside, "low-rank update out of bounds");
        for (z, w) in &self.terms {
            assert!(w.n() == columns.len() && z.rows() >= self.rows.len(), "low-rank update of mismatched matrices");
            check_fit(z, 0, w, 0..w.k());
        }
    }

    /// Rows and columns of the output that the update and a block have in common.
    pub(super) fn intersection(
        &self,
        rows: &Range<usize>,
        columns: &Range<usize>,
    ) -> Option<(Range<usize>, Range<usize>)> {
        let own = self.columns();
        let r = rows.start.max(self.rows.start)..rows.end.min(self.rows.end);
        let c = columns.start.max(own.start)..columns.end.min(own.end);
        (!r.is_empty() && !c.is_empty()).then_some((r, c))
    }

    /// Cost of the update in a block of the output.
    pub(super) fn work(&self, rows: &Range<usize>, columns: &Range<usize>) -> GemmWork {
        let mut work = GemmWork::default();
        if let Some((rows, columns)) = self.intersection(rows, columns) {
            for (_, w) in &self.terms {
                let (rows, columns) = (rows.clone(), columns.clone());
                work.add(GemmWork::of(&OutputBlock { rows, columns, x_k: 0, w_k: 0..w.k() }, w));
            }
        }
        work
    }
}

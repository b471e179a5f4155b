//! Parts of a tensor that a rank holds: rows, columns, or rows of each of several stacked parts.

use std::ops::Range;

/// Equally long runs of a tensor's elements, or of its bytes, at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runs {
    /// First element of the first run.
    pub first: usize,
    /// Elements of each run.
    pub len: usize,
    /// Elements from the beginning of a run to that of the next one, at least `len`.
    pub stride: usize,
    /// How many runs there are.
    pub count: usize,
}

impl Runs {
    /// Returns the single run of a range.
    pub fn one(range: Range<usize>) -> Self {
        let len = range.len();
        Self { first: range.start, len, stride: len, count: 1 }
    }

    /// Returns the number of elements of all runs.
    pub fn elements(&self) -> usize {
        self.len * self.count
    }

    /// Returns the ranges of the runs, in their order.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self { first, len, stride, count } = *self;
        (0..count).map(move |run| first + run * stride..first + run * stride + len)
    }

    /// Returns the range from the beginning of the first run to the end of the last one.
    pub fn span(&self) -> Range<usize> {
        let between = self.stride * self.count.saturating_sub(1);
        self.first..self.first + if self.count == 0 { 0 } else { between + self.len }
    }

    /// Returns whether nothing lies between the runs.
    pub fn is_joined(&self) -> bool {
        self.count <= 1 || self.stride == self.len
    }

    /// Returns the bytes of elements of `width` bytes.
    pub fn bytes(&self, width: usize) -> Self {
        let Self { first, len, stride, count } = *self;
        Self { first: first * width, len: len * width, stride: stride * width, count }
    }

    /// Returns the same runs, `by` elements further on.
    pub fn shifted(&self, by: usize) -> Self {
        Self { first: self.first + by, ..*self }
    }

    /// Returns `count` runs from the run `from` on.
    pub(crate) fn some(&self, from: usize, count: usize) -> Self {
        Self { first: self.first + from * self.stride, count, ..*self }
    }

    /// Returns their elements, given those of [`Runs::span`].
    pub(crate) fn of_span<T: Copy>(&self, span: &[T]) -> Vec<T> {
        let start = self.first;
        let mut elements = Vec::with_capacity(self.elements());
        self.ranges().for_each(|run| elements.extend_from_slice(&span[run.start - start..run.end - start]));
        elements
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_ranges_at_equal_distances() {
        let runs = Runs { first: 2, len: 3, stride: 5, count: 3 };
        assert_eq!(runs.ranges().collect::<Vec<_>>(), [2..5, 7..10, 12..15]);
        assert_eq!((runs.elements(), runs.span(), runs.is_joined()), (9, 2..15, false));
        assert_eq!(runs.some(1, 2).ranges().collect::<Vec<_>>(), [7..10, 12..15]);
        assert_eq!(runs.shifted(1).bytes(2), Runs { first: 6, len: 6, stride: 10, count: 3 });
        let span: Vec<usize> = runs.span().collect();
        assert_eq!(runs.of_span(&span), [2, 3, 4, 7, 8, 9, 12, 13, 14]);
        let one = Runs::one(4..9);
        assert_eq!((one.elements(), one.span(), one.is_joined()), (5, 4..9, true));
        assert!(Runs { first: 0, len: 3, stride: 3, count: 4 }.is_joined());
        let none = Runs { first: 7, len: 3, stride: 5, count: 0 };
        assert_eq!((none.elements(), none.span()), (0, 7..7));
        assert_eq!(Runs::one(3..3).span(), 3..3);
    }
}

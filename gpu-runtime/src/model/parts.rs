//! Parts of a long batch, in which what is wide is computed, so that it exists for a part at a time.

use std::ops::Range;
use std::sync::Arc;

use super::adapter::RowGroup;
use crate::backend::Backend;

/// Maximum number of rows of a part, and of rows whose gradients are added up at once.
pub(crate) const PART_ROWS: usize = 4096;

/// Rows whose gradients are added up at once: those of each sequence, in pieces that do not depend on other sequences.
/// `sequences` are the rows of each.
pub(super) fn pieces<'s>(sequences: impl Iterator<Item = &'s Range<usize>>) -> Vec<Range<usize>> {
    let of = |&Range { start, end }: &Range<usize>| {
        (start..end).step_by(PART_ROWS).map(move |first| first..end.min(first + PART_ROWS))
    };
    sequences.flat_map(of).collect()
}

/// Consecutive pieces of a batch, as few parts as [`PART_ROWS`] allows.
fn parts(pieces: &[Range<usize>]) -> Vec<&[Range<usize>]> {
    let (mut parts, mut first) = (Vec::new(), 0);
    for (at, piece) in pieces.iter().enumerate() {
        if piece.end - pieces[first].start > PART_ROWS {
            parts.push(&pieces[first..at]);
            first = at;
        }
    }
    parts.push(&pieces[first..]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A part of a batch, whose rows are counted from its first one.
pub(super) struct Part<B: Backend> {
    /// Its rows in the batch.
    pub(super) rows: Range<usize>,
    pub(super) groups: Vec<RowGroup<B>>,
    pub(super) pieces: Vec<Range<usize>>,
}

impl<B: Backend> Part<B> {
    /// All parts of a batch with these sequences; groups cover its rows in order.
    pub(super) fn all<'s>(sequences: impl Iterator<Item = &'s Range<usize>>, groups: &[RowGroup<B>]) -> Vec<Self> {
        Self::of_pieces(&pieces(sequences), groups)
    }

    /// All parts of a batch with these pieces.
    pub(super) fn of_pieces(pieces: &[Range<usize>], groups: &[RowGroup<B>]) -> Vec<Self> {
        parts(pieces).into_iter().map(|part| Self::of(part, groups)).collect()
    }

    fn of(pieces: &[Range<usize>], groups: &[RowGroup<B>]) -> Self {
        let rows = pieces.first().map_or(0, |piece| piece.start)..pieces.last().map_or(0, |piece| piece.end);
        let within = |other: &Range<usize>| {
            let [start, end] = [other.start, other.end].map(|row| row.clamp(rows.start, rows.end) - rows.start);
            start..end
        };
        let group = |group: &RowGroup<B>| RowGroup {
            rows: within(&group.rows),
            adapter: group.adapter.as_ref().map(Arc::clone),
        };
        Self { groups: groups.iter().map(group).collect(), pieces: pieces.iter().map(within).collect(), rows }
    }

    /// Indices of its rows in the batch.
    pub(super) fn indices(&self) -> Vec<usize> {
        self.rows.clone().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_depend_on_other_sequences() {
        let alone = pieces(std::iter::once(&(0..2 * PART_ROWS + 5)));
        assert_eq!(alone, [0..PART_ROWS, PART_ROWS..2 * PART_ROWS, 2 * PART_ROWS..2 * PART_ROWS + 5]);
        let first = 77;
        let shifted = |rows: &Range<usize>| rows.start + first..rows.end + first;
        let behind = pieces([0..first, first..first + 2 * PART_ROWS + 5].iter());
        assert_eq!(behind[1..], alone.iter().map(shifted).collect::<Vec<_>>());
    }

    #[test]
    fn parts_are_as_few_as_possible() {
        let sequences = [0..10, 10..PART_ROWS, PART_ROWS..PART_ROWS + 1, PART_ROWS + 1..3 * PART_ROWS];
        let pieces = pieces(sequences.iter());
        let lens: Vec<usize> = parts(&pieces).into_iter().map(|part| part.len()).collect();
        assert_eq!(lens, [2, 1, 1, 1], "{pieces:?}");
        assert!(parts(&[]).is_empty());
    }
}

//! Parts of arrays that ranks hold in equal slices.

use std::ops::Range;

use super::rank::slice_of;

/// An array among those of a run: its index, and its elements on all ranks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Index of the array.
    pub index: usize,
    /// Number of its elements.
    pub len: usize,
}

/// A range of each rank's slice of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The array that is divided.
    pub of: Extent,
    /// The range in each slice.
    pub offsets: Range<usize>,
}

impl Fragment {
    /// Returns the fragment's range in the slice of a rank, and its first element in the whole array. Slices may be one
    /// element shorter than the first one.
    pub fn within(&self, world: usize, rank: usize) -> (Range<usize>, usize) {
        let slice = slice_of(self.of.len, world, rank);
        let within = self.offsets.start.min(slice.len())..self.offsets.end.min(slice.len());
        let first = slice.start + within.start;
        (within, first)
    }
}

/// Fragments that are exchanged together: at most `elements` elements of all ranks, of arrays in their order. They
/// depend only on the extents.
pub fn pieces(arrays: &[Extent], world: usize, elements: usize) -> Vec<Vec<Fragment>> {
    let most = (elements / world).max(1);
    let (mut pieces, mut held) = (vec![Vec::new()], 0);
    for &of in arrays {
        // The first slice is the longest.
        let (len, mut start) = (slice_of(of.len, world, 0).len(), 0);
        while start < len {
            if held == most {
                pieces.push(Vec::new());
                held = 0;
            }
            let end = len.min(start + most - held);
            held += end - start;
            if let Some(piece) = pieces.last_mut() {
                piece.push(Fragment { of, offsets: start..end });
            }
            start = end;
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

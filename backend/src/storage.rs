//! Data that a backend stores, from the perspective of model code.

use std::borrow::Cow;
use std::ops::Range;

use crate::blocks::BlockFormat;
use crate::collective::{Fragment, Ranks};

/// Activations or gradients with respect to them, `[rows, width]`, on the device.
pub trait Rows: Send + Sync {
    /// Returns the number of rows; 0 if `width` is 0.
    fn rows(&self) -> usize;

    /// Returns the number of elements of a row.
    fn width(&self) -> usize;

    /// Replaces all elements by their sums over the ranks, see [`Ranks::all_reduce`].
    fn all_reduce(&mut self, ranks: &Ranks);
}

/// A part of a matrix that is yet to be packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedPart {
    /// Rows of the part.
    pub outputs: usize,
    /// The format of its blocks; `None` where it is wide.
    pub format: Option<BlockFormat>,
}

/// A list of f32 arrays on the device, one for each trained parameter: masters, a moment or a gradient.
pub trait Params: Clone + Send + Sync + 'static {
    /// Returns the elements of an array on the host, after all requested work, for exchanges through the host.
    fn host(&self, index: usize) -> Cow<'_, [f32]>;

    /// Returns the number of arrays.
    fn len(&self) -> usize;

    /// Returns whether the number of arrays is zero.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of elements of each array, from which zeros of the same layout can be made.
    fn lens(&self) -> Vec<usize>;

    /// Returns the bytes of all arrays on the device.
    fn bytes(&self) -> usize;

    /// Overwrites elements of an array, from `first` on.
    fn write(&mut self, index: usize, first: usize, values: &[f32]);

    /// Adds to elements of an array, from `first` on.
    fn add(&mut self, index: usize, first: usize, values: &[f32]);

    /// Replaces an array by its sum over the ranks of a group, see [`Ranks::reduce_within`].
    fn reduce(&mut self, index: usize, ranks: &Ranks, group: Range<usize>);

    /// Returns the rank's part of every array, see [`slice_of`](crate::collective::slice_of). `None` if ranks exchange
    /// through the host.
    fn part(&self, _ranks: &Ranks) -> Option<Self> {
        None
    }

    /// Returns the rank's parts of the sums of all arrays over the ranks, in their order. `None` if ranks exchange
    /// through the host.
    fn sums_of_parts(&self, _ranks: &Ranks) -> Option<Self> {
        None
    }

    /// Overwrites all arrays with the ranks' parts, of which `own` is this rank's. Returns false, without changing
    /// anything, if ranks exchange through the host.
    fn gather_parts(&mut self, _own: &Self, _ranks: &Ranks) -> bool {
        false
    }

    /// Gathers arrays of these lengths from the ranks' elements, of which `self` are this rank's. Each list of
    /// fragments is exchanged together. `None` if ranks exchange through the host.
    fn gather_fragments(&self, _ranks: &Ranks, _lens: &[usize], _fragments: &[Vec<Fragment>]) -> Option<Self> {
        None
    }

    /// Takes part in [`Params::gather_fragments`] for the others. Returns false if ranks exchange through the host.
    fn offer_fragments(&self, _ranks: &Ranks, _fragments: &[Vec<Fragment>]) -> bool {
        false
    }

    /// Adds the rank's parts of the sums of fragments over the ranks, in their order, to its arrays. `own` are whole
    /// arrays; a rank without them has zeros. Returns false, without changing anything, if ranks exchange through the
    /// host.
    fn add_sums_of_fragments(&mut self, _own: Option<&Self>, _ranks: &Ranks, _fragments: &[Vec<Fragment>]) -> bool {
        false
    }
}

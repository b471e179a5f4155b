//! Parameters in host memory: of the CPU and of the reference backend.

use std::borrow::Cow;
use std::io;
use std::ops::{Index, IndexMut, Range};

use super::{ChunkSink, Fences, Params};
use crate::collective::Ranks;

/// An f32 array for each parameter. An array of zeros may have no elements until it is first written; [`PartialEq`]
/// distinguishes it from an array whose zeros are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostParams {
    /// Arrays of the lengths in `lens`; an empty one stands for zeros.
    arrays: Vec<Vec<f32>>,
    lens: Vec<usize>,
}

impl HostParams {
    /// Arrays with these elements.
    pub fn new(arrays: Vec<Vec<f32>>) -> Self {
        let lens = arrays.iter().map(Vec::len).collect();
        Self { arrays, lens }
    }

    /// Arrays of zeros, stored without elements.
    pub(crate) fn zeros(lens: &[usize]) -> Self {
        Self { arrays: vec![Vec::new(); lens.len()], lens: lens.to_vec() }
    }

    /// Sets all elements to zero by removing them; their memory stays.
    pub(crate) fn clear(&mut self) {
        self.arrays.iter_mut().for_each(Vec::clear);
    }

    /// Length of an array.
    pub(crate) fn array_len(&self, index: usize) -> usize {
        self.lens[index]
    }

    /// Takes an array out, with its elements or with none; [`HostParams::put`] brings it back.
    pub(crate) fn take(&mut self, index: usize) -> Vec<f32> {
        std::mem::take(&mut self.arrays[index])
    }

    /// Brings back an array with all of its elements. Nothing was added to it meanwhile.
    pub(crate) fn put(&mut self, index: usize, array: Vec<f32>) {
        assert!(array.len() == self.lens[index], "array lengths differ");
        assert!(self.arrays[index].is_empty(), "the array was written while it was borrowed");
        self.arrays[index] = array;
    }

    /// Iterates over the arrays. Panics if one was never written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.lens.len()).map(|index| &self[index])
    }

    /// Vectors and lengths of those arrays in a range that are stored without elements, so that the caller can write
    /// them.
    pub(crate) fn without_elements(&mut self, range: Range<usize>) -> impl Iterator<Item = (&mut Vec<f32>, usize)> {
        let arrays = self.arrays[range.clone()].iter_mut().zip(self.lens[range].iter().copied());
        arrays.filter(|(array, len)| array.len() < *len)
    }

    /// The arrays, with elements: zeros are written first.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut [f32]> {
        self.arrays.iter_mut().zip(&self.lens).map(|(array, len)| written(array, *len))
    }
}

/// An array with its elements: zeros are written first.
fn written(array: &mut Vec<f32>, len: usize) -> &mut [f32] {
    array.resize(len, 0.0);
    array
}

/// Read access. Panics if the array was never written.
impl Index<usize> for HostParams {
    type Output = [f32];

    fn index(&self, index: usize) -> &[f32] {
        let array = &self.arrays[index];
        assert!(array.len() == self.lens[index], "the array has not been written");
        array
    }
}

/// Write access, also to arrays of zeros.
impl IndexMut<usize> for HostParams {
    fn index_mut(&mut self, index: usize) -> &mut [f32] {
        written(&mut self.arrays[index], self.lens[index])
    }
}

impl Params for HostParams {
    fn host(&self, index: usize) -> Cow<'_, [f32]> {
        Cow::Borrowed(&self[index])
    }

    fn len(&self) -> usize {
        self.lens.len()
    }

    fn lens(&self) -> Vec<usize> {
        self.lens.clone()
    }

    fn bytes(&self) -> usize {
        self.lens.iter().sum::<usize>() * size_of::<f32>()
    }

    fn write(&mut self, index: usize, first: usize, values: &[f32]) {
        self[index][first..first + values.len()].copy_from_slice(values);
    }

    fn add(&mut self, index: usize, first: usize, values: &[f32]) {
        for (to, value) in self[index][first..first + values.len()].iter_mut().zip(values) {
            *to += value;
        }
    }

    fn reduce(&mut self, index: usize, ranks: &Ranks, group: Range<usize>) {
        ranks.reduce_within(group, &mut self[index]);
    }
}

/// A backend on the host, whose ops are complete when they return.
pub trait OnHost {}

impl<B: OnHost> Fences for B {
    type Fence = ();
    type Params = HostParams;

    fn fence(&self) {}

    fn read_params(&self, params: &HostParams, index: usize, (): &(), to: &mut ChunkSink<'_>) -> io::Result<()> {
        to(&params[index])
    }

    fn param_to_host<'a>(&self, params: &'a HostParams, index: usize, (): &()) -> Cow<'a, [f32]> {
        Cow::Borrowed(&params[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_written_when_something_is_added() {
        let mut params = HostParams::zeros(&[3, 2]);
        assert_eq!((params.len(), params.bytes(), params.take(0)), (2, 20, Vec::new()));
        params.add(1, 1, &[0.5]);
        assert_eq!(params[1], [0.0, 0.5]);
        params.put(0, vec![1.0; 3]);
        assert_eq!(params, HostParams::new(vec![vec![1.0; 3], vec![0.0, 0.5]]));
        params.clear();
        assert_eq!(params.lens(), [3, 2]);
        params.iter_mut().for_each(|array| array[0] += 2.0);
        assert_eq!(params, HostParams::new(vec![vec![2.0, 0.0, 0.0], vec![2.0, 0.0]]));
    }

    #[test]
    #[should_panic(expected = "the array has not been written")]
    fn zeros_without_elements_are_not_read() {
        let params = HostParams::zeros(&[3]);
        assert_eq!(params[0].len(), 0);
    }
}

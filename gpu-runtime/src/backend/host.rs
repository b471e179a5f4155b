//! Parameters in host memory: of the CPU and of the reference backend.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut, Range};

use super::Params;
use crate::collective::Ranks;

/// An f32 array for each parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostParams(pub Vec<Vec<f32>>);

impl Deref for HostParams {
    type Target = Vec<Vec<f32>>;

    fn deref(&self) -> &Vec<Vec<f32>> {
        &self.0
    }
}

impl DerefMut for HostParams {
    fn deref_mut(&mut self) -> &mut Vec<Vec<f32>> {
        &mut self.0
    }
}

impl Params for HostParams {
    fn host(&self, index: usize) -> Cow<'_, [f32]> {
        Cow::Borrowed(&self.0[index])
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn lens(&self) -> Vec<usize> {
        self.0.iter().map(Vec::len).collect()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|values| size_of_val(&values[..])).sum()
    }

    fn write(&mut self, index: usize, first: usize, values: &[f32]) {
        self.0[index][first..first + values.len()].copy_from_slice(values);
    }

    fn add(&mut self, index: usize, first: usize, values: &[f32]) {
        for (to, value) in self.0[index][first..first + values.len()].iter_mut().zip(values) {
            *to += value;
        }
    }

    fn reduce(&mut self, index: usize, ranks: &Ranks, group: Range<usize>) {
        ranks.reduce_within(group, &mut self.0[index]);
    }
}

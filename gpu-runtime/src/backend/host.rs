//! Parameters in host memory: of the CPU and of the reference backend.

use std::borrow::Cow;
use std::io;
use std::ops::{Deref, DerefMut, Range};

use super::{ChunkSink, Fences, Params};
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

/// A backend on the host, whose work is done when an op returns.
pub trait OnHost {}

impl<B: OnHost> Fences for B {
    type Fence = ();
    type Params = HostParams;

    fn fence(&self) {}

    fn read_params(&self, (params, index): (&HostParams, usize), (): &(), to: &mut ChunkSink<'_>) -> io::Result<()> {
        to(&params[index])
    }

    fn param_to_host<'a>(&self, (params, index): (&'a HostParams, usize), (): &()) -> Cow<'a, [f32]> {
        Cow::Borrowed(&params[index])
    }
}

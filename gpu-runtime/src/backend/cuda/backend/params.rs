//! Masters, moments and gradients on the device: a slice for each parameter.

use std::borrow::Cow;
use std::ops::Range;

use super::exchange::reduce;
use super::{Cuda, done};
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::optimizer::{DeviceStep, adamw};
use crate::backend::cuda::ops::squares::{add, squared_norms};
use crate::backend::{AdamWStep, Params};
use crate::collective::{Fragment, Ranks};

/// An f32 array on the device for each parameter.
pub struct CudaParams(pub(super) Vec<Slice<f32>>);

impl Clone for CudaParams {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|values| done(values.copy(0..values.len()))).collect())
    }
}

impl Params for CudaParams {
    fn host(&self, index: usize) -> Cow<'_, [f32]> {
        Cow::Owned(done(self.0[index].to_host()))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn lens(&self) -> Vec<usize> {
        self.0.iter().map(Slice::len).collect()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|values| values.len() * size_of::<f32>()).sum()
    }

    fn write(&mut self, index: usize, first: usize, values: &[f32]) {
        done(self.0[index].write(first, values));
    }

    /// Adds `values` to a part of an array by reading it to the host and writing the sum back.
    fn add(&mut self, index: usize, first: usize, values: &[f32]) {
        let mut sum = done(self.0[index].part_to_host(first..first + values.len()));
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        self.write(index, first, &sum);
    }

    fn reduce(&mut self, index: usize, ranks: &Ranks, group: Range<usize>) {
        reduce(ranks, group, &mut self.0[index]);
    }

    fn part(&self, ranks: &Ranks) -> Option<Self> {
        Some(self.part_of(ranks))
    }

    fn sums_of_parts(&self, ranks: &Ranks) -> Option<Self> {
        self.scattered(ranks)
    }

    fn gather_parts(&mut self, own: &Self, ranks: &Ranks) -> bool {
        self.gathered(own, ranks)
    }

    fn gather_fragments(&self, ranks: &Ranks, lens: &[usize], fragments: &[Vec<Fragment>]) -> Option<Self> {
        self.whole(ranks, lens, fragments)
    }

    fn offer_fragments(&self, ranks: &Ranks, fragments: &[Vec<Fragment>]) -> bool {
        self.offer(ranks, fragments)
    }

    fn add_sums_of_fragments(&mut self, own: Option<&Self>, ranks: &Ranks, fragments: &[Vec<Fragment>]) -> bool {
        self.add_sums(own, ranks, fragments)
    }
}

impl CudaParams {
    /// Zeros, one array for each length.
    pub(super) fn zeros(device: &CudaDevice, lens: &[usize]) -> Result<Self> {
        Ok(Self(lens.iter().map(|len| device.zeros(*len)).collect::<Result<_>>()?))
    }

    /// Arrays with the given elements.
    pub(super) fn upload(device: &CudaDevice, values: &[Vec<f32>]) -> Result<Self> {
        Ok(Self(values.iter().map(|values| device.upload(values)).collect::<Result<_>>()?))
    }

    pub(super) fn clear(&mut self) -> Result {
        self.0.iter_mut().try_for_each(Slice::clear)
    }

    /// Adds `from` to `self`, array by array.
    pub(super) fn add_all(&mut self, device: &CudaDevice, from: &Self) -> Result {
        self.0.iter_mut().zip(&from.0).try_for_each(|(to, from)| add(device, to, from))
    }

    pub(super) fn squared_norms(&self, device: &CudaDevice, plus: Option<&Self>) -> Result<Vec<f64>> {
        squared_norms(device, &self.0, plus.map(|params| &params.0[..]))
    }
}

/// All steps in one launch: an error concerns all of them, and where it is too little memory, nothing was changed.
pub(super) fn step(device: &CudaDevice, steps: &mut [AdamWStep<'_, Cuda>]) -> Result {
    adamw(device, steps.iter_mut().map(DeviceStep::from).collect())
}

impl<'a> From<&'a mut AdamWStep<'_, Cuda>> for DeviceStep<'a> {
    fn from(of: &'a mut AdamWStep<'_, Cuda>) -> Self {
        let AdamWStep { params, grads, moments: [first, second], hyper, step, grad_scale } = of;
        let moments = [&mut first.0[..], &mut second.0[..]];
        Self { params: &mut params.0, grads: &grads.0, moments, hyper, step: *step, grad_scale: *grad_scale }
    }
}

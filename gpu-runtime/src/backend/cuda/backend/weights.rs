//! Weights: matrices, embeddings, norms and biases.

use std::borrow::Cow;
use std::sync::Arc;

use super::Cuda;
use super::elements::Elements;
use super::params::CudaParams;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::copies::shift;
use crate::backend::{Dtype, Source};

/// A weight `[outputs, inputs]`, row-major; products with its transpose read the same elements.
pub struct Matrix(pub(super) Arc<Elements>);

/// Source of a part's elements: the host, or an array of the device.
enum Part<'a> {
    Host(Cow<'a, [f32]>),
    Device(&'a Slice<f32>, (usize, usize)),
}

impl Part<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Host(values) => values.len(),
            Self::Device(_, (first, end)) => end - first,
        }
    }
}

fn part<'a>(source: &Source<'a, Cuda>) -> Part<'a> {
    match *source {
        Source::Host(values) => Part::Host(Cow::Borrowed(values)),
        Source::Blocks(_) => Part::Host(source.host()),
        Source::Param(CudaParams(arrays), index) => Part::Device(&arrays[index], (0, arrays[index].len())),
        Source::Part(CudaParams(arrays), index, range) => Part::Device(&arrays[index], range),
    }
}

/// Writes parts one after the other.
fn write(device: &CudaDevice, parts: &[Source<'_, Cuda>], to: &mut Elements) -> Result {
    let mut first = 0;
    for part in parts.iter().map(part) {
        match part {
            Part::Host(ref values) => to.write_host(first, values)?,
            Part::Device(values, range) => to.write_device(device, first, values, range.0, range.1)?,
        }
        first += part.len();
    }
    Ok(())
}

impl Elements {
    /// The elements of parts, one after the other, as rows of `width`.
    pub(super) fn pack(device: &CudaDevice, dtype: Dtype, parts: &[Source<'_, Cuda>], width: usize) -> Result<Self> {
        let elements: usize = parts.iter().map(|source| part(source).len()).sum();
        let mut packed = Self::uninitialised(device, dtype, elements.checked_div(width).unwrap_or(0), width)?;
        write(device, parts, &mut packed)?;
        Ok(packed)
    }
}

impl Matrix {
    pub(super) fn pack(device: &CudaDevice, dtype: Dtype, parts: &[Source<'_, Cuda>], k: usize) -> Result<Self> {
        Ok(Self(Arc::new(Elements::pack(device, dtype, parts, k)?)))
    }

    /// Overwrites it; where another one shares its memory, in new memory.
    pub(super) fn repack(&mut self, device: &CudaDevice, dtype: Dtype, parts: &[Source<'_, Cuda>]) -> Result {
        match Arc::get_mut(&mut self.0) {
            Some(elements) => write(device, parts, elements),
            None => {
                let width = self.0.width();
                *self = Self::pack(device, dtype, parts, width)?;
                Ok(())
            }
        }
    }

    /// Numbers of outputs and inputs.
    pub(super) fn extents(&self) -> (usize, usize) {
        (self.0.rows(), self.0.width())
    }
}

/// The elements of parts, one after the other, each plus `offset`.
pub(super) fn vector(device: &CudaDevice, parts: &[Source<'_, Cuda>], offset: f32) -> Result<Slice<f32>> {
    let mut vector = device.uninitialised(parts.iter().map(|source| part(source).len()).sum())?;
    let mut first = 0;
    for part in parts.iter().map(part) {
        match part {
            Part::Host(ref values) => {
                let shifted: Vec<f32> = values.iter().map(|x| x + offset).collect();
                vector.write(first, &shifted)?;
            }
            Part::Device(values, (start, end)) => shift(device, values, start..end, offset, &mut vector, first)?,
        }
        first += part.len();
    }
    Ok(vector)
}

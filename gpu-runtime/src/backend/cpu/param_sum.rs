//! Gradients of parameters while products are added to them.

use std::ops::Range;

use super::gemm::GradientOut;
use crate::backend::host::HostParams;

/// A parameter's gradient, taken out of the others, so that threads can add to several at once. The first product of a whole
/// parameter is written to memory that nothing was written to before, instead of being added to zeros.
pub(super) struct ParamSum {
    index: usize,
    /// All elements, or none before the first product.
    values: Vec<f32>,
    /// Elements to which the product is added.
    part: Range<usize>,
    /// Elements in all.
    len: usize,
}

impl ParamSum {
    /// Takes parameter `index`, to add a product to a part of its elements. [`ParamSum::put`] brings it back.
    pub(super) fn take(grads: &mut HostParams, index: usize, part: Range<usize>) -> Self {
        let (mut values, len) = (grads.take(index), grads.array_len(index));
        if part == (0..len) {
            values.reserve_exact(len - values.len());
        } else {
            values.resize(len, 0.0);
        }
        Self { index, values, part, len }
    }

    /// Where the product goes.
    pub(super) fn out(&mut self) -> GradientOut<'_> {
        if self.values.len() == self.len {
            GradientOut::Add(&mut self.values[self.part.clone()])
        } else {
            GradientOut::Write(&mut self.values.spare_capacity_mut()[..self.len])
        }
    }

    /// Brings it back.
    ///
    /// # Safety
    /// The product was computed, to what [`ParamSum::out`] returned.
    pub(super) unsafe fn put(mut self, grads: &mut HostParams) {
        // SAFETY: `take` reserved them, and they were written if they were not there before.
        unsafe { self.values.set_len(self.len) };
        grads.put(self.index, self.values);
    }
}

//! Gradients of parameters while products are added to them.

use std::ops::Range;

use super::Cpu;
use super::gemm::{GradientOut, has_rows};
use super::optimizer::write_zeros;
use crate::host::HostParams;

/// A parameter's gradient, taken out of the others, so that threads can add to several at once. The first product of a whole
/// parameter is written to memory that nothing was written to before, instead of being added to zeros.
pub(super) struct ParamSum {
    index: usize,
    /// All elements, or none before the first product.
    values: Vec<f32>,
    /// Elements to which the product is added.
    part: Range<usize>,
    /// Number of elements in the array.
    len: usize,
}

impl ParamSum {
    /// Takes parameter `index`, to add the product of `runs` of rows to a part of its elements. [`ParamSum::put`] brings it back.
    pub(super) fn take(
        cpu: &Cpu,
        grads: &mut HostParams,
        index: usize,
        part: Range<usize>,
        runs: &[Range<usize>],
    ) -> Self {
        let len = grads.array_len(index);
        if part != (0..len) || !has_rows(runs) {
            write_zeros(cpu, grads, index..index + 1);
        }
        let mut values = grads.take(index);
        values.reserve_exact(len - values.len());
        Self { index, values, part, len }
    }

    /// Destination of the product.
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
        // SAFETY: `take` reserved them, and the product was written to all if they were not there before.
        unsafe { self.values.set_len(self.len) };
        grads.put(self.index, self.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds 1 to a part of parameter 1, as a product would.
    fn add_one(cpu: &Cpu, grads: &mut HostParams, part: Range<usize>, rows: Range<usize>) -> bool {
        let mut sum = ParamSum::take(cpu, grads, 1, part, &[rows]);
        let writes = match sum.out() {
            GradientOut::Add(out) => {
                out.iter_mut().for_each(|x| *x += 1.0);
                false
            }
            GradientOut::Write(out) => {
                out.iter_mut().for_each(|x| _ = x.write(1.0));
                true
            }
        };
        // SAFETY: all elements of `out` were written.
        unsafe { sum.put(grads) };
        writes
    }

    #[test]
    fn only_the_first_product_of_a_whole_parameter_is_written() {
        let cpu = Cpu::new(2);
        let mut grads = HostParams::new(vec![vec![7.0], vec![7.0; 3]]);
        for _ in 0..2 {
            grads.clear();
            assert!(add_one(&cpu, &mut grads, 0..3, 0..1));
            assert!(!add_one(&cpu, &mut grads, 0..3, 0..1));
            assert!(!add_one(&cpu, &mut grads, 1..2, 0..1));
            assert_eq!(grads[1], [2.0, 3.0, 2.0]);
        }
        for (part, rows) in [(1..3, 0..1), (0..3, 0..0)] {
            grads.clear();
            assert!(!add_one(&cpu, &mut grads, part.clone(), rows));
            assert_eq!(grads[1].iter().sum::<f32>(), part.len() as f32);
        }
    }

    #[test]
    #[should_panic(expected = "the array was written while it was borrowed")]
    fn a_parameter_is_taken_once_at_a_time() {
        let (cpu, mut grads) = (Cpu::new(1), HostParams::zeros(&[0, 3]));
        let runs = std::slice::from_ref(&(0..1));
        let [mut first, mut second] = [0..3, 0..3].map(|part| ParamSum::take(&cpu, &mut grads, 1, part, runs));
        for sum in [&mut first, &mut second] {
            if let GradientOut::Write(out) = sum.out() {
                out.iter_mut().for_each(|x| _ = x.write(1.0));
            }
        }
        // SAFETY: all elements were written.
        unsafe {
            first.put(&mut grads);
            second.put(&mut grads);
        }
    }
}

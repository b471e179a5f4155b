//! Linear layers, and gradients of their weights.

use std::ops::Range;

use super::Cuda;
use super::elements::{Elements, GemmElement, GradientSide, OutputGradient};
use super::low_rank::{LowRank, within};
use super::params::CudaParams;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::ops::bias::{add_bias, bias_backward};
use crate::backend::cuda::ops::outer::OuterProducts;
use crate::backend::cuda::ops::product::WeightSide;
use crate::backend::cuda::ops::rows::{Addend, DeviceRows};
use crate::backend::{Dtype, LinearCall, WeightPart};
use half::bf16;

/// Consecutive parts of a range from 0, of `width` each.
pub(super) fn chunks(total: usize, width: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total).step_by(width.max(1)).map(move |first| first..total.min(first + width))
}

impl Cuda {
    /// `out = residual + x Wᵀ + Σ segments + b`.
    pub(super) fn linear_of(
        &self,
        call: &LinearCall<'_, Self>,
        x: &Elements,
        residual: Option<&DeviceRows>,
        out: &mut DeviceRows,
    ) -> Result<LowRank> {
        match self.dtype {
            Dtype::F32 => self.forward::<f32>(call, x, residual, out),
            Dtype::Bf16 => self.forward::<bf16>(call, x, residual, out),
        }
    }

    fn forward<T: GemmElement>(
        &self,
        call: &LinearCall<'_, Self>,
        x: &Elements,
        residual: Option<&DeviceRows>,
        out: &mut DeviceRows,
    ) -> Result<LowRank> {
        let (x, weight) = (T::of(x)?, T::of(&call.weight.0)?);
        let (outputs, inputs) = call.weight.extents();
        let mut addend = residual.map_or(Addend::None, Addend::Rows);
        let adapters = self.adapters::<T>(call.lora, x.rows(), |_| true)?;
        let z = adapters.as_ref().map(|of| of.table.shrink(&self.device, x)).transpose()?;
        let shrunk = adapters.as_ref().zip(z.as_ref());
        // What adapters add goes to the GEMM, which reads it once, where they have all of the columns.
        let before = shrunk.filter(|(of, _)| of.table.writes(outputs));
        if let Some((adapters, z)) = before {
            adapters.table.expand(&self.device, z, addend, out)?;
            addend = Addend::Output;
        }
        for chunk in chunks(outputs, self.chunk) {
            let plan = self.plan::<T>(chunk.len(), inputs, WeightSide::Inputs)?;
            let first = chunk.start;
            self.matmul.run_columns(&plan, x, weight, chunk, out, first, addend)?;
        }
        if let (None, Some((adapters, z))) = (before, shrunk) {
            adapters.table.expand(&self.device, z, Addend::Output, out)?;
        }
        let low_rank = adapters.zip(z).map(|(adapters, z)| adapters.low_rank(z));
        if let Some(bias) = call.bias {
            add_bias(&self.device, bias, x.rows(), out)?;
        }
        Ok(LowRank(low_rank))
    }

    /// `dx = dy W + Σ dz A`.
    pub(super) fn linear_backward_of(
        &self,
        call: &LinearCall<'_, Self>,
        dy: &OutputGradient<'_>,
        dx: &mut DeviceRows,
    ) -> Result<LowRank> {
        match self.dtype {
            Dtype::F32 => self.backward::<f32>(call, dy, dx),
            Dtype::Bf16 => self.backward::<bf16>(call, dy, dx),
        }
    }

    fn backward<T: GemmElement>(
        &self,
        call: &LinearCall<'_, Self>,
        dy: &OutputGradient<'_>,
        dx: &mut DeviceRows,
    ) -> Result<LowRank> {
        let (dy, weight, (outputs, inputs)) = (T::of_gradient(dy)?, T::of(&call.weight.0)?, call.weight.extents());
        let plan = self.plan::<T>(outputs, inputs, WeightSide::Outputs)?;
        let adapters = self.adapters::<T>(call.lora, dy.rows(), |segment| segment.trains)?;
        let dz = adapters.as_ref().map(|of| of.table.shrink_backward(&self.device, dy)).transpose()?;
        let shrunk = adapters.as_ref().zip(dz.as_ref());
        let before = shrunk.filter(|(of, _)| of.table.writes_inputs());
        if let Some((adapters, dz)) = before {
            adapters.table.expand_backward(&self.device, dz, Addend::None, dx)?;
        }
        self.matmul.run(&plan, dy, weight, 0..outputs, dx, before.is_some())?;
        if let (None, Some((adapters, dz))) = (before, shrunk) {
            adapters.table.expand_backward(&self.device, dz, Addend::Output, dx)?;
        }
        Ok(LowRank(adapters.zip(dz).map(|(adapters, dz)| adapters.low_rank(dz))))
    }

    /// `dW += dyᵀ x` and `db += Σ dy` of every part.
    pub(super) fn weight_gradients_of(
        &self,
        parts: &[WeightPart],
        sequences: &[Range<usize>],
        x: &GradientSide<'_>,
        dy: &OutputGradient<'_>,
        CudaParams(grads): &mut CudaParams,
    ) -> Result {
        let (rows, width) = x.extents();
        let (mut gradients, sequences) = (OuterProducts::new(), within(sequences, &(0..rows)));
        for WeightPart { weight, column, outputs, .. } in parts {
            let sides = [dy.side.side(*column, *outputs), x.side(0, width)];
            gradients.push(&mut grads[*weight], 0, sides, &sequences)?;
        }
        gradients.launch(&self.device)?;
        for WeightPart { bias, column, outputs, .. } in parts {
            if let Some(bias) = bias {
                bias_backward(&self.device, dy.wide()?, *column..column + outputs, &mut grads[*bias])?;
            }
        }
        Ok(())
    }
}

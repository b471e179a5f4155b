//! Linear layers, and gradients of their weights.

use std::ops::Range;

use super::super::{DeviceRows, OuterProducts, OuterSide, Result, WeightSide, add_bias, bias_backward};
use super::elements::{Elements, GemmElement, OutputGradient};
use super::low_rank::{LowRank, within};
use super::{Cuda, CudaParams};
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
        if let Some(residual) = residual {
            out.data_mut().copy_from(0, residual.data(), 0..x.rows() * outputs)?;
        }
        for chunk in chunks(outputs, self.chunk) {
            let plan = self.plan::<T>((chunk.len(), inputs), WeightSide::Inputs)?;
            let first = chunk.start;
            self.matmul.run_columns(&plan, x, (weight, chunk), (out, first), residual.is_some())?;
        }
        let mut low_rank = None;
        if let Some(adapters) = self.adapters::<T>(call.lora, x.rows(), |_| true)? {
            let z = adapters.table.shrink(&self.device, x)?;
            adapters.table.expand(&self.device, &z, out)?;
            low_rank = Some(adapters.low_rank(z));
        }
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
        let (dy, weight, extents) = (T::of_gradient(dy)?, T::of(&call.weight.0)?, call.weight.extents());
        let plan = self.plan::<T>(extents, WeightSide::Outputs)?;
        self.matmul.run(&plan, dy, (weight, 0..extents.0), dx, false)?;
        let mut low_rank = None;
        if let Some(adapters) = self.adapters::<T>(call.lora, dy.rows(), |segment| segment.trains)? {
            let dz = adapters.table.shrink_backward(&self.device, dy)?;
            adapters.table.expand_backward(&self.device, &dz, dx)?;
            low_rank = Some(adapters.low_rank(dz));
        }
        Ok(LowRank(low_rank))
    }

    /// `dW += dyᵀ x` and `db += Σ dy` of every part.
    pub(super) fn weight_gradients_of(
        &self,
        parts: &[WeightPart],
        sequences: &[Range<usize>],
        x: &DeviceRows,
        dy: &DeviceRows,
        CudaParams(grads): &mut CudaParams,
    ) -> Result {
        let (mut gradients, sequences) = (OuterProducts::new(), within(sequences, &(0..x.rows())));
        for WeightPart { weight, column, outputs, .. } in parts {
            let sides = [OuterSide::new(dy, *column, *outputs), OuterSide::new(x, 0, x.width())];
            gradients.push(&mut grads[*weight], 0, sides, &sequences)?;
        }
        gradients.launch(&self.device, self.dtype == Dtype::Bf16)?;
        for WeightPart { bias, column, outputs, .. } in parts {
            if let Some(bias) = bias {
                bias_backward(&self.device, dy, *column..column + outputs, &mut grads[*bias])?;
            }
        }
        Ok(())
    }
}

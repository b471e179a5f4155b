//! Rows from and to the host.

use super::linear::chunks;
use super::{Cuda, done};
use crate::backend::check::HostAccess;
use crate::backend::cuda::ops::product::WeightSide;
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{Dtype, Tensors};
use half::bf16;

impl HostAccess for Cuda {
    fn rows(&self, rows: &[f32], width: usize) -> DeviceRows {
        self.done(DeviceRows::upload(self.gpu(), rows, width))
    }

    fn values(&self, rows: &DeviceRows) -> Vec<f32> {
        done(rows.to_host())
    }

    fn gradient(&self, dy: &<Self as Tensors>::OutputGradient<'_>) -> Vec<f32> {
        done(dy.side.to_host())
    }

    fn input(&self, x: &<Self as Tensors>::WeightInput<'_>) -> Vec<f32> {
        done(x.to_host())
    }

    fn product_plans(&self, outputs: usize, inputs: usize, backward: bool) -> String {
        let (side, width) = if backward { (WeightSide::Outputs, outputs) } else { (WeightSide::Inputs, self.chunk) };
        let mut widths: Vec<usize> = chunks(outputs, width).map(|chunk| chunk.len()).collect();
        widths.dedup();
        let plan = |outputs: usize| match self.dtype {
            Dtype::Bf16 => self.plan::<bf16>(outputs, inputs, side),
            Dtype::F32 => self.plan::<f32>(outputs, inputs, side),
        };
        let described = widths.iter().map(|outputs| format!("{outputs} outputs {}", self.done(plan(*outputs))));
        described.collect::<Vec<_>>().join(", ")
    }
}

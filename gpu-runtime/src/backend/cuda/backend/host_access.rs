//! Rows from and to the host.

use super::{Cuda, done};
use crate::backend::Tensors;
use crate::backend::check::HostAccess;
use crate::backend::cuda::ops::rows::DeviceRows;

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
}

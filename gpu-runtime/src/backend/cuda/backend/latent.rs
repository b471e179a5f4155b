//! Multi-head latent attention on the device.

use std::ops::Range;

use super::Cuda;
use crate::backend::cuda::ops::latent::{
    DeviceLatentRotation, add_rows, columns, head_values, join_columns, join_heads, pad_values, split_heads,
};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{LatentHeads, LatentOps, LatentRotation};

fn of<'a>(rotation: &LatentRotation<'a, Cuda>) -> DeviceLatentRotation<'a> {
    let LatentRotation { heads, rope, positions } = *rotation;
    DeviceLatentRotation { heads, rope, positions }
}

impl LatentOps<Self> for Cuda {
    fn add_rows(cuda: &Self, from: &DeviceRows, to: &mut DeviceRows) {
        cuda.done(add_rows(&cuda.device, from, to));
    }

    fn columns(cuda: &Self, from: &DeviceRows, of: Range<usize>) -> DeviceRows {
        cuda.done(columns(&cuda.device, from, of))
    }

    fn join_columns(cuda: &Self, left: &DeviceRows, right: &DeviceRows) -> DeviceRows {
        cuda.done(join_columns(&cuda.device, left, right))
    }

    fn join_heads(
        cuda: &Self,
        rotation: &LatentRotation<'_, Self>,
        q: &DeviceRows,
        kv: &DeviceRows,
        down: &DeviceRows,
    ) -> DeviceRows {
        cuda.done(join_heads(&cuda.device, &of(rotation), q, kv, down))
    }

    fn split_heads(cuda: &Self, rotation: &LatentRotation<'_, Self>, d_qkv: &DeviceRows) -> [DeviceRows; 3] {
        cuda.done(split_heads(&cuda.device, &of(rotation), d_qkv))
    }

    fn head_values(cuda: &Self, heads: LatentHeads, attended: &DeviceRows) -> DeviceRows {
        cuda.done(head_values(&cuda.device, heads, attended))
    }

    fn pad_values(cuda: &Self, heads: LatentHeads, d_values: &DeviceRows) -> DeviceRows {
        cuda.done(pad_values(&cuda.device, heads, d_values))
    }
}

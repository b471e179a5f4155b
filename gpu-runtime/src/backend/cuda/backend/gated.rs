//! Gated attention on the device.

use super::Cuda;
use super::params::CudaParams;
use crate::backend::cuda::ops::gated::{gate_heads, gate_heads_backward, join_gates, split_gates};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::{AttentionShape, GateOps, Rotation};

impl GateOps<Self> for Cuda {
    const HAS_GATES: bool = true;

    fn split_gates(cuda: &Self, shape: &AttentionShape, projected: &DeviceRows) -> [DeviceRows; 2] {
        cuda.done(split_gates(&cuda.device, shape, projected))
    }

    fn join_gates(cuda: &Self, shape: &AttentionShape, qkv: &DeviceRows, gates: &DeviceRows) -> DeviceRows {
        cuda.done(join_gates(&cuda.device, shape, qkv, gates))
    }

    fn gate_heads(cuda: &Self, heads: &DeviceRows, gates: &DeviceRows) -> DeviceRows {
        cuda.done(gate_heads(&cuda.device, heads, gates))
    }

    fn gate_heads_backward(cuda: &Self, heads: &DeviceRows, gates: &DeviceRows, d_out: &DeviceRows) -> [DeviceRows; 2] {
        cuda.done(gate_heads_backward(&cuda.device, heads, gates, d_out))
    }

    fn rotate_backward_rows(
        cuda: &Self,
        rotation: &Rotation<'_, Self>,
        before: Option<&DeviceRows>,
        mut d_qkv: DeviceRows,
        dw: Option<(&mut CudaParams, [usize; 2])>,
    ) -> DeviceRows {
        cuda.done(cuda.rotate_heads_backward(rotation, before, &mut d_qkv, dw));
        d_qkv
    }
}

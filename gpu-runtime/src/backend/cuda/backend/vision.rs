//! Ops of vision towers.

use std::ops::Range;

use half::bf16;

use super::Cuda;
use super::elements::{Elements, GemmElement};
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::ops::attention_tiles::has_tensor_attention;
use crate::backend::cuda::ops::image_attention::{attend_images, tensor_attend_images};
use crate::backend::cuda::ops::rows::DeviceRows;
use crate::backend::cuda::ops::vision::{DeviceLayerNorm, add_rows, gelu, layer_norm, mix_rows};
use crate::backend::{AttentionShape, Backend, Dtype, Gelu, IndexKeys, LayerNorm, LinearCall, RowMix, VisionOps};

fn of<'a>(norm: &LayerNorm<'a, Cuda>) -> DeviceLayerNorm<'a> {
    DeviceLayerNorm { weight: norm.weight, bias: norm.bias, eps: norm.eps }
}

impl Cuda {
    fn layer_norm_of<T: GemmElement>(&self, norm: &LayerNorm<'_, Self>, x: &DeviceRows) -> Result<Elements> {
        Ok(T::elements(layer_norm(&self.device, of(norm), x)?))
    }

    fn gelu_of<T: GemmElement>(&self, kind: Gelu, x: &DeviceRows) -> Result<Elements> {
        Ok(T::elements(gelu(&self.device, kind, x)?))
    }

    fn attend_within(&self, heads: usize, images: &[Range<usize>], qkv: &DeviceRows) -> Result<DeviceRows> {
        let head_dim = qkv.width().checked_div(3 * heads).unwrap_or(0);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let shape = AttentionShape { layers: 1, heads, kv_heads: heads, head_dim, scale, index: IndexKeys::NONE };
        match self.dtype == Dtype::Bf16 && has_tensor_attention(&shape) {
            true => tensor_attend_images(&self.device, &shape, images, qkv),
            false => attend_images(&self.device, &shape, images, qkv),
        }
    }
}

impl VisionOps<Self> for Cuda {
    fn upload_rows(cuda: &Self, values: &[f32], width: usize) -> DeviceRows {
        cuda.done(DeviceRows::upload(&cuda.device, values, width))
    }

    fn layer_norm(cuda: &Self, norm: LayerNorm<'_, Self>, x: &DeviceRows) -> DeviceRows {
        cuda.done(layer_norm(&cuda.device, of(&norm), x))
    }

    fn layer_norm_lhs(cuda: &Self, norm: LayerNorm<'_, Self>, x: &DeviceRows) -> Elements {
        cuda.done(match cuda.dtype {
            Dtype::F32 => cuda.layer_norm_of::<f32>(&norm, x),
            Dtype::Bf16 => cuda.layer_norm_of::<bf16>(&norm, x),
        })
    }

    fn linear_gelu(cuda: &Self, call: &LinearCall<'_, Self>, kind: Gelu, x: &Elements) -> Elements {
        let mut out = cuda.alloc(x.rows(), call.weight.extents().0);
        cuda.linear(call, x, None, &mut out);
        Self::gelu(cuda, kind, &out)
    }

    fn gelu(cuda: &Self, kind: Gelu, x: &DeviceRows) -> Elements {
        cuda.done(match cuda.dtype {
            Dtype::F32 => cuda.gelu_of::<f32>(kind, x),
            Dtype::Bf16 => cuda.gelu_of::<bf16>(kind, x),
        })
    }

    fn mix_rows(cuda: &Self, table: &DeviceRows, mix: &RowMix) -> DeviceRows {
        cuda.done(mix_rows(&cuda.device, table, mix))
    }

    fn attend_all(cuda: &Self, heads: usize, images: &[Range<usize>], qkv: &DeviceRows) -> DeviceRows {
        cuda.done(cuda.attend_within(heads, images, qkv))
    }

    fn join_rows(cuda: &Self, x: DeviceRows, count: usize) -> DeviceRows {
        cuda.done(x.joined(count))
    }

    fn add_rows(cuda: &Self, from: &DeviceRows, rows: &[usize], to: &mut DeviceRows) {
        cuda.done(add_rows(&cuda.device, from, rows, to));
    }
}

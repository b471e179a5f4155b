//! Attention over a pool of keys and values, and the ops on queries and keys before it.

use std::sync::{Arc, Mutex, PoisonError};

use half::bf16;

use super::Cuda;
use super::params::CudaParams;
use crate::backend::cuda::device::error::Result;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::attention::{
    DeviceAttention, DeviceKvPool, DeviceSpans, attention, attention_backward, kv_write,
};
use crate::backend::cuda::ops::attention_tiles::has_tensor_attention;
use crate::backend::cuda::ops::norm::DeviceNorm;
use crate::backend::cuda::ops::rotary::{DeviceRotation, rotate, rotate_backward, rotate_backward_rounded};
use crate::backend::cuda::ops::rows::{DeviceRows, RowElement};
use crate::backend::cuda::ops::tensor_attention::{tensor_attention, tensor_attention_backward};
use crate::backend::{AttentionCall, AttentionShape, BlockId, Dtype, KV_BLOCK, Norm, Rotation, Span};

/// Keys and values: in bf16 for tensor cores if the weights are in bf16 and the heads fit the kernels, otherwise in
/// f32.
pub enum KvPool {
    /// Keys and values stored as f32.
    F32(Pool<f32>),
    /// Keys and values rounded to bf16.
    Bf16(Pool<bf16>),
}

/// The sequences of a batch and its number of rows, on the device.
type LastSpans<T> = (Vec<Span>, usize, Arc<DeviceSpans<T>>);

/// Blocks of keys and values, and the sequences of the last call: all decoder blocks of a pass have the same.
pub struct Pool<T: RowElement> {
    blocks: DeviceKvPool<T>,
    last: Mutex<Option<LastSpans<T>>>,
}

impl<T: RowElement> Pool<T> {
    fn new(shape: &AttentionShape) -> Result<Self> {
        Ok(Self { blocks: DeviceKvPool::new(shape)?, last: Mutex::default() })
    }

    /// Mutable access to the pool, for calls that may change addresses of blocks.
    fn change(&mut self) -> &mut DeviceKvPool<T> {
        *self.last.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        &mut self.blocks
    }

    fn spans(&self, device: &CudaDevice, spans: &[Span], rows: usize) -> Result<Arc<DeviceSpans<T>>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((own, count, found)) = &*last
            && (&own[..], *count) == (spans, rows)
        {
            return Ok(found.clone());
        }
        let found = Arc::new(DeviceSpans::upload(device, &self.blocks, spans, rows)?);
        *last = Some((spans.to_vec(), rows, found.clone()));
        Ok(found)
    }

    fn write(&mut self, device: &CudaDevice, of: AttentionCall<'_>, qkv: &DeviceRows) -> Result {
        let spans = self.spans(device, of.spans, qkv.rows())?;
        kv_write(device, call(of, &spans), &mut self.blocks, qkv)
    }
}

impl KvPool {
    /// Whether keys and values of heads of these extents are in bf16.
    fn is_rounded(dtype: Dtype, shape: &AttentionShape) -> bool {
        dtype == Dtype::Bf16 && has_tensor_attention(shape)
    }

    pub(super) fn new(dtype: Dtype, shape: &AttentionShape) -> Result<Self> {
        Ok(if Self::is_rounded(dtype, shape) { Self::Bf16(Pool::new(shape)?) } else { Self::F32(Pool::new(shape)?) })
    }

    /// Bytes of a block of such a pool.
    pub(super) fn block_bytes(dtype: Dtype, shape: &AttentionShape) -> usize {
        let element = if Self::is_rounded(dtype, shape) { size_of::<bf16>() } else { size_of::<f32>() };
        2 * shape.layers * shape.kv_width() * KV_BLOCK * element
    }

    pub(super) fn take(&mut self, device: &CudaDevice) -> Result<BlockId> {
        match self {
            Self::F32(pool) => pool.change().take(device),
            Self::Bf16(pool) => pool.change().take(device),
        }
    }

    pub(super) fn release(&mut self, block: BlockId) {
        match self {
            Self::F32(pool) => pool.change().release(block),
            Self::Bf16(pool) => pool.change().release(block),
        }
    }

    pub(super) fn copy(&mut self, from: BlockId, to: BlockId) -> Result {
        match self {
            Self::F32(pool) => pool.change().copy(from, to),
            Self::Bf16(pool) => pool.change().copy(from, to),
        }
    }
}

fn call<'a, T: RowElement>(call: AttentionCall<'a>, spans: &'a DeviceSpans<T>) -> DeviceAttention<'a, T> {
    DeviceAttention { shape: call.shape, layer: call.layer, window: call.window, spans }
}

fn rotation<'a>(rotation: &Rotation<'a, Cuda>) -> DeviceRotation<'a> {
    let norm = |Norm { weight, eps }: Norm<'a, Cuda>| DeviceNorm { weight, eps };
    let Rotation { shape, norms, whole_norms, rope, query_rope, positions } = *rotation;
    DeviceRotation { shape, norms: norms.map(|norms| norms.map(norm)), whole_norms, rope, query_rope, positions }
}

impl Cuda {
    pub(super) fn attend(&self, of: AttentionCall<'_>, pool: &KvPool, qkv: &DeviceRows) -> Result<[DeviceRows; 2]> {
        assert!(of.chosen.is_none(), "kernels see all positions");
        match pool {
            KvPool::F32(pool) => {
                let spans = pool.spans(&self.device, of.spans, qkv.rows())?;
                attention(&self.device, call(of, &spans), &pool.blocks, qkv)
            }
            KvPool::Bf16(pool) => {
                let spans = pool.spans(&self.device, of.spans, qkv.rows())?;
                tensor_attention(&self.device, call(of, &spans), &pool.blocks, qkv)
            }
        }
    }

    pub(super) fn attend_backward(
        &self,
        of: AttentionCall<'_>,
        pool: &KvPool,
        qkv: &DeviceRows,
        forward: [&DeviceRows; 2],
        d_out: &DeviceRows,
    ) -> Result<DeviceRows> {
        assert!(of.chosen.is_none(), "kernels see all positions");
        match pool {
            KvPool::F32(pool) => {
                let spans = pool.spans(&self.device, of.spans, qkv.rows())?;
                attention_backward(&self.device, call(of, &spans), &pool.blocks, qkv, forward, d_out)
            }
            KvPool::Bf16(pool) => {
                let spans = pool.spans(&self.device, of.spans, qkv.rows())?;
                tensor_attention_backward(&self.device, call(of, &spans), &pool.blocks, qkv, forward, d_out)
            }
        }
    }

    pub(super) fn write_kv(&self, pool: &mut KvPool, of: AttentionCall<'_>, qkv: &DeviceRows) -> Result {
        match pool {
            KvPool::F32(pool) => pool.write(&self.device, of, qkv),
            KvPool::Bf16(pool) => pool.write(&self.device, of, qkv),
        }
    }

    pub(super) fn rotate_heads(
        &self,
        of: &Rotation<'_, Self>,
        qkv: &mut DeviceRows,
        save: bool,
    ) -> Result<Option<DeviceRows>> {
        rotate(&self.device, &rotation(of), qkv, save)
    }

    /// Whether gradients with rounded results can be computed in one launch, where those of the norms are not needed.
    pub(super) fn rotates_at_once(of: &Rotation<'_, Self>) -> bool {
        of.norms.is_some() && rotation(of).is_plain()
    }

    /// Rotates gradients back, rounded; for norms whose gradients are not needed.
    pub(super) fn rotate_heads_backward_rounded(
        &self,
        of: &Rotation<'_, Self>,
        before: &DeviceRows,
        d_qkv: &DeviceRows,
    ) -> Result<DeviceRows<bf16>> {
        rotate_backward_rounded(&self.device, &rotation(of), before, d_qkv)
    }

    /// Turns the gradient of the rotated heads back, in place of `d_qkv`.
    pub(super) fn rotate_heads_backward(
        &self,
        of: &Rotation<'_, Self>,
        before: Option<&DeviceRows>,
        d_qkv: &mut DeviceRows,
        dw: Option<(&mut CudaParams, [usize; 2])>,
    ) -> Result {
        // Where the gradients are one and the same parameter, or none of these, they are a bug of the caller.
        let dw = dw.and_then(|(params, indices)| params.0.get_disjoint_mut(indices).ok());
        rotate_backward(&self.device, &rotation(of), before, d_qkv, dw)
    }
}

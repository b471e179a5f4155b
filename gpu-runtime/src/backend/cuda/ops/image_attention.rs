//! Attention of every row to all rows of its image, with the kernels of causal attention. Keys and values are written for one call
//! to blocks that follow each other, those of an image from its first row on.

use std::ops::Range;

use half::bf16;

use super::attention::{DeviceAttention, DeviceSpans, Row, attend_rows, check_heads, write_rows};
use super::attention_tiles::Tiles;
use super::rows::{DeviceRows, RowElement};
use super::tensor_attention::tensor_attention_all;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::{AttentionShape, KV_BLOCK, Span};

const EXTENTS: Extents = Extents("attention within images");

/// Keys and values of images, and the rows that attend to them.
struct ImageKeys<T: RowElement> {
    shape: AttentionShape,
    spans: DeviceSpans<T>,
    /// Blocks of keys and values, to which the rows refer.
    _blocks: Slice<T>,
}

impl<T: RowElement> ImageKeys<T> {
    /// Writes keys and values of the rows of `qkv`, rounded to `T`. Images are consecutive rows, and have all of them.
    fn write(device: &CudaDevice, shape: &AttentionShape, images: &[Range<usize>], qkv: &DeviceRows) -> Result<Self> {
        check_heads(EXTENTS, shape)?;
        EXTENTS.equal("the width of q, k and v", qkv.width(), shape.qkv_width())?;
        let of_block = 2 * KV_BLOCK * shape.kv_width();
        let count: usize = images.iter().map(|rows| rows.len().div_ceil(KV_BLOCK)).sum();
        let blocks = device.uninitialised::<T>(count * of_block)?;
        let address = |block: usize| blocks.address() + (block * of_block * size_of::<T>()) as u64;
        let addresses = device.upload(&(0..count).map(address).collect::<Vec<_>>())?;
        let mut tiles = Tiles::planned(shape);
        let (mut packed, mut first_block) = (Vec::with_capacity(qkv.rows()), 0);
        for rows in images.iter().filter(|rows| !rows.is_empty()) {
            EXTENTS.equal("an image's first row", rows.start, packed.len())?;
            let own = first_block..first_block + rows.len().div_ceil(KV_BLOCK);
            let table = addresses.address_of(own.clone())?;
            // Kernels without tiles take it for the last position that a row sees.
            let position = EXTENTS.index("a position", rows.len() - 1)?;
            let end = EXTENTS.index("a row", rows.end)?;
            packed.extend((0..rows.len()).map(|at| {
                let offset = at % KV_BLOCK * shape.kv_width() * size_of::<T>();
                Row { blocks: table, to: address(own.start + at / KV_BLOCK) + offset as u64, position, end }
            }));
            tiles.push(table, &Span { rows: rows.clone(), start: 0, blocks: Vec::new(), held: 0, state: None })?;
            first_block = own.end;
        }
        EXTENTS.equal("the rows of images", packed.len(), qkv.rows())?;
        let rows = device.upload(&packed)?;
        let spans = DeviceSpans::of_parts(rows, addresses, tiles.upload(device, packed.len())?);
        let keys = Self { shape: *shape, spans, _blocks: blocks };
        write_rows(device, EXTENTS, keys.call(), qkv)?;
        Ok(keys)
    }

    fn call(&self) -> DeviceAttention<'_, T> {
        DeviceAttention { shape: &self.shape, layer: 0, window: None, spans: &self.spans }
    }
}

/// Softmax attention of every row of `qkv` to all rows of its image, `[rows, q_width]`. The arithmetic is that of
/// [`attention`](super::attention::attention) for a row that sees all keys.
pub(crate) fn attend_images(
    device: &CudaDevice,
    shape: &AttentionShape,
    images: &[Range<usize>],
    qkv: &DeviceRows,
) -> Result<DeviceRows> {
    let keys = ImageKeys::<f32>::write(device, shape, images, qkv)?;
    let [out, _] = attend_rows(device, EXTENTS, keys.call(), qkv)?;
    Ok(out)
}

/// [`attend_images`] on tensor cores, with the arithmetic of [`tensor_attention`](super::tensor_attention::tensor_attention).
pub(crate) fn tensor_attend_images(
    device: &CudaDevice,
    shape: &AttentionShape,
    images: &[Range<usize>],
    qkv: &DeviceRows,
) -> Result<DeviceRows> {
    let keys = ImageKeys::<bf16>::write(device, shape, images, qkv)?;
    tensor_attention_all(device, keys.call(), qkv)
}

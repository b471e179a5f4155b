//! Causal grouped-query attention on tensor cores, over a pool of keys and values in bf16.

use half::bf16;

use super::attention::{DeviceAttention, DeviceKvPool};
use super::attention_tiles::{MOST_HEAD_DIM, ROWS, has_tensor_attention};
use super::rows::DeviceRows;
use crate::backend::AttentionShape;
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::open::CudaDevice;

/// Threads of a block, as in `kernels/tensor_attention_prelude.cu`.
const THREADS: u32 = 128;

/// The name of a kernel for heads of this width, once it is checked.
fn kernel(extents: Extents, name: &str, shape: &AttentionShape) -> Result<String> {
    let head_dim = shape.head_dim;
    extents.check(has_tensor_attention(shape), "the width of a head", head_dim, || {
        format!("a multiple of 8 up to {MOST_HEAD_DIM}, with at most {ROWS} query heads for a key head")
    })?;
    Ok(format!("{name}_{}", if head_dim <= 64 { 64 } else { MOST_HEAD_DIM }))
}

/// Elements of a split's state in `kernels/tensor_attention_forward.cu`.
const STATE: usize = 4;

/// Attention of the rotated queries in `qkv` over keys and values in the pool, where [`kv_write`](super::attention::kv_write) has put those of
/// every position up to each row's own. Returns the output, `[rows, q_width]`, and the log-sum-exp of the scaled scores,
/// `[rows, heads]`; both are zero in rows of no sequence.
///
/// Softmax runs over splits of 128 keys that begin at a sequence's first token, in each over tiles of
/// [`KV_BLOCK`](crate::backend::KV_BLOCK) keys in order, and splits are joined in order. Queries, keys, values, and probabilities
/// relative to the running maximum are rounded to bf16, sums are f32. The output is divided by the sum of the rounded probabilities; the
/// log-sum-exp is of the unrounded ones. Extents have to be those of [`has_tensor_attention`].
pub(crate) fn tensor_attention(
    device: &CudaDevice,
    call: DeviceAttention<'_, bf16>,
    pool: &DeviceKvPool<bf16>,
    qkv: &DeviceRows,
) -> Result<[DeviceRows; 2]> {
    let extents = Extents("tensor_attention");
    call.check(extents, pool, qkv)?;
    let (shape, tiles) = (call.shape, &call.spans.tiles);
    let name = kernel(extents, "tensor_attention", shape)?;
    let rows = |width| {
        let new = if tiles.covered { DeviceRows::uninitialised } else { DeviceRows::zeros };
        new(device, qkv.rows(), width)
    };
    let (mut out, mut log_sums) = (rows(shape.q_width())?, rows(shape.heads)?);
    let (blocks, [heads, kv_heads]) = (extents.index("the tiles", tiles.queries.len())?, call.heads(extents)?);
    let Some(splits) = tiles.splits(shape, qkv.rows()) else {
        let arguments = [qkv.data().into(), (&tiles.queries).into(), out.data_mut().into(), log_sums.data_mut().into()];
        let arguments = [&arguments[..], &call.shape(extents)?].concat();
        device.launch(&name, [blocks, kv_heads, 1], THREADS, &arguments)?;
        return Ok([out, log_sums]);
    };
    let part = |width: usize| DeviceRows::<f32>::uninitialised(device, qkv.rows(), width * splits);
    let (mut parts, mut states) = (part(shape.q_width())?, part(shape.heads * STATE)?);
    let arguments = [qkv.data().into(), (&tiles.queries).into(), parts.data_mut().into(), states.data_mut().into()];
    let arguments = [&arguments[..], &call.shape(extents)?].concat();
    let splits = extents.index("the splits", splits)?;
    let name = kernel(extents, "tensor_attention_split", shape)?;
    device.launch(&name, [blocks, kv_heads, splits], THREADS, &arguments)?;
    let arguments = [
        parts.data().into(),
        states.data().into(),
        (&tiles.queries).into(),
        out.data_mut().into(),
        log_sums.data_mut().into(),
        splits.into(),
        heads.into(),
        kv_heads.into(),
        extents.index("the width of a head", shape.head_dim)?.into(),
    ];
    let grid = [blocks, kv_heads, heads.checked_div(kv_heads).unwrap_or(0)];
    device.launch("tensor_attention_join", grid, THREADS, &arguments)?;
    Ok([out, log_sums])
}

/// Attention of every row to all keys of its sequence, with the arithmetic of [`tensor_attention`]: the output, `[rows, q_width]`.
/// Every row of `qkv` belongs to a sequence, which begins at position 0.
pub(super) fn tensor_attention_all(
    device: &CudaDevice,
    call: DeviceAttention<'_, bf16>,
    qkv: &DeviceRows,
) -> Result<DeviceRows> {
    let extents = Extents("tensor_attention_all");
    let (shape, tiles) = (call.shape, &call.spans.tiles);
    let name = kernel(extents, "tensor_attention_all", shape)?;
    let mut out = DeviceRows::uninitialised(device, qkv.rows(), shape.q_width())?;
    let mut log_sums = DeviceRows::<f32>::uninitialised(device, qkv.rows(), shape.heads)?;
    let arguments = [qkv.data().into(), (&tiles.queries).into(), out.data_mut().into(), log_sums.data_mut().into()];
    let arguments = [&arguments[..], &call.shape(extents)?].concat();
    let grid = [extents.index("the tiles", tiles.queries.len())?, call.heads(extents)?[1], 1];
    device.launch(&name, grid, THREADS, &arguments)?;
    Ok(out)
}

/// Gradient with respect to rotated `qkv`, `[rows, qkv_width]`, zero in rows of no sequence, given what [`tensor_attention`] returned
/// and the gradient with respect to its output. Every sequence starts at position 0, and its keys and values are still in the pool.
/// A key's and value's sum runs over the query heads that share it, in each over the queries in order; a query's over the tiles in
/// order. What [`tensor_attention`] rounds, `d_out`, recomputed probabilities and the gradients of scores before the scale are rounded
/// to bf16.
pub(crate) fn tensor_attention_backward(
    device: &CudaDevice,
    call: DeviceAttention<'_, bf16>,
    pool: &DeviceKvPool<bf16>,
    qkv: &DeviceRows,
    [out, log_sums]: [&DeviceRows; 2],
    d_out: &DeviceRows,
) -> Result<DeviceRows> {
    let extents = Extents("tensor_attention_backward");
    let (rows, tiles, shape) = (call.check(extents, pool, qkv)?, &call.spans.tiles, call.shape);
    for (what, rows) in [("the output", out), ("the gradient of the output", d_out)] {
        rows.expect(extents, what, qkv.rows(), shape.q_width())?;
    }
    log_sums.expect(extents, "the log-sum-exps", qkv.rows(), shape.heads)?;
    extents.check(call.spans.whole, "a sequence's first position", 1, || "0".to_owned())?;
    let [of_queries, of_keys] =
        ["tensor_attention_backward_q", "tensor_attention_backward_kv"].map(|name| kernel(extents, name, shape));
    let (of_queries, of_keys, [heads, kv_heads]) = (of_queries?, of_keys?, call.heads(extents)?);

    let narrow = || DeviceRows::<bf16>::uninitialised(device, qkv.rows(), shape.q_width());
    let (mut q16, mut d_out16) = (narrow()?, narrow()?);
    let mut sums = DeviceRows::<f32>::uninitialised(device, shape.heads, qkv.rows() * 2)?;
    let arguments = [
        qkv.data().into(),
        out.data().into(),
        d_out.data().into(),
        log_sums.data().into(),
        q16.data_mut().into(),
        d_out16.data_mut().into(),
        sums.data_mut().into(),
        heads.into(),
        extents.index("the width of a head", shape.head_dim)?.into(),
        extents.index("the width of q, k and v", qkv.width())?.into(),
    ];
    device.launch("tensor_attention_prepare", [rows, heads.div_ceil(THREADS / 32), 1], THREADS, &arguments)?;

    // The two kernels write all elements of rows of sequences.
    let new = if tiles.covered { DeviceRows::uninitialised } else { DeviceRows::zeros };
    let mut d_qkv = new(device, qkv.rows(), qkv.width())?;
    let arguments = [
        qkv.data().into(),
        (&tiles.queries).into(),
        d_out.data().into(),
        sums.data().into(),
        d_qkv.data_mut().into(),
        rows.into(),
    ];
    let arguments = [&arguments[..], &call.shape(extents)?].concat();
    let grid = [extents.index("the tiles", tiles.queries.len())?, kv_heads, 1];
    device.launch(&of_queries, grid, THREADS, &arguments)?;
    let arguments = [
        q16.data().into(),
        (&tiles.keys).into(),
        d_out16.data().into(),
        sums.data().into(),
        d_qkv.data_mut().into(),
        rows.into(),
    ];
    let arguments = [&arguments[..], &call.shape(extents)?].concat();
    let grid = [extents.index("the tiles", tiles.keys.len())?, kv_heads, 1];
    device.launch(&of_keys, grid, THREADS, &arguments)?;
    Ok(d_qkv)
}

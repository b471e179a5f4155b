//! Causal grouped-query attention over a pool of keys and values in blocks, in f32 and without tensor cores.
//! `tensor_attention.rs` handles pools in bf16.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use super::attention_tiles::Tiles;
use super::rows::{DeviceRows, RowElement, column_blocks};
use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;
use crate::backend::{AttentionShape, BlockId, KV_BLOCK, Span};

/// Keys and values of [`KV_BLOCK`] positions each, all layers and heads: `[layer][key, value][position][head]`, in f32
/// or rounded to bf16.
pub(crate) struct DeviceKvPool<T: RowElement = f32> {
    shape: AttentionShape,
    /// `None`: the id is free.
    blocks: Vec<Option<Slice<T>>>,
    free: BTreeSet<u32>,
}

const MOST_HEAD_DIM: usize = 256;

/// Refuses heads that kernels do not compute.
pub(super) fn check_heads(extents: Extents, shape: &AttentionShape) -> Result {
    extents.check(shape.head_dim <= MOST_HEAD_DIM, "the width of a head", shape.head_dim, || {
        format!("at most {MOST_HEAD_DIM}")
    })?;
    let divides = shape.kv_heads > 0 && shape.heads.is_multiple_of(shape.kv_heads);
    extents.check(divides, "the number of key heads", shape.kv_heads, || format!("a divisor of {}", shape.heads))
}

impl<T: RowElement> DeviceKvPool<T> {
    /// A pool without blocks for a model's attention.
    pub(crate) fn new(shape: &AttentionShape) -> Result<Self> {
        check_heads(Extents("a pool of keys and values"), shape)?;
        Ok(Self { shape: *shape, blocks: Vec::new(), free: BTreeSet::new() })
    }

    /// Elements of a block.
    fn block_len(&self) -> usize {
        2 * self.shape.layers * KV_BLOCK * self.shape.kv_width()
    }

    /// Allocates a block of zeros.
    pub(crate) fn take(&mut self, device: &CudaDevice) -> Result<BlockId> {
        let block = Some(device.zeros(self.block_len())?);
        if let Some(id) = self.free.pop_first() {
            if let Some(place) = self.blocks.get_mut(id as usize) {
                *place = block;
            }
            return Ok(BlockId(id));
        }
        let id = Extents("a pool of keys and values").index("the number of blocks", self.blocks.len())?;
        self.blocks.push(block);
        Ok(BlockId(id))
    }

    /// Frees a block; its id may be reused.
    pub(crate) fn release(&mut self, block: BlockId) {
        let held = self.blocks.get_mut(block.0 as usize).and_then(Option::take);
        if held.is_some() {
            self.free.insert(block.0);
        }
    }

    /// Overwrites block `to` with the elements of block `from`, all layers.
    pub(crate) fn copy(&mut self, from: BlockId, to: BlockId) -> Result {
        let copy = self.block(from)?.copy(0..self.block_len())?;
        self.block(to)?;
        if let Some(place) = self.blocks.get_mut(to.0 as usize) {
            *place = Some(copy);
        }
        Ok(())
    }

    /// A block that was not freed.
    fn block(&self, BlockId(id): BlockId) -> Result<&Slice<T>> {
        let found = self.blocks.get(id as usize).and_then(Option::as_ref);
        found.ok_or_else(|| crate::backend::cuda::device::error::CudaError::Extent {
            op: "a pool of keys and values",
            what: "a block",
            found: id as usize,
            expected: "one that was allocated".to_owned(),
        })
    }
}

/// A row of the batch as kernels read it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Row {
    /// Address of the addresses of its sequence's blocks.
    pub(super) blocks: u64,
    /// Address for layer 0 of the row's keys; 0 if they are already written.
    pub(super) to: u64,
    /// Position of the row, the last one that it sees; `u32::MAX` if it belongs to no sequence.
    pub(super) position: u32,
    /// Behind the sequence's last row.
    pub(super) end: u32,
}

impl Element for Row {}

/// The sequences of a pass, on the device: for all layers. No block of theirs may be freed or overwritten by a copy before the pass
/// ends.
pub(crate) struct DeviceSpans<T: RowElement = f32> {
    rows: Slice<Row>,
    /// Addresses of blocks, to which the rows refer.
    _blocks: Slice<u64>,
    pub(crate) tiles: Tiles,
    /// Whether every sequence begins at position 0: backward passes need that.
    pub(crate) whole: bool,
    element: PhantomData<T>,
}

impl<T: RowElement> DeviceSpans<T> {
    /// Sequences of these rows and tiles, which refer to `blocks`, addresses of blocks. All begin at position 0.
    pub(super) fn of_parts(rows: Slice<Row>, blocks: Slice<u64>, tiles: Tiles) -> Self {
        Self { rows, _blocks: blocks, tiles, whole: true, element: PhantomData }
    }

    /// Uploads the spans of a batch of `rows` rows.
    pub(crate) fn upload(device: &CudaDevice, pool: &DeviceKvPool<T>, spans: &[Span], rows: usize) -> Result<Self> {
        let extents = Extents("the sequences of a pass");
        let mut addresses = Vec::new();
        for block in spans.iter().flat_map(|span| &span.blocks) {
            addresses.push(pool.block(*block)?.address());
        }
        let blocks = device.upload(&addresses)?;
        let mut tiles = Tiles::planned(&pool.shape);
        let mut packed = vec![Row { position: u32::MAX, ..Row::default() }; rows];
        let (mut written, mut first_block, mut before) = (BTreeSet::new(), 0, 0);
        for span in spans {
            extents.check(span.rows.start >= before, "a sequence's first row", span.rows.start, || {
                format!("at least {before}: sequences are in order")
            })?;
            extents
                .check(span.rows.end <= rows, "a sequence's last row", span.rows.end, || format!("at most {rows}"))?;
            before = span.rows.end;
            let positions = span.start + span.rows.len();
            let held = span.blocks.len() * KV_BLOCK;
            extents.check(positions <= held, "a sequence's length", positions, || format!("at most {held}"))?;
            let end = extents.index("a row", span.rows.end)?;
            let tables = blocks.address_of(first_block..first_block + span.blocks.len())?;
            for (position, row) in (span.start..).zip(span.rows.clone()) {
                let Some(place) = packed.get_mut(row) else { continue };
                let block = addresses.get(first_block + position / KV_BLOCK).copied().unwrap_or(0);
                let offset = position % KV_BLOCK * pool.shape.kv_width() * size_of::<T>();
                let writes = position >= span.held;
                let to = if writes { block + offset as u64 } else { 0 };
                *place = Row { blocks: tables, to, position: extents.index("a position", position)?, end };
                let distinct = !writes || written.insert(to);
                extents.check(distinct, "a position that two sequences write", position, || "one's own".to_owned())?;
            }
            tiles.push(tables, span)?;
            first_block += span.blocks.len();
        }
        let whole = spans.iter().all(|span| span.start == 0);
        let tiles = tiles.upload(device, rows)?;
        Ok(Self { rows: device.upload(&packed)?, _blocks: blocks, tiles, whole, element: PhantomData })
    }
}

/// Attention of one decoder block over the sequences of a pass.
pub(crate) struct DeviceAttention<'a, T: RowElement = f32> {
    /// Extents of the model's attention.
    pub shape: &'a AttentionShape,
    /// Index of the decoder block.
    pub layer: usize,
    /// Positions that a query sees, its own included; all before it when `None`.
    pub window: Option<usize>,
    /// The sequences that the rows belong to.
    pub spans: &'a DeviceSpans<T>,
}

impl<T: RowElement> Clone for DeviceAttention<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: RowElement> Copy for DeviceAttention<'_, T> {}

impl<T: RowElement> DeviceAttention<'_, T> {
    /// Rows of the batch, once all extents are checked.
    pub(crate) fn check(&self, extents: Extents, pool: &DeviceKvPool<T>, qkv: &DeviceRows) -> Result<u32> {
        extents.below("the decoder block", self.layer, self.shape.layers)?;
        let same = *self.shape == pool.shape;
        extents.check(same, "the width of q, k and v", self.shape.qkv_width(), || "that of the pool".to_owned())?;
        let [rows, _] = qkv.expect(extents, "q, k and v", self.spans.rows.len(), self.shape.qkv_width())?;
        Ok(rows)
    }

    /// The last parameters of kernels.
    pub(crate) fn shape(&self, extents: Extents) -> Result<[Argument<'static>; 6]> {
        let shape = self.shape;
        extents.check(self.window != Some(0), "the window", 0, || "at least 1".to_owned())?;
        // 0 stands for none.
        let window = extents.index("the window", self.window.unwrap_or(0))?;
        Ok([
            extents.index("the heads", shape.heads)?.into(),
            extents.index("the key heads", shape.kv_heads)?.into(),
            extents.index("the width of a head", shape.head_dim)?.into(),
            extents.index("the decoder block", self.layer)?.into(),
            window.into(),
            shape.scale.into(),
        ])
    }

    pub(crate) fn heads(&self, extents: Extents) -> Result<[u32; 2]> {
        let [heads, kv_heads] = [self.shape.heads, self.shape.kv_heads].map(|heads| extents.index("the heads", heads));
        Ok([heads?, kv_heads?])
    }
}

/// Threads of a block, as in `kernels/attention.cu`.
const THREADS: u32 = 128;

/// Writes the rotated keys and the values of the rows of `qkv` into the blocks of their sequences, rounded to `T`;
/// positions below [`Span::held`] are skipped.
pub(crate) fn kv_write<T: RowElement>(
    device: &CudaDevice,
    call: DeviceAttention<'_, T>,
    pool: &mut DeviceKvPool<T>,
    qkv: &DeviceRows,
) -> Result {
    let extents = Extents("kv_write");
    call.check(extents, pool, qkv)?;
    write_rows(device, extents, call, qkv)
}

/// [`kv_write`] to the blocks that the call's rows refer to.
pub(super) fn write_rows<T: RowElement>(
    device: &CudaDevice,
    extents: Extents,
    call: DeviceAttention<'_, T>,
    qkv: &DeviceRows,
) -> Result {
    let [rows, _] = qkv.extents(extents, "q, k and v")?;
    let [stride, q_width, kv_width, layer] =
        [call.shape.qkv_width(), call.shape.q_width(), call.shape.kv_width(), call.layer]
            .map(|extent| extents.index("the width of q, k and v", extent));
    let kv_width = kv_width?;
    let [threads, columns] = column_blocks(kv_width);
    let arguments =
        [qkv.data().into(), (&call.spans.rows).into(), stride?.into(), q_width?.into(), kv_width.into(), layer?.into()];
    device.launch(&format!("kv_write_{}", T::SUFFIX), [rows, columns, 1], threads, &arguments)
}

/// Attention of the rotated queries in `qkv` over keys and values in the pool, where [`kv_write`] has put those of every position up
/// to each row's own. Returns the output, `[rows, q_width]`, and the log-sum-exp of the scaled scores, `[rows, heads]`; both are
/// zero in rows of no sequence.
///
/// Softmax runs over tiles of [`KV_BLOCK`] keys that begin at a sequence's first token, in order (Dao et al. 2022,
/// arXiv:2205.14135); all sums are f32.
pub(crate) fn attention(
    device: &CudaDevice,
    call: DeviceAttention<'_>,
    pool: &DeviceKvPool,
    qkv: &DeviceRows,
) -> Result<[DeviceRows; 2]> {
    let extents = Extents("attention");
    call.check(extents, pool, qkv)?;
    attend_rows(device, extents, call, qkv)
}

/// [`attention`] over the blocks that the call's rows refer to.
pub(super) fn attend_rows(
    device: &CudaDevice,
    extents: Extents,
    call: DeviceAttention<'_>,
    qkv: &DeviceRows,
) -> Result<[DeviceRows; 2]> {
    let [rows, _] = qkv.extents(extents, "q, k and v")?;
    let mut out = DeviceRows::uninitialised(device, qkv.rows(), call.shape.q_width())?;
    let mut log_sums = DeviceRows::uninitialised(device, qkv.rows(), call.shape.heads)?;
    let arguments = [qkv.data().into(), (&call.spans.rows).into(), out.data_mut().into(), log_sums.data_mut().into()];
    let grid = [rows, call.heads(extents)?[0], 1];
    device.launch("attention", grid, THREADS, &[&arguments[..], &call.shape(extents)?].concat())?;
    Ok([out, log_sums])
}

/// Gradient with respect to rotated `qkv`, `[rows, qkv_width]`, zero in rows of no sequence, given what [`attention`] returned and
/// the gradient with respect to its output. Every sequence starts at position 0, and its keys and values are still in the pool. A
/// key's and value's sum runs over the query heads that share it, in each over the queries in order; a query's over the keys in order.
/// Probabilities are recomputed from the log-sum-exp.
pub(crate) fn attention_backward(
    device: &CudaDevice,
    call: DeviceAttention<'_>,
    pool: &DeviceKvPool,
    qkv: &DeviceRows,
    [out, log_sums]: [&DeviceRows; 2],
    d_out: &DeviceRows,
) -> Result<DeviceRows> {
    let extents = Extents("attention_backward");
    let rows = call.check(extents, pool, qkv)?;
    for (what, rows) in [("the output", out), ("the gradient of the output", d_out)] {
        rows.expect(extents, what, qkv.rows(), call.shape.q_width())?;
    }
    log_sums.expect(extents, "the log-sum-exps", qkv.rows(), call.shape.heads)?;
    extents.check(call.spans.whole, "a sequence's first position", 1, || "0".to_owned())?;
    let mut d_qkv = DeviceRows::zeros(device, qkv.rows(), qkv.width())?;
    let mut deltas = DeviceRows::<f32>::uninitialised(device, qkv.rows(), call.shape.heads)?;
    let ([heads, kv_heads], shape) = (call.heads(extents)?, call.shape(extents)?);
    let arguments = [
        qkv.data().into(),
        (&call.spans.rows).into(),
        out.data().into(),
        log_sums.data().into(),
        d_out.data().into(),
        d_qkv.data_mut().into(),
        deltas.data_mut().into(),
    ];
    device.launch("attention_backward_q", [rows, heads, 1], THREADS, &[&arguments[..], &shape].concat())?;
    let arguments = [
        qkv.data().into(),
        (&call.spans.rows).into(),
        log_sums.data().into(),
        d_out.data().into(),
        deltas.data().into(),
        d_qkv.data_mut().into(),
    ];
    device.launch("attention_backward_kv", [rows, kv_heads, 1], THREADS, &[&arguments[..], &shape].concat())?;
    Ok(d_qkv)
}

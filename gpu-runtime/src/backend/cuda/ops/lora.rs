//! Adapters on linear layers, for rows of any mix of adapters and ranks: in bf16 on tensor cores.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::rows::{Addend, DeviceRows, RowElement, column_blocks};
use crate::backend::cuda::device::error::{CudaError, Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::kernels::Argument;

/// An adapter of a linear layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceAdapter<'a, T: RowElement> {
    /// The matrix A: `[rank, inputs]`.
    pub a: &'a DeviceRows<T>,
    /// The matrix B: `[outputs, rank]`.
    pub b: &'a DeviceRows<T>,
    /// Factor of the product BA: alpha / rank.
    pub scale: f32,
}

/// An adapter as kernels read it.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Packed {
    a: u64,
    b: u64,
    rank: u32,
    scale: f32,
    column: u32,
    outputs: u32,
}

impl Element for Packed {}

const NONE: u32 = u32::MAX;

/// A layer whose outputs are some columns of rows that it shares with others (q, k and v): its adapters, and each row's.
pub(crate) struct LoraLayer<'a, T: RowElement> {
    /// The layer's first column in the shared rows.
    pub column: usize,
    pub outputs: usize,
    /// Adapters of the layer, at least those that rows refer to.
    pub adapters: Vec<DeviceAdapter<'a, T>>,
    /// The index of each row's adapter.
    pub rows: Vec<Option<usize>>,
}

/// Indices of rows' adapters that were uploaded last: the layers of a pass have the same.
#[derive(Default)]
pub(crate) struct RowIndices(Mutex<Option<Uploaded>>);

/// Indices, and where they are on the device.
type Uploaded = (Vec<u32>, Arc<Slice<u32>>);

impl RowIndices {
    fn upload(&self, device: &CudaDevice, indices: Vec<u32>) -> Result<Arc<Slice<u32>>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((own, uploaded)) = &*last
            && *own == indices
        {
            return Ok(uploaded.clone());
        }
        let uploaded = Arc::new(device.upload(&indices)?);
        *last = Some((indices, uploaded.clone()));
        Ok(uploaded)
    }
}

/// The adapters of layers with the same input, and the adapter of each row, on the device. The grids of its launches
/// depend only on the number of rows and on the largest extents. The table refers to adapters that must outlive it.
pub(crate) struct LoraTable<'a, T: RowElement> {
    adapters: Slice<Packed>,
    packed: Vec<Packed>,
    rows: Arc<Slice<u32>>,
    size: Size,
    referred: std::marker::PhantomData<&'a DeviceRows<T>>,
}

/// Extents of a table.
#[derive(Clone, Copy)]
struct Size {
    rows: u32,
    layers: u32,
    /// Adapters of each layer.
    each: u32,
    /// How far apart the layers' row indices are; 0 where they are the same.
    step: u32,
    rank: u32,
    inputs: u32,
    /// Maximum number of outputs of a layer, and the columns that all of them need.
    outputs: u32,
    columns: u32,
    /// Whether each of these columns is one of a layer's that has adapters.
    all: bool,
}

impl<'a, T: RowElement> LoraTable<'a, T> {
    /// A table for layers with `inputs` inputs, over the same number of rows.
    pub(crate) fn new(
        device: &CudaDevice,
        layers: &[LoraLayer<'a, T>],
        inputs: usize,
        last: &RowIndices,
    ) -> Result<Self> {
        let extents = Extents("a table of adapters");
        let count = layers.first().map_or(0, |layer| layer.rows.len());
        let each = layers.iter().map(|layer| layer.adapters.len()).max().unwrap_or(0);
        let (mut packed, mut indices, mut rank) = (Vec::new(), Vec::new(), 0);
        let [mut outputs, mut columns] = [0, 0];
        for layer in layers {
            extents.equal("a layer's rows", layer.rows.len(), count)?;
            let [column, own] = [extents.index("a column", layer.column)?, extents.index("outputs", layer.outputs)?];
            columns = columns.max(extents.index("the last column", layer.column + layer.outputs)?);
            outputs = outputs.max(own);
            let begin = packed.len();
            for DeviceAdapter { a, b, scale } in &layer.adapters {
                a.expect(extents, "A", b.width(), inputs)?;
                let [_, own_rank] = b.expect(extents, "B", layer.outputs, a.rows())?;
                let (a, b) = (a.data().address(), b.data().address());
                packed.push(Packed { a, b, rank: own_rank, scale: *scale, column, outputs: own });
                rank = rank.max(own_rank);
            }
            packed.resize(begin + each, Packed::default());
            let mut own = Vec::with_capacity(count);
            for row in &layer.rows {
                if let Some(index) = row {
                    extents.below("a row's adapter", *index, layer.adapters.len())?;
                }
                own.push(row.map_or(Ok(NONE), |index| extents.index("a row's adapter", index))?);
            }
            indices.push(own);
        }
        let mut parts: Vec<_> = layers.iter().map(|of| (of.column, of.column + of.outputs)).collect();
        parts.sort_unstable();
        let adapted = layers.iter().all(|layer| !layer.adapters.is_empty());
        let all = adapted && parts.iter().try_fold(0, |end, part| (part.0 == end).then_some(part.1)).is_some();
        let rows = extents.index("the number of rows", count)?;
        let same = indices.iter().all(|of| Some(of) == indices.first());
        let step = if same { 0 } else { rows };
        let indices = if same { indices.into_iter().next().unwrap_or_default() } else { indices.concat() };
        let [layers, each] = [extents.index("the layers", layers.len())?, extents.index("the adapters", each)?];
        let size =
            Size { rows, layers, each, step, rank, inputs: extents.index("inputs", inputs)?, outputs, columns, all };
        let (adapters, rows) = (device.upload(&packed)?, last.upload(device, indices)?);
        Ok(Self { adapters, packed, rows, size, referred: std::marker::PhantomData })
    }

    /// A table for some outputs of a one-layer table, starting at `column`, with the same rows.
    pub(crate) fn of_outputs(&self, device: &CudaDevice, outputs: Range<usize>, column: usize) -> Result<Self> {
        let (extents, most) = (Extents("a table of adapters"), self.size.outputs as usize);
        extents.equal("the layers", self.size.layers as usize, 1)?;
        extents.check(outputs.end <= most, "the last output", outputs.end, || format!("at most {most}"))?;
        let [count, column] = [extents.index("outputs", outputs.len())?, extents.index("a column", column)?];
        let part = |adapter: &Packed| {
            let before = outputs.start * adapter.rank as usize * size_of::<T>();
            Packed { b: adapter.b + before as u64, column, outputs: count, ..*adapter }
        };
        let packed: Vec<Packed> = self.packed.iter().map(part).collect();
        let (adapters, rows) = (device.upload(&packed)?, self.rows.clone());
        // A part adds to what the GEMM wrote: nobody asks whether it writes all columns.
        let size = Size { outputs: count, columns: column.saturating_add(count), all: false, ..self.size };
        Ok(Self { adapters, packed, rows, size, referred: std::marker::PhantomData })
    }

    /// The largest rank: the width of what [`Self::shrink`] returns.
    pub(crate) fn rank(&self) -> usize {
        self.size.rank as usize
    }

    /// Whether [`Self::expand`] writes all of these columns: the rows' old contents are then irrelevant.
    pub(crate) fn writes(&self, columns: usize) -> bool {
        Self::TENSOR && self.size.all && self.size.columns as usize == columns
    }

    /// Whether [`Self::expand_backward`] writes all inputs.
    pub(crate) fn writes_inputs(&self) -> bool {
        Self::TENSOR
    }

    /// Address of the addend of kernels on tensor cores, with as many rows as `out` has; 0 for none.
    fn addend(&self, extents: Extents, addend: Addend<'_>, out: &DeviceRows) -> Result<Argument<'static>> {
        match addend {
            Addend::None => Ok(Argument::null()),
            Addend::Output => Ok(Argument::address(out.data().address())),
            Addend::Rows(added) => {
                extents.equal("the width of what is added", added.width(), out.width())?;
                Ok(Argument::address(added.data().address_of(0..self.size.rows as usize * out.width())?))
            }
        }
    }

    /// Kernels without tensor cores add to the output, and to nothing else.
    fn expect_output(name: &str, addend: Addend<'_>) -> Result {
        match addend {
            Addend::Output => Ok(()),
            Addend::None | Addend::Rows(_) => {
                Err(CudaError::Kernel { name: name.to_owned(), problem: "it can only add to the output".to_owned() })
            }
        }
    }

    /// Whether kernels run on tensor cores.
    const TENSOR: bool = size_of::<T>() < size_of::<f32>();

    fn launch(&self, device: &CudaDevice, name: &str, grid: [u32; 3], threads: u32, of: Call<'_>) -> Result {
        let Size { rows, each, step, .. } = self.size;
        let table = [(&self.adapters).into(), (&*self.rows).into(), rows.into(), each.into(), step.into()];
        let rest: Vec<Argument<'_>> = of.rest.iter().map(|number| (*number).into()).collect();
        let arguments = [&[of.input], &table[..], &of.addend[..], &[of.output], &rest[..]].concat();
        let name = format!("{}lora_{name}", if Self::TENSOR { "tensor_" } else { "" });
        device.launch(&name, grid, threads, &arguments)
    }

    /// Rows for what adapters make of all layers' rows, and the check of those that they read.
    fn narrow<U: RowElement>(&self, device: &CudaDevice) -> Result<DeviceRows<U>> {
        DeviceRows::uninitialised(device, self.size.rows as usize * self.size.layers as usize, self.rank())
    }

    fn expect_narrow(&self, extents: Extents, z: &DeviceRows<T>) -> Result {
        let rows = self.size.rows as usize * self.size.layers as usize;
        z.expect(extents, "the rows of ranks", rows, self.rank()).map(|_| ())
    }

    /// The elements of a row that has all layers' outputs.
    fn stride<U: RowElement>(&self, extents: Extents, rows: &DeviceRows<U>) -> Result<u32> {
        let (columns, count) = (self.size.columns as usize, self.size.rows as usize);
        extents.check(columns <= rows.width(), "the last column", columns, || format!("at most {}", rows.width()))?;
        extents.check(count <= rows.rows(), "the rows of outputs", rows.rows(), || format!("at least {count}"))?;
        Ok(rows.extents(extents, "the rows of outputs")?[1])
    }

    /// `z = scale · (x Aᵀ)` of one layer after the other, `[layers · rows, rank]`; zeros beyond a row's rank. On tensor cores the inputs
    /// are cut into at most 16 parts, as their number decides, whose sums are added in order.
    pub(crate) fn shrink(&self, device: &CudaDevice, x: &DeviceRows<T>) -> Result<DeviceRows<T>> {
        self.shrink_to(device, x)
    }

    /// Like [`Self::shrink`], but with an unrounded result.
    pub(crate) fn shrink_unrounded(&self, device: &CudaDevice, x: &DeviceRows<T>) -> Result<DeviceRows> {
        self.shrink_to(device, x)
    }

    /// The last parameter of kernels that write results either in f32 or rounded.
    fn numbers<U: RowElement>(first: u32, rank: u32) -> Vec<u32> {
        if Self::TENSOR { vec![first, rank, u32::from(size_of::<U>() == size_of::<f32>())] } else { vec![first, rank] }
    }

    fn shrink_to<U: RowElement>(&self, device: &CudaDevice, x: &DeviceRows<T>) -> Result<DeviceRows<U>> {
        let Size { rows, layers, rank, inputs, .. } = self.size;
        x.expect(Extents("lora shrink"), "the input", rows as usize, inputs as usize)?;
        let mut z = self.narrow::<U>(device)?;
        let rest = &Self::numbers::<U>(inputs, rank);
        let of = Call { input: x.data().into(), addend: Vec::new(), output: z.data_mut().into(), rest };
        if !Self::TENSOR {
            self.launch(device, "shrink", [rows, rank.div_ceil(8), layers], 256, of)?;
        } else if rows <= FEW_ROWS {
            self.launch(device, "shrink_few", [rows.div_ceil(8), rank.div_ceil(8), layers], 512, of)?;
        } else {
            self.launch(device, "shrink", [rows.div_ceil(ROWS), rank.div_ceil(32), layers], THREADS, of)?;
        }
        Ok(z)
    }

    /// `out[.., columns] = addend + z Bᵀ` for each layer. Along the rank in sequence: in f32 from the addend on, which is the output, on
    /// tensor cores from zero, and the sum is added. Rows without an adapter get the addend.
    pub(crate) fn expand(
        &self,
        device: &CudaDevice,
        z: &DeviceRows<T>,
        addend: Addend<'_>,
        out: &mut DeviceRows,
    ) -> Result {
        let (extents, Size { rows, layers, rank, outputs, .. }) = (Extents("lora expand"), self.size);
        self.expect_narrow(extents, z)?;
        let stride = self.stride(extents, out)?;
        if Self::TENSOR {
            let addend = vec![self.addend(extents, addend, out)?];
            let of = Call { input: z.data().into(), addend, output: out.data_mut().into(), rest: &[rank, stride] };
            return self.launch(device, "expand", [rows.div_ceil(ROWS), outputs.div_ceil(128), layers], THREADS, of);
        }
        Self::expect_output("lora_expand", addend)?;
        let of =
            Call { input: z.data().into(), addend: Vec::new(), output: out.data_mut().into(), rest: &[rank, stride] };
        let [threads, blocks] = column_blocks(outputs);
        self.launch(device, "expand", [rows, blocks, layers], threads, of)
    }

    /// `dz = scale · (dy[.., columns] B)` of one layer after the other, `[layers · rows, rank]`; zeros beyond a row's rank. On tensor
    /// cores outputs are cut into parts as [`Self::shrink`] does with inputs.
    pub(crate) fn shrink_backward(&self, device: &CudaDevice, dy: &DeviceRows<T>) -> Result<DeviceRows<T>> {
        self.shrink_backward_to(device, dy)
    }

    /// Like [`Self::shrink_backward`], but with an unrounded result.
    pub(crate) fn shrink_backward_unrounded(&self, device: &CudaDevice, dy: &DeviceRows<T>) -> Result<DeviceRows> {
        self.shrink_backward_to(device, dy)
    }

    fn shrink_backward_to<U: RowElement>(&self, device: &CudaDevice, dy: &DeviceRows<T>) -> Result<DeviceRows<U>> {
        let Size { rows, layers, rank, .. } = self.size;
        let stride = self.stride(Extents("lora shrink, backward"), dy)?;
        let mut dz = self.narrow::<U>(device)?;
        let rest = &Self::numbers::<U>(stride, rank);
        let of = Call { input: dy.data().into(), addend: Vec::new(), output: dz.data_mut().into(), rest };
        let [tile, threads] = if Self::TENSOR { [ROWS, THREADS] } else { [1, 256] };
        self.launch(device, "shrink_backward", [rows.div_ceil(tile), rank.div_ceil(32), layers], threads, of)?;
        Ok(dz)
    }

    /// `dx = addend + Σ dz A` over the layers in order. Along the rank in sequence: in f32 from the addend on, which is the output, on
    /// tensor cores from zero for each layer, and the sum of the layers' sums is added.
    pub(crate) fn expand_backward(
        &self,
        device: &CudaDevice,
        dz: &DeviceRows<T>,
        addend: Addend<'_>,
        dx: &mut DeviceRows,
    ) -> Result {
        let (extents, Size { rows, layers, rank, inputs, .. }) = (Extents("lora expand, backward"), self.size);
        self.expect_narrow(extents, dz)?;
        dx.expect(extents, "the gradient of the input", rows as usize, inputs as usize)?;
        let rest = &[layers, rank, inputs];
        if Self::TENSOR {
            let addend = vec![self.addend(extents, addend, dx)?];
            let of = Call { input: dz.data().into(), addend, output: dx.data_mut().into(), rest };
            return self.launch(device, "expand_backward", [rows.div_ceil(ROWS), inputs.div_ceil(64), 1], THREADS, of);
        }
        Self::expect_output("lora_expand_backward", addend)?;
        let of = Call { input: dz.data().into(), addend: Vec::new(), output: dx.data_mut().into(), rest };
        let [threads, blocks] = column_blocks(inputs);
        self.launch(device, "expand_backward", [rows, blocks, 1], threads, of)
    }
}

/// Arguments of a launch in addition to the table.
struct Call<'c> {
    input: Argument<'c>,
    /// The addend, for kernels that take one.
    addend: Vec<Argument<'c>>,
    output: Argument<'c>,
    rest: &'c [u32],
}

/// Rows of a block on tensor cores, and its threads, as in `kernels/tensor_lora_prelude.cu`.
const ROWS: u32 = 64;
const THREADS: u32 = 128;

/// Maximum number of rows with which warps share the inputs of a row rather than the rows: the bits are the same.
const FEW_ROWS: u32 = 512;

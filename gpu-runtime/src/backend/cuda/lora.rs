//! Adapters on linear layers, for rows of any mix of adapters and ranks, and gradients of weights.

use std::ops::Range;
use std::sync::Arc;

use super::error::Extents;
use super::memory::Element;
use super::rows::column_blocks;
use super::{CudaDevice, DeviceRows, Result, RowElement, Slice};

/// An adapter of a linear layer.
#[derive(Clone, Copy, Debug)]
pub struct DeviceAdapter<'a, T: RowElement> {
    /// A, `[rank, inputs]`.
    pub a: &'a DeviceRows<T>,
    /// B, `[outputs, rank]`.
    pub b: &'a DeviceRows<T>,
    /// alpha / rank.
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
}

impl Element for Packed {}

/// No adapter.
const NONE: u32 = u32::MAX;

/// The adapters of a linear layer and which one each row has, on the device. The grids of its launches depend on the number of rows
/// and on the largest rank alone. It refers to adapters that have to outlive it.
pub struct LoraTable<'a, T: RowElement> {
    adapters: Slice<Packed>,
    packed: Vec<Packed>,
    rows: Arc<Slice<u32>>,
    /// Number of rows, and the largest rank.
    counts: [u32; 2],
    /// (outputs, inputs).
    layer: (usize, usize),
    referred: std::marker::PhantomData<&'a DeviceRows<T>>,
}

/// Which columns of rows a layer's outputs are.
#[derive(Clone, Copy, Debug)]
pub struct WeightColumns {
    /// The first one.
    pub first: usize,
    /// How many.
    pub count: usize,
}

impl<'a, T: RowElement> LoraTable<'a, T> {
    /// Of a layer of (outputs, inputs); `rows` has the index of each row's adapter.
    pub fn new(
        device: &CudaDevice,
        adapters: &[DeviceAdapter<'a, T>],
        rows: &[Option<usize>],
        layer: (usize, usize),
    ) -> Result<Self> {
        let extents = Extents("a table of adapters");
        let (mut packed, mut most) = (Vec::new(), 0);
        for DeviceAdapter { a, b, scale } in adapters {
            a.expect(extents, "A", b.width(), layer.1)?;
            let [_, rank] = b.expect(extents, "B", layer.0, a.rows())?;
            packed.push(Packed { a: a.data().address(), b: b.data().address(), rank, scale: *scale });
            most = most.max(rank);
        }
        let mut indices = Vec::with_capacity(rows.len());
        for row in rows {
            if let Some(index) = row {
                extents.below("a row's adapter", *index, adapters.len())?;
            }
            indices.push(row.map_or(Ok(NONE), |index| extents.index("a row's adapter", index))?);
        }
        let counts = [extents.index("the number of rows", rows.len())?, most];
        let (adapters, rows) = (device.upload(&packed)?, Arc::new(device.upload(&indices)?));
        Ok(Self { adapters, packed, rows, counts, layer, referred: std::marker::PhantomData })
    }

    /// The same rows with some of the outputs alone.
    pub fn of_outputs(&self, device: &CudaDevice, outputs: Range<usize>) -> Result<Self> {
        let (extents, most) = (Extents("a table of adapters"), self.layer.0);
        extents.check(outputs.end <= most, "the last output", outputs.end, || format!("at most {most}"))?;
        let part = |adapter: &Packed| {
            let before = outputs.start * adapter.rank as usize * size_of::<T>();
            Packed { b: adapter.b + before as u64, ..*adapter }
        };
        let packed: Vec<Packed> = self.packed.iter().map(part).collect();
        let (adapters, rows) = (device.upload(&packed)?, self.rows.clone());
        let layer = (outputs.len(), self.layer.1);
        Ok(Self { adapters, packed, rows, counts: self.counts, layer, referred: std::marker::PhantomData })
    }

    /// The largest rank: the width of what [`Self::shrink`] returns.
    pub fn rank(&self) -> usize {
        self.counts[1] as usize
    }

    /// `z = scale · (x Aᵀ)`, `[rows, rank]`, unrounded; zeros beyond a row's rank.
    pub fn shrink(&self, device: &CudaDevice, x: &DeviceRows<T>) -> Result<DeviceRows> {
        let extents = Extents("lora shrink");
        let [rows, inputs] = x.expect(extents, "the input", self.counts[0] as usize, self.layer.1)?;
        let mut z = DeviceRows::uninitialised(device, x.rows(), self.rank())?;
        let arguments = [
            x.data().into(),
            (&self.adapters).into(),
            (&*self.rows).into(),
            z.data_mut().into(),
            inputs.into(),
            self.counts[1].into(),
        ];
        let grid = [rows, self.counts[1].div_ceil(WARPS), 1];
        device.launch(&format!("lora_shrink_{}", T::SUFFIX), grid, 32 * WARPS, &arguments)?;
        Ok(z)
    }

    /// `out[.., columns] += z Bᵀ`, along the rank in sequence; z is rounded to `T`.
    pub fn expand(&self, device: &CudaDevice, z: &DeviceRows, out: &mut DeviceRows, first_column: usize) -> Result {
        let extents = Extents("lora expand");
        let [rows, most] = z.expect(extents, "z", self.counts[0] as usize, self.rank())?;
        let columns = WeightColumns { first: first_column, count: self.layer.0 };
        let [first, outputs, stride] = columns.of(extents, out, z.rows())?;
        let [threads, blocks] = column_blocks(outputs);
        let arguments = [
            z.data().into(),
            (&self.adapters).into(),
            (&*self.rows).into(),
            out.data_mut().into(),
            outputs.into(),
            most.into(),
            stride.into(),
            first.into(),
        ];
        device.launch(&format!("lora_expand_{}", T::SUFFIX), [rows, blocks, 1], threads, &arguments)
    }

    /// `dz = scale · (dy[.., columns] B)`, `[rows, rank]`, unrounded; zeros beyond a row's rank.
    pub fn shrink_backward(&self, device: &CudaDevice, dy: &DeviceRows<T>, first_column: usize) -> Result<DeviceRows> {
        let extents = Extents("lora shrink, backward");
        let columns = WeightColumns { first: first_column, count: self.layer.0 };
        let [rows, most] = self.counts;
        let [first, outputs, stride] = columns.of(extents, dy, rows as usize)?;
        let mut dz = DeviceRows::uninitialised(device, rows as usize, self.rank())?;
        let arguments = [
            dy.data().into(),
            (&self.adapters).into(),
            (&*self.rows).into(),
            dz.data_mut().into(),
            outputs.into(),
            most.into(),
            stride.into(),
            first.into(),
        ];
        let grid = [rows, most.div_ceil(32), 1];
        device.launch(&format!("lora_shrink_backward_{}", T::SUFFIX), grid, 256, &arguments)?;
        Ok(dz)
    }

    /// `dx += dz A`, along the rank in sequence; dz is rounded to `T`.
    pub fn expand_backward(&self, device: &CudaDevice, dz: &DeviceRows, dx: &mut DeviceRows) -> Result {
        let extents = Extents("lora expand, backward");
        let [rows, most] = dz.expect(extents, "dz", self.counts[0] as usize, self.rank())?;
        let [_, inputs] = dx.expect(extents, "the gradient of the input", dz.rows(), self.layer.1)?;
        let [threads, blocks] = column_blocks(inputs);
        let arguments = [
            dz.data().into(),
            (&self.adapters).into(),
            (&*self.rows).into(),
            dx.data_mut().into(),
            inputs.into(),
            most.into(),
        ];
        device.launch(&format!("lora_expand_backward_{}", T::SUFFIX), [rows, blocks, 1], threads, &arguments)
    }
}

/// Warps of a block that shrinks: each has a column.
const WARPS: u32 = 8;

impl WeightColumns {
    /// First column, columns, and elements of a row of rows that have them: at least `count` rows.
    fn of<T: RowElement>(self, extents: Extents, rows: &DeviceRows<T>, count: usize) -> Result<[u32; 3]> {
        let end = self.first.saturating_add(self.count);
        extents.check(end <= rows.width(), "the last column", end, || format!("at most {}", rows.width()))?;
        extents.check(count <= rows.rows(), "the rows of outputs", rows.rows(), || format!("at least {count}"))?;
        let [_, stride] = rows.extents(extents, "the rows of outputs")?;
        Ok([extents.index("a column", self.first)?, extents.index("a column", self.count)?, stride])
    }
}

/// A gradient of a weight over some rows of the batch.
pub struct OuterProduct<'a> {
    /// Has `[left, right]` elements from `first` on.
    pub gradient: &'a mut Slice<f32>,
    /// The first one of them.
    pub first: usize,
    /// First row and number of rows.
    pub rows: (usize, usize),
    /// Columns of the left rows.
    pub left: usize,
    /// Columns of the right rows.
    pub right: usize,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct PackedOuter {
    out: u64,
    first: u32,
    rows: u32,
    m: u32,
    n: u32,
}

impl Element for PackedOuter {}

/// `gradient[m, n] += Σ left[row, m] · right[row, n]` for each of the gradients over its rows, in order; columns are counted from
/// (first of left, first of right). The gradients of A (`dz`, `x`) and of B (`dy`, `z`), and of weights in f32.
pub fn outer_products(
    device: &CudaDevice,
    left: (&DeviceRows, usize),
    right: (&DeviceRows, usize),
    gradients: &mut [OuterProduct<'_>],
) -> Result {
    let extents = Extents("gradients of weights");
    let ((left, left_first), (right, right_first)) = (left, right);
    let [_, right_stride] = right.expect(extents, "the right rows", left.rows(), right.width())?;
    let [_, left_stride] = left.extents(extents, "the left rows")?;
    let (mut packed, mut most) = (Vec::new(), [0, 0]);
    for gradient in gradients.iter_mut() {
        let (first, rows) = gradient.rows;
        extents.check(first.saturating_add(rows) <= left.rows(), "the last row", first.saturating_add(rows), || {
            format!("at most {}", left.rows())
        })?;
        let [_, m, _] = WeightColumns { first: left_first, count: gradient.left }.of(extents, left, left.rows())?;
        let [_, n, _] = WeightColumns { first: right_first, count: gradient.right }.of(extents, right, left.rows())?;
        let out = gradient.gradient.address_of(gradient.first..gradient.first + gradient.left * gradient.right)?;
        most = [most[0].max(m), most[1].max(n)];
        let [first, rows] = [extents.index("a row", first)?, extents.index("a row", rows)?];
        packed.push(PackedOuter { out, first, rows, m, n });
    }
    let count = extents.index("the number of gradients", packed.len())?;
    let packed = device.upload(&packed)?;
    let [left_first, right_first] = [left_first, right_first].map(|first| extents.index("a column", first));
    let arguments = [
        left.data().into(),
        right.data().into(),
        (&packed).into(),
        left_stride.into(),
        left_first?.into(),
        right_stride.into(),
        right_first?.into(),
    ];
    device.launch("outer_products", [most[1].div_ceil(32), most[0].div_ceil(8), count], 256, &arguments)
}

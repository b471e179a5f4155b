//! Rows on a device.

use half::bf16;

use crate::backend::cuda::device::error::{Extents, Result};
use crate::backend::cuda::device::memory::{Element, Slice};
use crate::backend::cuda::device::open::CudaDevice;

/// Elements of rows: f32, or bf16 for the inputs of GEMMs.
pub trait RowElement: Element {
    /// How kernels for it end.
    const SUFFIX: &'static str;
}

impl RowElement for f32 {
    const SUFFIX: &'static str = "f32";
}

impl RowElement for bf16 {
    const SUFFIX: &'static str = "bf16";
}

/// Activations, gradients or weights: `[rows, width]`, row-major.
#[derive(Debug)]
pub struct DeviceRows<T: RowElement = f32> {
    data: Slice<T>,
    rows: usize,
    width: usize,
}

impl<T: RowElement> DeviceRows<T> {
    /// Allocates rows with uninitialised elements.
    pub fn uninitialised(device: &CudaDevice, rows: usize, width: usize) -> Result<Self> {
        Ok(Self { data: device.uninitialised(rows.saturating_mul(width))?, rows, width })
    }

    /// Rows of these elements.
    pub(crate) fn from_data(data: Slice<T>, rows: usize, width: usize) -> Result<Self> {
        Extents("rows").equal("their elements", data.len(), rows * width)?;
        Ok(Self { data, rows, width })
    }

    /// Allocates rows of zeros.
    pub fn zeros(device: &CudaDevice, rows: usize, width: usize) -> Result<Self> {
        Ok(Self { data: device.zeros(rows.saturating_mul(width))?, rows, width })
    }

    /// Copies rows from the host, whose length must be a multiple of `width`.
    pub fn upload(device: &CudaDevice, values: &[T], width: usize) -> Result<Self> {
        let rows = values.len().checked_div(width).unwrap_or(0);
        Extents("upload rows").equal("their elements", values.len(), rows * width)?;
        Ok(Self { data: device.upload(values)?, rows, width })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of elements of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the elements of all rows, row by row.
    pub fn data(&self) -> &Slice<T> {
        &self.data
    }

    /// Returns all elements, to be written.
    pub fn data_mut(&mut self) -> &mut Slice<T> {
        &mut self.data
    }

    /// Returns all elements on the host. Waits for all work on the device.
    pub fn to_host(&self) -> Result<Vec<T>> {
        self.data.to_host()
    }

    /// Rows that each consist of `count` of these rows.
    pub(crate) fn joined(self, count: usize) -> Result<Self> {
        let joins = count > 0 && self.rows.is_multiple_of(count);
        Extents("join rows").check(joins, "the number of rows", self.rows, || format!("a multiple of {count}"))?;
        Ok(Self { data: self.data, rows: self.rows / count, width: self.width * count })
    }

    /// Returns a copy on the device.
    pub fn copy(&self) -> Result<Self> {
        Ok(Self { data: self.data.copy(0..self.data.len())?, rows: self.rows, width: self.width })
    }

    /// Both extents, as kernels take them, if they are as expected.
    pub(crate) fn expect(&self, extents: Extents, what: &'static str, rows: usize, width: usize) -> Result<[u32; 2]> {
        extents.equal(what, self.width, width)?;
        extents.equal(what, self.rows, rows)?;
        self.extents(extents, what)
    }

    /// Both extents, as kernels take them.
    pub(crate) fn extents(&self, extents: Extents, what: &'static str) -> Result<[u32; 2]> {
        Ok([extents.index(what, self.rows)?, extents.index(what, self.width)?])
    }
}

/// Values that an op adds its sums to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Addend<'a> {
    None,
    /// The previous contents of the output are added.
    Output,
    /// Rows of the output's width are added.
    Rows(&'a DeviceRows),
}

/// Threads of a block that has a row of this width: whole warps, 256 at most.
pub(super) fn row_threads(width: u32) -> u32 {
    width.div_ceil(32).clamp(1, 8) * 32
}

/// Threads of a block whose threads have one element each, of a row that wide, and how many such blocks have a row.
pub(super) fn column_blocks(width: u32) -> [u32; 2] {
    let threads = row_threads(width);
    [threads, width.div_ceil(threads)]
}

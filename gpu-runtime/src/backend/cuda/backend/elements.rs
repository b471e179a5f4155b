//! Rows in the type that GEMMs multiply.

use half::bf16;

use crate::backend::cuda::device::error::{CudaError, Result};
use crate::backend::cuda::device::fence::Fence;
use crate::backend::cuda::device::memory::Slice;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::ops::copies::round_bf16;
use crate::backend::cuda::ops::outer::OuterSide;
use crate::backend::cuda::ops::rows::{DeviceRows, RowElement};
use crate::backend::{Dtype, Held};

/// `[rows, width]` of f32 or bf16: weights, and inputs of GEMMs.
pub enum Elements {
    /// Elements of a backend whose type is f32.
    F32(DeviceRows<f32>),
    /// Elements of a backend whose type is bf16.
    Bf16(DeviceRows<bf16>),
}

impl Elements {
    /// Elements with anything in them.
    pub(super) fn uninitialised(device: &CudaDevice, dtype: Dtype, rows: usize, width: usize) -> Result<Self> {
        Ok(match dtype {
            Dtype::F32 => Self::F32(DeviceRows::uninitialised(device, rows, width)?),
            Dtype::Bf16 => Self::Bf16(DeviceRows::uninitialised(device, rows, width)?),
        })
    }

    /// A copy of rows, rounded.
    pub(super) fn of(device: &CudaDevice, dtype: Dtype, rows: &DeviceRows) -> Result<Self> {
        let mut to = Self::uninitialised(device, dtype, rows.rows(), rows.width())?;
        to.write_device(device, 0, rows.data(), 0, rows.data().len())?;
        Ok(to)
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            Self::F32(rows) => rows.rows(),
            Self::Bf16(rows) => rows.rows(),
        }
    }

    pub(super) fn width(&self) -> usize {
        match self {
            Self::F32(rows) => rows.width(),
            Self::Bf16(rows) => rows.width(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::F32(rows) => rows.data().len() * size_of::<f32>(),
            Self::Bf16(rows) => rows.data().len() * size_of::<bf16>(),
        }
    }

    /// Overwrites elements from `first` on with some of the host, rounded.
    pub(super) fn write_host(&mut self, first: usize, values: &[f32]) -> Result {
        match self {
            Self::F32(rows) => rows.data_mut().write(first, values),
            Self::Bf16(rows) => {
                let rounded: Vec<bf16> = values.iter().map(|x| bf16::from_f32(*x)).collect();
                rows.data_mut().write(first, &rounded)
            }
        }
    }

    /// Overwrites elements from `first` on with some of the device, rounded.
    pub(super) fn write_device(
        &mut self,
        device: &CudaDevice,
        first: usize,
        values: &Slice<f32>,
        start: usize,
        end: usize,
    ) -> Result {
        match self {
            Self::F32(rows) => rows.data_mut().copy_from(first, values, start..end),
            Self::Bf16(rows) => round_bf16(device, values, start..end, rows.data_mut(), first),
        }
    }

    /// All elements on the host, as they were at a fence.
    pub(super) fn to_host_after(&self, fence: &Fence) -> Result<Vec<f32>> {
        match self {
            Self::F32(rows) => rows.data().to_host_after(fence),
            Self::Bf16(rows) => Ok(rows.data().to_host_after(fence)?.into_iter().map(bf16::to_f32).collect()),
        }
    }
}

/// Rows that weight gradients are computed from, in the type of GEMMs.
pub enum GradientSide<'a> {
    /// Rows of a backend whose type is f32.
    F32(Held<'a, DeviceRows>),
    /// Rows of a backend whose type is bf16.
    Bf16(DeviceRows<bf16>),
}

impl<'a> GradientSide<'a> {
    /// Rows, rounded where GEMMs are in bf16.
    pub(super) fn new(device: &CudaDevice, dtype: Dtype, rows: Held<'a, DeviceRows>) -> Result<Self> {
        Ok(match dtype {
            Dtype::F32 => Self::F32(rows),
            Dtype::Bf16 => Self::Bf16(bf16::rounded(device, &rows)?),
        })
    }

    /// Some columns of it.
    pub(super) fn side(&self, column: usize, count: usize) -> OuterSide<'_> {
        match self {
            Self::F32(rows) => OuterSide::new(&**rows, column, count),
            Self::Bf16(rows) => OuterSide::new(rows, column, count),
        }
    }

    /// Rows, and their width.
    pub(super) fn extents(&self) -> (usize, usize) {
        match self {
            Self::F32(rows) => (rows.rows(), rows.width()),
            Self::Bf16(rows) => (rows.rows(), rows.width()),
        }
    }

    /// All elements on the host.
    pub(super) fn to_host(&self) -> Result<Vec<f32>> {
        match self {
            Self::F32(rows) => rows.to_host(),
            Self::Bf16(rows) => Ok(rows.to_host()?.into_iter().map(bf16::to_f32).collect()),
        }
    }
}

/// The gradient with respect to a linear layer's output.
pub struct OutputGradient<'a> {
    /// The rows as GEMMs and weight gradients read them.
    pub(super) side: GradientSide<'a>,
    /// The f32 rows that a bf16 side was rounded from, where bias gradients may be wanted.
    wide: Option<Held<'a, DeviceRows>>,
}

impl<'a> OutputGradient<'a> {
    /// An output gradient from f32 rows, rounded where GEMMs read bf16.
    pub(super) fn new(device: &CudaDevice, dtype: Dtype, rows: Held<'a, DeviceRows>) -> Result<Self> {
        Ok(match dtype {
            Dtype::F32 => Self { side: GradientSide::F32(rows), wide: None },
            Dtype::Bf16 => {
                let rounded = bf16::rounded(device, &rows)?;
                Self { side: GradientSide::Bf16(rounded), wide: Some(rows) }
            }
        })
    }

    /// An output gradient that has only rounded rows.
    pub(super) fn rounded(rows: DeviceRows<bf16>) -> Self {
        Self { side: GradientSide::Bf16(rows), wide: None }
    }

    /// The f32 rows; an error where only rounded rows exist.
    pub(super) fn wide(&self) -> Result<&DeviceRows> {
        match (&self.side, &self.wide) {
            (GradientSide::F32(rows), _) | (_, Some(rows)) => Ok(rows),
            (GradientSide::Bf16(_), None) => Err(other_type(2, 4)),
        }
    }
}

/// Element types of GEMMs.
pub(super) trait GemmElement: RowElement {
    /// Rows of this type.
    fn of(elements: &Elements) -> Result<&DeviceRows<Self>>;

    /// A gradient in this type.
    fn of_gradient<'g>(gradient: &'g OutputGradient<'_>) -> Result<&'g DeviceRows<Self>>;

    fn elements(rows: DeviceRows<Self>) -> Elements;

    /// A copy of rows in this type.
    fn rounded(device: &CudaDevice, rows: &DeviceRows) -> Result<DeviceRows<Self>>;
}

/// Elements of a backend whose type is another one.
fn other_type(found: usize, expected: usize) -> CudaError {
    CudaError::Extent { op: "GEMM", what: "the bytes of an element", found, expected: expected.to_string() }
}

impl GemmElement for f32 {
    fn of(elements: &Elements) -> Result<&DeviceRows<f32>> {
        match elements {
            Elements::F32(rows) => Ok(rows),
            Elements::Bf16(_) => Err(other_type(2, 4)),
        }
    }

    fn of_gradient<'g>(gradient: &'g OutputGradient<'_>) -> Result<&'g DeviceRows<f32>> {
        match &gradient.side {
            GradientSide::F32(rows) => Ok(rows),
            GradientSide::Bf16(_) => Err(other_type(2, 4)),
        }
    }

    fn elements(rows: DeviceRows<f32>) -> Elements {
        Elements::F32(rows)
    }

    fn rounded(_: &CudaDevice, rows: &DeviceRows) -> Result<DeviceRows<f32>> {
        rows.copy()
    }
}

impl GemmElement for bf16 {
    fn of(elements: &Elements) -> Result<&DeviceRows<bf16>> {
        match elements {
            Elements::Bf16(rows) => Ok(rows),
            Elements::F32(_) => Err(other_type(4, 2)),
        }
    }

    fn of_gradient<'g>(gradient: &'g OutputGradient<'_>) -> Result<&'g DeviceRows<bf16>> {
        match &gradient.side {
            GradientSide::Bf16(rows) => Ok(rows),
            GradientSide::F32(_) => Err(other_type(4, 2)),
        }
    }

    fn elements(rows: DeviceRows<bf16>) -> Elements {
        Elements::Bf16(rows)
    }

    fn rounded(device: &CudaDevice, rows: &DeviceRows) -> Result<DeviceRows<bf16>> {
        let mut to = DeviceRows::uninitialised(device, rows.rows(), rows.width())?;
        round_bf16(device, rows.data(), 0..rows.data().len(), to.data_mut(), 0)?;
        Ok(to)
    }
}

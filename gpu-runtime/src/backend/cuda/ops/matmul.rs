//! GEMMs with weights, by cuBLASLt.
#![allow(unsafe_code, reason = "cuBLASLt is C: handles are made and released here, and pointers are those of slices")]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cudarc::cublaslt::result as lt;
use cudarc::cublaslt::sys::{cublasLtHandle_t, cublasLtMatmulPreferenceAttributes_t, cudaDataType};
use half::bf16;

use super::product::{Call, MatmulPlan, Product, WeightSide};
use super::rows::{Addend, DeviceRows, RowElement};
use crate::backend::cuda::device::error::{CudaError, Extents, Result};
use crate::backend::cuda::device::library::find_matmul;
use crate::backend::cuda::device::open::CudaDevice;
use crate::backend::cuda::device::queue::Queue;
use crate::backend::cuda::device::work::Work;

/// Element types that weights may have.
trait Typed {
    const TYPE: cudaDataType;
}

impl Typed for f32 {
    const TYPE: cudaDataType = cudaDataType::CUDA_R_32F;
}

impl Typed for bf16 {
    const TYPE: cudaDataType = cudaDataType::CUDA_R_16BF;
}

fn data_type<T: RowElement>() -> cudaDataType {
    if T::SUFFIX == <bf16 as RowElement>::SUFFIX { bf16::TYPE } else { f32::TYPE }
}

/// cuBLASLt for one device.
pub(crate) struct Matmul {
    handle: cublasLtHandle_t,
    queue: Arc<Queue>,
}

// SAFETY: NVIDIA documents a handle of cuBLASLt as usable by several threads.
unsafe impl Send for Matmul {}
// SAFETY: the same.
unsafe impl Sync for Matmul {}

/// Rows that an algorithm is chosen for.
const PLANNED_ROWS: usize = 256;

impl Matmul {
    /// Finds cuBLASLt and creates a handle on the device.
    pub(crate) fn new(device: &CudaDevice) -> Result<Self> {
        find_matmul()?;
        let queue = device.queue().clone();
        queue.bind()?;
        let handle = lt::create_handle().map_err(|error| CudaError::matmul("cublasLtCreate", error))?;
        Ok(Self { handle, queue })
    }

    /// A plan for weights `[outputs, inputs]` and rows of elements `T`.
    pub(crate) fn plan<T: RowElement>(&self, outputs: usize, inputs: usize, side: WeightSide) -> Result<MatmulPlan> {
        self.queue.bind()?;
        let to = if side == WeightSide::Inputs { outputs } else { inputs };
        let call = Call::new(outputs, inputs, side, data_type::<T>(), PLANNED_ROWS, to)?;
        let preference = Preference::new()?;
        // SAFETY: all handles live until the end of this function.
        let found = unsafe {
            let (operation, [a, b, c]) = call.handles();
            lt::get_matmul_algo_heuristic(self.handle, operation, a, b, c, c, preference.0)
        };
        let found = found.map_err(|error| CudaError::matmul("cublasLtMatmulAlgoGetHeuristic", error))?;
        Ok(MatmulPlan { extents: (outputs, inputs), side, element: data_type::<T>(), algorithm: found.algo })
    }

    /// Computes `out = rows · weight` by the plan, or `out += rows · weight`, summed in f32. The weight is the rows
    /// `of_weight` of `weight`, `[_, inputs]`: as many as the plan's outputs.
    pub(crate) fn run<T: RowElement>(
        &self,
        plan: &MatmulPlan,
        rows: &DeviceRows<T>,
        weight: &DeviceRows<T>,
        of_weight: Range<usize>,
        out: &mut DeviceRows,
        accumulate: bool,
    ) -> Result {
        let extents = Extents("matmul");
        let to = if plan.side == WeightSide::Inputs { plan.extents.0 } else { plan.extents.1 };
        out.expect(extents, "the output", rows.rows(), to)?;
        let addend = if accumulate { Addend::Output } else { Addend::None };
        self.run_columns(plan, rows, weight, of_weight, out, 0, addend)
    }

    /// Like [`Self::run`], but writes only the columns of `out` from a first one on, and only its first rows: as many
    /// as `rows` has. Rows that are added are the same ones.
    pub(crate) fn run_columns<T: RowElement>(
        &self,
        plan: &MatmulPlan,
        rows: &DeviceRows<T>,
        weight: &DeviceRows<T>,
        of_weight: Range<usize>,
        out: &mut DeviceRows,
        first_column: usize,
        addend: Addend<'_>,
    ) -> Result {
        let extents = Extents("matmul");
        let (outputs, inputs) = plan.extents;
        let (from, to) = match plan.side {
            WeightSide::Inputs => (inputs, outputs),
            WeightSide::Outputs => (outputs, inputs),
        };
        extents.equal("the weight's inputs", weight.width(), inputs)?;
        extents.equal("the weight's outputs", of_weight.len(), outputs)?;
        extents.equal("the plan's bytes of an element", bytes(plan.element), size_of::<T>())?;
        rows.expect(extents, "the rows", rows.rows(), from)?;
        let (stride, end) = (out.width(), first_column.saturating_add(to));
        extents.check(end <= stride, "the last column of the output", end, || format!("at most {stride}"))?;
        extents.check(rows.rows() <= out.rows(), "the number of rows", rows.rows(), || {
            format!("at most {}", out.rows())
        })?;
        if rows.rows() == 0 {
            return Ok(());
        }
        let weight = weight.data().address_of(of_weight.start * inputs..of_weight.end * inputs)?;
        let columns = first_column..(rows.rows() - 1) * stride + end;
        let to = out.data().address_of(columns.clone())?;
        let addend = match addend {
            Addend::None => None,
            Addend::Output => Some(to),
            Addend::Rows(added) => {
                extents.equal("the width of what is added", added.width(), stride)?;
                Some(added.data().address_of(columns)?)
            }
        };
        let (plan, count) = (*plan, (rows.rows(), stride));
        let product = Product { handle: self.handle, plan, count, weight, rows: rows.data().address(), addend, to };
        self.queue.push(Work::Multiply(product))
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        if self.queue.bind().is_ok() {
            // SAFETY: the handle is this value's. What is queued was handed to the driver.
            let _ = unsafe { lt::destroy_handle(self.handle) };
        }
    }
}

fn bytes(element: cudaDataType) -> usize {
    if element == bf16::TYPE { size_of::<bf16>() } else { size_of::<f32>() }
}

/// Constraints on algorithms: without workspace, and without sums that are split and then reduced.
struct Preference(cudarc::cublaslt::sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new() -> Result<Self> {
        let made = lt::create_matmul_pref();
        let preference = Self(made.map_err(|error| CudaError::matmul("cublasLtMatmulPreferenceCreate", error))?);
        let (workspace, reductions) = (0usize, 0u32);
        let attributes = [
            (
                cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (&raw const workspace).cast::<c_void>(),
                size_of_val(&workspace),
            ),
            (
                cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                (&raw const reductions).cast::<c_void>(),
                size_of_val(&reductions),
            ),
        ];
        for (attribute, value, length) in attributes {
            // SAFETY: the attributes are of these types.
            unsafe { lt::set_matmul_pref_attribute(preference.0, attribute, value, length) }
                .map_err(|error| CudaError::matmul("cublasLtMatmulPreferenceSetAttribute", error))?;
        }
        Ok(preference)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's.
        let _ = unsafe { lt::destroy_matmul_pref(self.0) };
    }
}

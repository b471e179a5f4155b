//! GEMMs with weights, by cuBLASLt.
#![allow(unsafe_code, reason = "cuBLASLt is C: handles are made and released here, and pointers are those of slices")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;

use cudarc::cublaslt::sys::{
    cublasLtHandle_t, cublasLtMatmulHeuristicResult_t, cublasLtMatmulPreference_t,
    cublasLtMatmulPreferenceAttributes_t, cublasStatus_t, cudaDataType,
};
use half::bf16;

use super::product::{Call, CallExtents, MatmulPlan, Product, WeightSide};
use super::rows::{Addend, DeviceRows, RowElement};
use crate::backend::cuda::device::cublaslt::{Cublaslt, MatmulLibrary, check};
use crate::backend::cuda::device::error::{Extents, Result};
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
    library: Arc<Cublaslt>,
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
        let queue = device.queue().clone();
        queue.bind()?;
        let (library, handle) = Cublaslt::open(device.cublaslt())?;
        Ok(Self { library, handle, queue })
    }

    /// The cuBLASLt in use.
    pub(crate) fn library(&self) -> &MatmulLibrary {
        self.library.found()
    }

    /// A plan for weights `[outputs, inputs]` and rows of elements `T`.
    pub(crate) fn plan<T: RowElement>(&self, outputs: usize, inputs: usize, side: WeightSide) -> Result<MatmulPlan> {
        self.queue.bind()?;
        let to = if side == WeightSide::Inputs { outputs } else { inputs };
        let extents = CallExtents { outputs, inputs, side, element: data_type::<T>(), rows: PLANNED_ROWS, stride: to };
        let call = Call::new(&self.library, extents)?;
        let preference = Preference::new(self.library.clone())?;
        let found = self.heuristic(&call, &preference)?;
        Ok(MatmulPlan { extents: (outputs, inputs), side, element: data_type::<T>(), algorithm: found.algo })
    }

    /// The best algorithm for a call.
    fn heuristic(&self, call: &Call<'_>, preference: &Preference) -> Result<cublasLtMatmulHeuristicResult_t> {
        const CALL: &str = "cublasLtMatmulAlgoGetHeuristic";
        let (operation, [a, b, c]) = call.handles();
        let mut found = MaybeUninit::<cublasLtMatmulHeuristicResult_t>::zeroed();
        let mut count: c_int = 0;
        let heuristic = self.library.functions.heuristic;
        // SAFETY: all handles live until the end of this function, and there is a place for one result and for their number.
        let asked = unsafe {
            heuristic(self.handle, operation, a, b, c, c, preference.handle, 1, found.as_mut_ptr(), &raw mut count)
        };
        check(CALL, asked)?;
        if count < 1 {
            check(CALL, cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED as c_int)?;
        }
        // SAFETY: the function has written it; zeros, of which it was made, are values of all its fields.
        let found = unsafe { found.assume_init() };
        check(CALL, found.state as c_int)?;
        Ok(found)
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
        let (library, handle, rows) = (self.library.clone(), self.handle, rows.data().address());
        let product = Product { library, handle, plan, count, weight, rows, addend, to };
        self.queue.push(Work::Multiply(product))
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        if self.queue.bind().is_ok() {
            // SAFETY: the handle is this value's. What is queued was handed to the driver.
            let _ = unsafe { (self.library.functions.destroy)(self.handle) };
        }
    }
}

fn bytes(element: cudaDataType) -> usize {
    if element == bf16::TYPE { size_of::<bf16>() } else { size_of::<f32>() }
}

/// Constraints on algorithms: without workspace, and without sums that are split and then reduced.
struct Preference {
    library: Arc<Cublaslt>,
    handle: cublasLtMatmulPreference_t,
}

impl Preference {
    fn new(library: Arc<Cublaslt>) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle is written before the function returns.
        let made = unsafe { (library.functions.create_preference)(&raw mut handle) };
        check("cublasLtMatmulPreferenceCreate", made)?;
        let preference = Self { library, handle };
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
            let set = preference.library.functions.set_preference;
            // SAFETY: the attributes are of these types.
            check("cublasLtMatmulPreferenceSetAttribute", unsafe { set(handle, attribute, value, length) })?;
        }
        Ok(preference)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's.
        let _ = unsafe { (self.library.functions.destroy_preference)(self.handle) };
    }
}

//! GEMMs with weights, by cuBLASLt.
#![allow(unsafe_code, reason = "cuBLASLt is C: handles are made and released here, and pointers are those of slices")]

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use cudarc::cublaslt::result as lt;
use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t, cudaDataType,
};
use cudarc::driver::sys::CUstream;
use half::bf16;

use super::driver::Driver;
use super::error::Extents;
use super::graphs::Work;
use super::library::find_matmul;
use super::{CudaDevice, CudaError, DeviceRows, Result, RowElement};

/// Which side of a weight `[outputs, inputs]` the rows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightSide {
    /// `x Wᵀ`: rows of inputs become rows of outputs.
    Inputs,
    /// `dy W`: rows of outputs become rows of inputs.
    Outputs,
}

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
pub struct Matmul {
    handle: cublasLtHandle_t,
    driver: Arc<Driver>,
}

// SAFETY: NVIDIA documents a handle of cuBLASLt as usable by several threads.
unsafe impl Send for Matmul {}
// SAFETY: the same.
unsafe impl Sync for Matmul {}

/// How products with weights of one extent are computed. The algorithm is chosen once, for 256 rows, and used for any
/// number of them: the order of a row's sums must not depend on other rows. Sums along the inputs are not split.
#[derive(Clone, Copy)]
pub struct MatmulPlan {
    /// (outputs, inputs).
    extents: (usize, usize),
    side: WeightSide,
    element: cudaDataType,
    algorithm: cublasLtMatmulAlgo_t,
}

/// Rows that an algorithm is chosen for.
const PLANNED_ROWS: usize = 256;

impl Matmul {
    /// Finds the library.
    pub fn new(device: &CudaDevice) -> Result<Self> {
        find_matmul()?;
        let driver = device.driver().clone();
        driver.bind()?;
        let handle = lt::create_handle().map_err(|error| CudaError::matmul("cublasLtCreate", error))?;
        Ok(Self { handle, driver })
    }

    /// A plan for weights of (outputs, inputs) and rows of elements `T`.
    pub fn plan<T: RowElement>(&self, extents: (usize, usize), side: WeightSide) -> Result<MatmulPlan> {
        self.driver.bind()?;
        let to = if side == WeightSide::Inputs { extents.0 } else { extents.1 };
        let call = Call::new(extents, side, data_type::<T>(), (PLANNED_ROWS, to))?;
        let preference = Preference::new()?;
        // SAFETY: all handles live until the end of this function.
        let found = unsafe {
            let [a, b, c] = [&call.weight, &call.rows, &call.out].map(|layout| layout.0);
            lt::get_matmul_algo_heuristic(self.handle, call.operation.0, a, b, c, c, preference.0)
        };
        let found = found.map_err(|error| CudaError::matmul("cublasLtMatmulAlgoGetHeuristic", error))?;
        Ok(MatmulPlan { extents, side, element: data_type::<T>(), algorithm: found.algo })
    }

    /// `out = rows · weight` after the plan, or `out += rows · weight`, summed in f32. The weight is the rows `of_weight` of
    /// `weight`, `[_, inputs]`: as many as the plan's outputs.
    pub fn run<T: RowElement>(
        &self,
        plan: &MatmulPlan,
        rows: &DeviceRows<T>,
        weight: (&DeviceRows<T>, Range<usize>),
        out: &mut DeviceRows,
        accumulate: bool,
    ) -> Result {
        let extents = Extents("matmul");
        let to = if plan.side == WeightSide::Inputs { plan.extents.0 } else { plan.extents.1 };
        out.expect(extents, "the output", rows.rows(), to)?;
        self.run_columns(plan, rows, weight, (out, 0), accumulate)
    }

    /// As [`Self::run`], for the columns of `out` from a first one on, and its first rows: as many as `rows` has.
    pub fn run_columns<T: RowElement>(
        &self,
        plan: &MatmulPlan,
        rows: &DeviceRows<T>,
        (weight, of_weight): (&DeviceRows<T>, Range<usize>),
        (out, first_column): (&mut DeviceRows, usize),
        accumulate: bool,
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
        let to = out.data().address_of(first_column..(rows.rows() - 1) * stride + end)?;
        let (plan, count) = (*plan, (rows.rows(), stride));
        let product = Product { handle: self.handle, plan, count, weight, rows: rows.data().address(), to, accumulate };
        self.driver.queue(Work::Multiply(product))
    }
}

/// A GEMM on memory of the device.
#[derive(Clone)]
pub(super) struct Product {
    handle: cublasLtHandle_t,
    plan: MatmulPlan,
    /// Rows, and elements from one row of the output to the next.
    count: (usize, usize),
    weight: u64,
    rows: u64,
    to: u64,
    accumulate: bool,
}

// SAFETY: NVIDIA documents a handle of cuBLASLt as usable by several threads.
unsafe impl Send for Product {}

impl PartialEq for Product {
    fn eq(&self, other: &Self) -> bool {
        let of = |product: &Self| {
            let MatmulPlan { extents, side, element, algorithm } = product.plan;
            let plan = (extents, side, element, algorithm.data);
            (product.handle, plan, product.count, product.weight, product.rows, product.to, product.accumulate)
        };
        of(self) == of(other)
    }
}

impl Product {
    /// Queues it.
    pub(super) fn issue(&self, stream: CUstream) -> Result {
        let Self { handle, plan, count, weight, rows, to, accumulate } = self;
        let call = Call::new(plan.extents, plan.side, plan.element, *count)?;
        let (one, beta) = (1f32, f32::from(u8::from(*accumulate)));
        let [one, beta] = [&raw const one, &raw const beta].map(<*const f32>::cast::<c_void>);
        let [w, x, y] = [*weight, *rows, *to].map(|address| address as *mut c_void);
        // SAFETY: layouts are those of the slices, which [`Matmul::run_columns`] has checked and whose uses the stream orders; handles
        // and factors live until the call returns.
        let called = unsafe {
            let [a, b, c] = [&call.weight, &call.rows, &call.out].map(|layout| layout.0);
            let (none, algorithm) = (std::ptr::null_mut(), &raw const plan.algorithm);
            lt::matmul(*handle, call.operation.0, one, beta, w, a, x, b, y, c, y, c, algorithm, none, 0, stream.cast())
        };
        called.map_err(|error| CudaError::matmul("cublasLtMatmul", error))
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        if self.driver.bind().is_ok() {
            // SAFETY: the handle is this value's. What is queued was handed to the driver.
            let _ = unsafe { lt::destroy_handle(self.handle) };
        }
    }
}

fn bytes(element: cudaDataType) -> usize {
    if element == bf16::TYPE { size_of::<bf16>() } else { size_of::<f32>() }
}

/// Descriptions of one product, as cuBLASLt sees it: by columns, so that a row-major matrix is its transpose. It computes
/// `outᵀ = op(weightᵀ) · rowsᵀ`.
struct Call {
    operation: Operation,
    weight: Layout,
    rows: Layout,
    out: Layout,
}

impl Call {
    /// For some rows, and elements of a row of the output and what is beside it.
    fn new(
        (outputs, inputs): (usize, usize),
        side: WeightSide,
        element: cudaDataType,
        (rows, stride): (usize, usize),
    ) -> Result<Self> {
        let (from, to) = if side == WeightSide::Inputs { (inputs, outputs) } else { (outputs, inputs) };
        Ok(Self {
            operation: Operation::new(side == WeightSide::Inputs)?,
            weight: Layout::new(element, (inputs, inputs), outputs)?,
            rows: Layout::new(element, (from, from), rows)?,
            out: Layout::new(f32::TYPE, (to, stride), rows)?,
        })
    }
}

struct Layout(cublasLtMatrixLayout_t);

impl Layout {
    /// Of a row-major matrix `[rows, width]` with rows `stride` elements apart.
    fn new(element: cudaDataType, (width, stride): (usize, usize), rows: usize) -> Result<Self> {
        let layout = lt::create_matrix_layout(element, width as u64, rows as u64, stride as i64);
        layout.map(Self).map_err(|error| CudaError::matmul("cublasLtMatrixLayoutCreate", error))
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's.
        let _ = unsafe { lt::destroy_matrix_layout(self.0) };
    }
}

struct Operation(cublasLtMatmulDesc_t);

impl Operation {
    /// In f32, not in TF32.
    fn new(transposed: bool) -> Result<Self> {
        let made = lt::create_matmul_desc(cublasComputeType_t::CUBLAS_COMPUTE_32F, f32::TYPE);
        let operation = Self(made.map_err(|error| CudaError::matmul("cublasLtMatmulDescCreate", error))?);
        // CUBLAS_OP_T or CUBLAS_OP_N.
        let value = i32::from(transposed);
        let attribute = cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA;
        // SAFETY: the attribute is of this type.
        unsafe {
            lt::set_matmul_desc_attribute(operation.0, attribute, (&raw const value).cast(), size_of_val(&value))
        }
        .map_err(|error| CudaError::matmul("cublasLtMatmulDescSetAttribute", error))?;
        Ok(operation)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's.
        let _ = unsafe { lt::destroy_matmul_desc(self.0) };
    }
}

/// Which algorithms are asked for: without workspace, and without sums that are split and then reduced.
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

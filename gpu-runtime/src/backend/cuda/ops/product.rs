//! A GEMM as cuBLASLt takes it, on memory of the device.
#![allow(unsafe_code, reason = "cuBLASLt is C: handles are made and released here, and pointers are those of slices")]

use std::ffi::c_void;
use std::fmt;

use cudarc::cublaslt::result as lt;
use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatrixLayout_t, cudaDataType,
};
use cudarc::driver::sys::CUstream;

use crate::backend::cuda::device::error::{CudaError, Result};

/// Side of a weight `[outputs, inputs]` that the rows correspond to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WeightSide {
    /// `x Wᵀ`: rows of inputs become rows of outputs.
    Inputs,
    /// `dy W`: rows of outputs become rows of inputs.
    Outputs,
}

/// How products with weights of one extent are computed. The algorithm is chosen once, for 256 rows, and used for any
/// number of them: the order of a row's sums must not depend on other rows. Sums along the inputs are not split.
#[derive(Clone, Copy)]
pub(crate) struct MatmulPlan {
    /// Numbers of outputs and inputs.
    pub(crate) extents: (usize, usize),
    pub(crate) side: WeightSide,
    pub(crate) element: cudaDataType,
    pub(super) algorithm: cublasLtMatmulAlgo_t,
}

/// The algorithm, as words that cuBLASLt alone understands: equal words are one algorithm.
impl fmt::Display for MatmulPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = &self.algorithm.data;
        let used = words.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
        write!(f, "0x")?;
        words[..used].iter().try_for_each(|word| write!(f, "{word:016x}"))
    }
}

/// A GEMM on memory of the device.
#[derive(Clone)]
pub(crate) struct Product {
    pub(crate) handle: cublasLtHandle_t,
    pub(crate) plan: MatmulPlan,
    /// Rows, and elements from one row of the output to the next.
    pub(crate) count: (usize, usize),
    pub(crate) weight: u64,
    pub(crate) rows: u64,
    /// Address of the addend, with rows as far apart as those of the output.
    pub(crate) addend: Option<u64>,
    pub(crate) to: u64,
}

// SAFETY: NVIDIA documents a handle of cuBLASLt as usable by several threads.
unsafe impl Send for Product {}

impl PartialEq for Product {
    fn eq(&self, other: &Self) -> bool {
        let of = |product: &Self| {
            let MatmulPlan { extents, side, element, algorithm } = product.plan;
            let plan = (extents, side, element, algorithm.data);
            (product.handle, plan, product.count, product.weight, product.rows, product.addend, product.to)
        };
        of(self) == of(other)
    }
}

impl Product {
    /// Queues the product on a stream.
    pub(crate) fn issue(&self, stream: CUstream) -> Result {
        let Self { handle, plan, count, weight, rows, addend, to } = self;
        let (outputs, inputs) = plan.extents;
        let call = Call::new(outputs, inputs, plan.side, plan.element, count.0, count.1)?;
        let (one, beta) = (1f32, f32::from(u8::from(addend.is_some())));
        let [one, beta] = [&raw const one, &raw const beta].map(<*const f32>::cast::<c_void>);
        let [w, x, before, y] = [*weight, *rows, addend.unwrap_or(*to), *to].map(|address| address as *mut c_void);
        // SAFETY: layouts are those of the slices, which [`Matmul`](super::matmul::Matmul) has checked and whose uses the stream orders; handles
        // and factors live until the call returns.
        let called = unsafe {
            let (operation, [a, b, c]) = call.handles();
            let (none, algorithm) = (std::ptr::null_mut(), &raw const plan.algorithm);
            lt::matmul(*handle, operation, one, beta, w, a, x, b, before, c, y, c, algorithm, none, 0, stream.cast())
        };
        called.map_err(|error| CudaError::matmul("cublasLtMatmul", error))
    }
}

/// Descriptions of one product, as cuBLASLt sees it: by columns, so that a row-major matrix is its transpose. It computes
/// `outᵀ = op(weightᵀ) · rowsᵀ`.
pub(crate) struct Call {
    operation: Operation,
    weight: Layout,
    rows: Layout,
    out: Layout,
}

impl Call {
    /// The call for `rows` rows; `stride` is the distance of output rows, in elements.
    pub(crate) fn new(
        outputs: usize,
        inputs: usize,
        side: WeightSide,
        element: cudaDataType,
        rows: usize,
        stride: usize,
    ) -> Result<Self> {
        let (from, to) = if side == WeightSide::Inputs { (inputs, outputs) } else { (outputs, inputs) };
        Ok(Self {
            operation: Operation::new(side == WeightSide::Inputs)?,
            weight: Layout::new(element, inputs, inputs, outputs)?,
            rows: Layout::new(element, from, from, rows)?,
            out: Layout::new(cudaDataType::CUDA_R_32F, to, stride, rows)?,
        })
    }

    /// The operation, and the layouts of weight, rows and output: handles that live as long as this.
    pub(super) fn handles(&self) -> (cublasLtMatmulDesc_t, [cublasLtMatrixLayout_t; 3]) {
        (self.operation.0, [&self.weight, &self.rows, &self.out].map(|layout| layout.0))
    }
}

struct Layout(cublasLtMatrixLayout_t);

impl Layout {
    /// The layout of a row-major matrix `[rows, width]` whose rows are `stride` elements apart.
    fn new(element: cudaDataType, width: usize, stride: usize, rows: usize) -> Result<Self> {
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
    /// An operation that computes in f32, not in TF32.
    fn new(transposed: bool) -> Result<Self> {
        let made = lt::create_matmul_desc(cublasComputeType_t::CUBLAS_COMPUTE_32F, cudaDataType::CUDA_R_32F);
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

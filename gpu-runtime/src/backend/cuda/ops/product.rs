//! A GEMM as cuBLASLt takes it, on memory of the device.
#![allow(unsafe_code, reason = "cuBLASLt is C: handles are made and released here, and pointers are those of slices")]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use cudarc::cublaslt::sys::{
    cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatrixLayout_t, cudaDataType,
};
use cudarc::driver::sys::CUstream;

use crate::backend::cuda::device::cublaslt::{Cublaslt, check};
use crate::backend::cuda::device::error::Result;

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
    pub(crate) library: Arc<Cublaslt>,
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
        let Self { library, handle, plan, count, weight, rows, addend, to } = self;
        let (outputs, inputs) = plan.extents;
        let (side, element) = (plan.side, plan.element);
        let call = Call::new(library, CallExtents { outputs, inputs, side, element, rows: count.0, stride: count.1 })?;
        let (one, beta) = (1f32, f32::from(u8::from(addend.is_some())));
        let [one, beta] = [&raw const one, &raw const beta].map(<*const f32>::cast::<c_void>);
        let before = addend.unwrap_or(*to);
        // SAFETY: layouts are those of the slices, which [`Matmul`](super::matmul::Matmul) has checked and whose uses the stream orders; handles
        // and factors live until the call returns.
        let called = unsafe {
            let (operation, [a, b, c]) = call.handles();
            let (matmul, algorithm) = (library.functions.matmul, &raw const plan.algorithm);
            matmul(*handle, operation, one, *weight, a, *rows, b, beta, before, c, *to, c, algorithm, 0, 0, stream)
        };
        check("cublasLtMatmul", called)
    }
}

/// Descriptions of one product, as cuBLASLt sees it: by columns, so that a row-major matrix is its transpose. It computes
/// `outᵀ = op(weightᵀ) · rowsᵀ`.
pub(crate) struct Call<'a> {
    operation: Operation<'a>,
    weight: Layout<'a>,
    rows: Layout<'a>,
    out: Layout<'a>,
}

/// Extents of a call: of its weight, the number of rows, and the distance of output rows in elements.
#[derive(Clone, Copy)]
pub(crate) struct CallExtents {
    pub(crate) outputs: usize,
    pub(crate) inputs: usize,
    pub(crate) side: WeightSide,
    pub(crate) element: cudaDataType,
    pub(crate) rows: usize,
    pub(crate) stride: usize,
}

impl<'a> Call<'a> {
    /// The call of these extents.
    pub(crate) fn new(library: &'a Cublaslt, extents: CallExtents) -> Result<Self> {
        let CallExtents { outputs, inputs, side, element, rows, stride } = extents;
        let (from, to) = if side == WeightSide::Inputs { (inputs, outputs) } else { (outputs, inputs) };
        Ok(Self {
            operation: Operation::new(library, side == WeightSide::Inputs)?,
            weight: Layout::new(library, element, inputs, inputs, outputs)?,
            rows: Layout::new(library, element, from, from, rows)?,
            out: Layout::new(library, cudaDataType::CUDA_R_32F, to, stride, rows)?,
        })
    }

    /// The operation, and the layouts of weight, rows and output: handles that live as long as this.
    pub(super) fn handles(&self) -> (cublasLtMatmulDesc_t, [cublasLtMatrixLayout_t; 3]) {
        (self.operation.handle, [&self.weight, &self.rows, &self.out].map(|layout| layout.handle))
    }
}

struct Layout<'a> {
    library: &'a Cublaslt,
    handle: cublasLtMatrixLayout_t,
}

impl<'a> Layout<'a> {
    /// The layout of a row-major matrix `[rows, width]` whose rows are `stride` elements apart.
    fn new(library: &'a Cublaslt, element: cudaDataType, width: usize, stride: usize, rows: usize) -> Result<Self> {
        let (mut handle, create) = (std::ptr::null_mut(), library.functions.create_layout);
        // SAFETY: the handle is written before the function returns.
        let made = unsafe { create(&raw mut handle, element, width as u64, rows as u64, stride as i64) };
        check("cublasLtMatrixLayoutCreate", made)?;
        Ok(Self { library, handle })
    }
}

impl Drop for Layout<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's.
        let _ = unsafe { (self.library.functions.destroy_layout)(self.handle) };
    }
}

struct Operation<'a> {
    library: &'a Cublaslt,
    handle: cublasLtMatmulDesc_t,
}

impl<'a> Operation<'a> {
    /// An operation that computes in f32, not in TF32.
    fn new(library: &'a Cublaslt, transposed: bool) -> Result<Self> {
        let (mut handle, functions) = (std::ptr::null_mut(), &library.functions);
        let (compute, scale) = (cublasComputeType_t::CUBLAS_COMPUTE_32F, cudaDataType::CUDA_R_32F);
        // SAFETY: the handle is written before the function returns.
        let made = unsafe { (functions.create_operation)(&raw mut handle, compute, scale) };
        check("cublasLtMatmulDescCreate", made)?;
        let operation = Self { library, handle };
        // CUBLAS_OP_T or CUBLAS_OP_N.
        let value = i32::from(transposed);
        let attribute = cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA;
        let set = functions.set_operation;
        // SAFETY: the attribute is of this type.
        let set = unsafe { set(handle, attribute, (&raw const value).cast(), size_of_val(&value)) };
        check("cublasLtMatmulDescSetAttribute", set)?;
        Ok(operation)
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's.
        let _ = unsafe { (self.library.functions.destroy_operation)(self.handle) };
    }
}

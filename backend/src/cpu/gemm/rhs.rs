//! The right side of a GEMM: a packed matrix, or the transpose of one.

use std::sync::OnceLock;

use super::super::Cpu;
use super::super::packed::{BlockPanels, PackedMatrix};
use crate::Dtype;

/// The right side, which the rows of the left side are multiplied by.
#[derive(Clone, Copy)]
pub(crate) enum GemmRhs<'a> {
    /// `x · Wᵀ` with this `W`.
    Matrix(&'a PackedMatrix),
    /// `x · W` with this `W`, which is transposed strip by strip while it is read.
    Transpose(&'a PackedMatrix),
}

impl<'a> From<&'a PackedMatrix> for GemmRhs<'a> {
    fn from(w: &'a PackedMatrix) -> Self {
        Self::Matrix(w)
    }
}

impl<'a> GemmRhs<'a> {
    /// The transpose of `w`, without a copy, which blocks always have; `None` where the processor multiplies pairs of bf16, which in a transpose are
    /// pairs of other elements: there it has to be packed.
    pub(crate) fn transpose(cpu: &Cpu, w: &'a PackedMatrix) -> Option<Self> {
        (w.blocks().is_some() || !Self::needs_packed_transpose(cpu, w.dtype())).then_some(Self::Transpose(w))
    }

    /// The transpose of `w`; where it has to be packed, that happens once, into `packed`.
    pub(crate) fn transposed_or_pack(cpu: &Cpu, w: &'a PackedMatrix, packed: &'a OnceLock<PackedMatrix>) -> Self {
        let pack = || Self::Matrix(packed.get_or_init(|| w.transposed(cpu)));
        Self::transpose(cpu, w).unwrap_or_else(pack)
    }

    /// Whether transposes of matrices of this type have to be packed.
    pub(crate) fn needs_packed_transpose(cpu: &Cpu, dtype: Dtype) -> bool {
        cpu.input_type(dtype) == Dtype::Bf16
    }

    /// Columns of the output.
    pub(crate) fn n(&self) -> usize {
        match self {
            Self::Matrix(w) => w.n(),
            Self::Transpose(w) => w.k(),
        }
    }

    /// Terms of a sum.
    pub(crate) fn k(&self) -> usize {
        match self {
            Self::Matrix(w) => w.k(),
            Self::Transpose(w) => w.n(),
        }
    }

    /// Element type of the weights.
    pub(crate) fn dtype(&self) -> Dtype {
        let (Self::Matrix(w) | Self::Transpose(w)) = self;
        w.dtype()
    }

    /// The panels of the weights, or of the matrix that is transposed, if they are in blocks.
    pub(super) fn blocks(&self) -> Option<&'a BlockPanels> {
        let (Self::Matrix(w) | Self::Transpose(w)) = self;
        w.blocks()
    }

    /// Bytes that `elements` elements of the weights take.
    pub(super) fn bytes_of(&self, elements: usize) -> usize {
        let (Self::Matrix(w) | Self::Transpose(w)) = self;
        if w.blocks().is_some() {
            return (w.bytes() as f64 * elements as f64 / (w.n() * w.k()).max(1) as f64) as usize;
        }
        match self.dtype() {
            Dtype::Bf16 => 2 * elements,
            Dtype::F32 => 4 * elements,
        }
    }
}

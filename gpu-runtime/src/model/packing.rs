//! Parameters that are packed in blocks when they are loaded.

use super::params::{MlpParams, ParamTable};
use crate::blocks::{BLOCK, PackedForm, Quantizer};

/// Fewest rows of a matrix that is packed: panels of the processor have as many.
const LEAST_ROWS: usize = 32;

impl ParamTable {
    /// The quantizer of a parameter in this form; `None` for parameters that stay wide: norms, biases, convolutions, routers,
    /// matrices of fewer than 32 rows, and rows that are not whole blocks.
    pub(crate) fn quantizer(&self, index: usize, form: PackedForm) -> Option<Quantizer> {
        let [outputs, inputs] = self.specs.get(index)?.shape[..] else { return None };
        let is_whole = outputs >= LEAST_ROWS && inputs > 0 && inputs.is_multiple_of(BLOCK);
        let is_packed = is_whole && !self.is_router(index);
        is_packed.then(|| form.quantizer(index == self.embed || index == self.head))
    }

    fn is_router(&self, index: usize) -> bool {
        self.blocks.iter().any(|block| match &block.mlp {
            Some(MlpParams::Experts(experts)) => experts.router.weight == index,
            _ => false,
        })
    }
}

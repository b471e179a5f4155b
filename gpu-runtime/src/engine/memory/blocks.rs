//! The memory of weights that stay in the blocks of their file.

use crate::backend::{Backend, MatrixRole};
use crate::blocks::BLOCK;
use crate::config::ModelSource;
use crate::model::{ParamSpec, ParamTable};

/// Bytes by which a model's weights are smaller in blocks than widened, with the transposes of training.
pub(super) fn saved_by_blocks<B: Backend>(backend: &B, model: &ModelSource) -> usize {
    let table = ParamTable::new(&model.config);
    let saved = |(index, spec): (usize, &ParamSpec)| {
        let [outputs, inputs] = spec.shape[..] else { return 0 };
        let Some(format) = model.tensors.block_format(&spec.name) else { return 0 };
        let Some(kept) = backend.planned_block_bytes(format, outputs, inputs) else { return 0 };
        let is_table = index == table.embed && table.embed != table.head;
        let widened = match is_table {
            true => outputs * inputs * backend.dtype().bytes(),
            false => backend.planned_matrix_bytes(outputs, inputs, MatrixRole::Base, true),
        };
        // A panel with rows of another projection, in another format, is widened.
        let shared = if outputs.is_multiple_of(BLOCK) { 0 } else { BLOCK * inputs * backend.dtype().bytes() };
        widened.saturating_sub(kept + shared)
    };
    table.specs.iter().enumerate().map(saved).sum()
}

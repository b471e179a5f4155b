//! The memory of weights that are kept in blocks.

use std::collections::BTreeMap;

use crate::backend::{Backend, MatrixRole};
use crate::blocks::{BLOCK, BlockFormat, Quantizer};
use crate::config::{ModelConfig, TensorSource};
use crate::engine::WeightStorage;
use crate::model::{ParamSpec, ParamTable};

/// Returns the formats of the parameters that stay in blocks, by name. Without `tensors`, no file is assumed to have
/// any in blocks.
pub fn block_formats(
    config: &ModelConfig,
    tensors: Option<&dyn TensorSource>,
    storage: WeightStorage,
) -> BTreeMap<String, BlockFormat> {
    let table = ParamTable::new(config);
    let format = |(index, spec): (usize, &ParamSpec)| {
        let in_file = tensors.and_then(|tensors| tensors.block_format(&spec.name));
        let format = match storage {
            WeightStorage::Widened => None,
            WeightStorage::Blocks => in_file,
            WeightStorage::Packed(form) => in_file.or_else(|| table.quantizer(index, form).map(Quantizer::format)),
        };
        Some((spec.name.clone(), format?))
    };
    table.specs.iter().enumerate().filter_map(format).collect()
}

/// Bytes by which a model's weights are smaller in these formats than widened, with the transposes of training.
pub(crate) fn saved_by_blocks<B: Backend>(
    backend: &B,
    config: &ModelConfig,
    formats: &BTreeMap<String, BlockFormat>,
) -> usize {
    let table = ParamTable::new(config);
    let saved = |(index, spec): (usize, &ParamSpec)| {
        let [outputs, inputs] = spec.shape[..] else { return 0 };
        let Some(format) = formats.get(&spec.name) else { return 0 };
        let Some(kept) = backend.planned_block_bytes(*format, outputs, inputs) else { return 0 };
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

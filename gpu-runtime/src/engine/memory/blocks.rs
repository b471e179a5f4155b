//! The memory of weights that are kept in blocks.

use std::collections::BTreeMap;

use crate::backend::Backend;
use crate::blocks::{BlockFormat, Quantizer};
use crate::config::{ModelConfig, TensorSource};
use crate::engine::WeightStorage;
use crate::model::{ParamSpec, ParamTable, Weights};

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
    let of = |formats: &BTreeMap<String, BlockFormat>| Weights::planned_bytes_in(backend, config, true, formats);
    of(&BTreeMap::new()).saturating_sub(of(formats))
}

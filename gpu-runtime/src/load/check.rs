//! Whether a file has the tensors of a configuration's parameter table.

use std::collections::BTreeSet;

use crate::config::{LoadError, ModelConfig, TensorSource};
use crate::model::ParamTable;

/// Checks that every parameter of the model is there with the right extents.
pub(super) fn check(config: &ModelConfig, tensors: &dyn TensorSource) -> Result<(), LoadError> {
    let mut unused: BTreeSet<String> = tensors.names().into_iter().collect();
    for param in ParamTable::new(config).specs {
        match tensors.shape(&param.name) {
            None => return Err(LoadError::MissingTensor(param.name)),
            Some(found) if found != param.shape => {
                return Err(LoadError::WrongShape { name: param.name, found, expected: param.shape });
            }
            Some(_) => unused.remove(&param.name),
        };
    }
    if config.tie_word_embeddings {
        unused.remove("lm_head.weight");
    }
    if let Some(first) = unused.first() {
        tracing::warn!(tensor = first, count = unused.len(), "the model does not use some tensors of its file");
    }
    Ok(())
}

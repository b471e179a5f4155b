//! How the files of a model store its experts, whatever is usual for the family.

use crate::config::{ExpertStorage, Experts, LoadError, ModelConfig, TensorSource, block_name};

/// A configuration with the storage of experts that the tensors of a file have. Checks that there are as many experts as
/// configured, before a table of them takes memory.
pub(super) fn with_storage_of(tensors: &dyn TensorSource, config: &ModelConfig) -> Result<ModelConfig, LoadError> {
    let mut own = config.clone();
    for (layer, block) in own.blocks.iter_mut().enumerate() {
        let is_gated = block.activation.is_gated();
        if let Some(experts) = &mut block.experts {
            experts.storage = storage(tensors, config, layer, experts, is_gated)?;
        }
    }
    Ok(own)
}

/// The storage of a block's experts, given that of the family.
fn storage(
    tensors: &dyn TensorSource,
    config: &ModelConfig,
    layer: usize,
    experts: &Experts,
    is_gated: bool,
) -> Result<ExpertStorage, LoadError> {
    let (usual, count, width, inputs) =
        (experts.storage, experts.count, experts.width, experts.inputs(config.hidden_size));
    let (first, stack, inner) =
        if is_gated { ("gate_proj", "gate_up_proj", 2 * width) } else { ("up_proj", "up_proj", width) };
    let [gate_up, down] = [stack, "down_proj"].map(|part| block_name(layer, &format!("mlp.experts.{part}")));
    let rows = [vec![count, inner, inputs], vec![count, inputs, width]];
    let columns = [vec![count, inputs, inner], vec![count, width, inputs]];
    let is_stacked = tensors.shape(&gate_up).is_some();
    if usual != ExpertStorage::Interleaved && !is_stacked {
        let expert = |expert: usize| block_name(layer, &format!("mlp.experts.{expert}.{first}.weight"));
        return match (0..count).map(expert).find(|name| tensors.shape(name).is_none()) {
            None => Ok(ExpertStorage::Apart),
            Some(missing) => Err(LoadError::MissingTensor(config.spelling.in_files(&missing))),
        };
    }
    let mut found = Vec::with_capacity(2);
    for name in [&gate_up, &down] {
        let shape = tensors.shape(name).ok_or_else(|| LoadError::MissingTensor(config.spelling.in_files(name)))?;
        found.push(shape);
    }
    let (storage, expected) = match usual {
        ExpertStorage::Interleaved => (ExpertStorage::Interleaved, columns),
        _ if found == columns && found != rows => (ExpertStorage::Columns, columns),
        _ => (ExpertStorage::Rows, rows),
    };
    let wrong = [gate_up, down].into_iter().zip(found).zip(expected).find(|((_, found), expected)| found != expected);
    match wrong {
        None => Ok(storage),
        Some(((name, found), expected)) => {
            Err(LoadError::WrongShape { name: config.spelling.in_files(&name), found, expected })
        }
    }
}

//! `target_prompt_logprobs`: token ids to score in a prompt.

use trainyard_protocol::limits::{MAX_TARGETS, check_targets};
use trainyard_protocol::{OpError, PromptTargets, SparseIndices, TensorValues};

use super::super::tensor::{self, ExpansionBudget, TensorData};

fn refused(message: impl std::fmt::Display) -> OpError {
    OpError::user(format!("target_prompt_logprobs: {message}"))
}

/// Checks token ids to score against the prompt's length; -1 marks a cell to skip.
///
/// # Errors
///
/// A user error that describes the problem with the tensor.
pub(super) fn prompt_targets(targets: TensorData, prompt: usize) -> Result<PromptTargets, OpError> {
    check_targets(targets.columns(), MAX_TARGETS).map_err(refused)?;
    let wire = targets.to_proto().map_err(refused)?;
    let dense = tensor::densify(&wire, -1, &mut ExpansionBudget::default()).map_err(refused)?;
    let TensorValues::I64(ids) = dense.values else {
        return Err(refused("dtype must be int64"));
    };
    let shape = match dense.shape[..] {
        [rows, columns] if rows + 1 == prompt => [rows, columns],
        _ => {
            let rows = prompt.saturating_sub(1);
            return Err(refused(format_args!("shape is {:?}, expected [{rows}, K]", dense.shape)));
        }
    };
    if ids.iter().all(|&id| id == -1) {
        return Err(refused("at least one token id is required"));
    }
    let sparse = targets.sparse_crow_indices.zip(targets.sparse_col_indices);
    let sparse = sparse.map(|(crow, col)| SparseIndices { crow, col });
    let ids = match &sparse {
        None => ids,
        Some(sparse) => sparse.cells(shape[1]).flatten().map(|at| ids[at]).collect(),
    };
    Ok(PromptTargets { shape, ids, sparse })
}

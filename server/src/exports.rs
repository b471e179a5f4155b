//! Storage folders of exported and uploaded weights, which can be read again.

use trainyard_protocol::CheckpointKind;
use trainyard_scheduler::Checkpoint;
use trainyard_storage::Storage;

use crate::error::ApiError;

/// Returns whether weights of this kind can be sampled from.
pub(crate) fn is_sampled(kind: CheckpointKind) -> bool {
    matches!(kind, CheckpointKind::Sampler | CheckpointKind::External)
}

/// The files of a training checkpoint that are not its weights: what training goes on with.
const OF_TRAINING: [&str; 2] = ["optimizer.safetensors", "trainyard.json"];

/// Returns whether a file of a checkpoint belongs to its weights, which leave the service.
pub(crate) fn is_of_weights(file: &str) -> bool {
    !OF_TRAINING.contains(&file)
}

/// Refuses an export whose files are encrypted: the server can't read them.
pub(crate) async fn ensure_readable(storage: &Storage, field: &str, checkpoint: &Checkpoint) -> Result<(), ApiError> {
    if checkpoint.path.kind != CheckpointKind::External {
        return Ok(());
    }
    let files = storage.files(&checkpoint.dir).await?;
    match files.keys().any(|file| file.ends_with(".age")) {
        false => Ok(()),
        true => Err(ApiError::invalid(format!("{field}: {} is encrypted and can only be downloaded", checkpoint.path))),
    }
}

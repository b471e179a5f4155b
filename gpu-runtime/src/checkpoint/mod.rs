//! Checkpoints as folders.
//!
//! A sampler checkpoint is a PEFT adapter ([`adapter`]) or, for a run that trains all parameters, a Hugging Face
//! folder. A training checkpoint adds [`OPTIMIZER_FILE`] and [`MANIFEST_FILE`]. A run's snapshot for recovery has a format of
//! its own ([`write_run`]). Folders appear whole or not at all
//! ([`write_atomically`]).

pub mod adapter;
mod atomic;
mod snapshot;
mod state;
mod tensors;

use std::path::Path;

use trainyard_protocol::OpError;

use crate::config::LoadError;

pub use adapter::{Adapter, AdapterModule, AdapterTensors, read_adapter, write_adapter};
pub use atomic::{remove_leftovers, write_atomically};
pub use snapshot::{Kind, RunSnapshot, read_run, write_run};
pub use state::{
    MANIFEST_FILE, MODEL_FILE, Manifest, Moments, MomentsRef, OPTIMIZER_FILE, read_manifest, read_optimizer,
    write_manifest, write_model_files, write_optimizer,
};
pub use tensors::{NamedTensor, TensorMap, read_tensors, write_tensors};

/// A checkpoint that cannot be read, as the client may see it: the file's name, not its place. The whole story
/// goes to the log.
pub fn unreadable(error: &LoadError) -> OpError {
    tracing::error!(%error, "a checkpoint cannot be read");
    let (path, reason) = match error {
        LoadError::Io { path, source } => (path, source.to_string()),
        LoadError::Malformed { path, reason } => (path, reason.clone()),
        other => return OpError::server(format!("the checkpoint cannot be read: {other}")),
    };
    OpError::server(format!("the checkpoint cannot be read: {}: {reason}", file_name(Path::new(path))))
}

/// A failed write, as the client may see it.
fn unwritable(path: &Path, error: &std::io::Error) -> OpError {
    tracing::error!(path = %path.display(), %error, "a checkpoint cannot be written");
    OpError::server(format!("the checkpoint cannot be written: {}: {error}", file_name(path)))
}

fn io_error(path: &Path, source: std::io::Error) -> LoadError {
    LoadError::Io { path: path.display().to_string(), source }
}

fn malformed(path: &Path, reason: impl std::fmt::Display) -> LoadError {
    LoadError::Malformed { path: path.display().to_string(), reason: reason.to_string() }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Writes `value` as indented JSON.
fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), OpError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| unwritable(path, &error.into()))?;
    std::fs::write(path, text + "\n").map_err(|error| unwritable(path, &error))
}

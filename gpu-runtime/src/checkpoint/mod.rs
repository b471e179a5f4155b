//! Checkpoints as folders.
//!
//! A sampler checkpoint is a PEFT adapter ([`adapter`]) or, for a run that trains all parameters, a Hugging Face
//! folder; the weights of a run with a scalar head have [`SCALAR_HEAD_FILE`] besides. A training checkpoint adds
//! [`OPTIMIZER_FILE`] and [`MANIFEST_FILE`]. A run's snapshot for recovery has a format of
//! its own ([`write_run`]). Folders are written
//! atomically ([`write_atomically`]).

pub(crate) mod adapter;
mod adapter_names;
mod atomic;
mod elements;
mod merge;
mod peft_form;
mod snapshot;
mod state;
mod stored;
#[cfg(test)]
mod stored_tests;
mod tensors;
mod uploaded;
mod variants;

use std::io::ErrorKind;
use std::path::Path;

use trainyard_protocol::OpError;

use crate::config::LoadError;
use crate::interrupt;

pub(crate) use adapter::{AdapterModule, AdapterTensors, read_adapter, write_adapter};
pub(crate) use adapter_names::{is_known_to_peft, read_names, written_name};
pub(crate) use atomic::write_atomically;
pub(crate) use elements::Elements;
pub use merge::merge;
pub use peft_form::write_for_peft;
pub(crate) use snapshot::{Kind, read_run, write_run};
pub(crate) use state::{
    MANIFEST_FILE, MODEL_FILE, Manifest, MomentsRef, SCALAR_HEAD_FILE, read_manifest, read_optimizer, write_manifest,
    write_model_files, write_optimizer,
};
pub(crate) use stored::{SharedSource, kept_tensors, stored_tensors};
pub(crate) use tensors::{NamedTensor, TensorMap, read_tensors, write_tensors};
pub(crate) use uploaded::{ExpectedModule, read_uploaded};

/// The client's error for a checkpoint that cannot be read: it names the file, not its path. The log has the path.
pub(crate) fn unreadable(error: &LoadError) -> OpError {
    if let LoadError::Io { source, .. } = error
        && let Some(refusal) = interrupt::refusal(source)
    {
        return refusal;
    }
    tracing::error!(%error, "a checkpoint cannot be read");
    let (path, reason) = match error {
        LoadError::Io { path, source } => (path, source.to_string()),
        LoadError::Malformed { path, reason } => (path, reason.clone()),
        other => return OpError::server(format!("the checkpoint cannot be read: {other}")),
    };
    OpError::server(format!("the checkpoint cannot be read: {}: {reason}", file_name(Path::new(path))))
}

/// The client's error for a failed write; the log has the path.
pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> OpError {
    if let Some(refusal) = interrupt::refusal(error) {
        return refusal;
    }
    tracing::error!(path = %path.display(), %error, "a checkpoint cannot be written");
    let text = format!("the checkpoint cannot be written: {}: {error}", file_name(path));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => OpError::no_space(text),
        _ => OpError::server(text),
    }
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

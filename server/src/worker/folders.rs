//! Fetching the folders that operations read and publishing those that they wrote, while the engine continues.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trainyard_age::{self as age, Recipient};
use trainyard_protocol::{OpError, Operation, RequestId, TenantId, TinkerPath};
use trainyard_scheduler::{Effect, Error, Outcome};
use trainyard_storage::StorageError;

use super::mailbox::Mailbox;
use super::reply::{PendingReply, WrittenFolder};
use crate::workspace::{FolderGuard, Workspace};

/// Pause between two attempts to reach the store.
const PAUSE: Duration = Duration::from_millis(250);
/// Pause between two attempts to fetch a folder without which a run would be lost.
const STORAGE_PAUSE: Duration = Duration::from_secs(2);

/// A folder that an operation reads.
#[derive(Clone, Debug)]
pub(super) enum FolderSource {
    /// A checkpoint that is loaded into a run; the catalogue contains its location.
    Load { tenant: TenantId, request: RequestId, path: TinkerPath },
    /// A location in the storage.
    At(PathBuf),
}

/// Makes the operation once its folder is on this machine.
pub(super) type BuildOperation = Box<dyn FnOnce(&Path) -> Operation + Send>;

/// A request that waits for a folder.
pub(super) struct WaitingForFolder {
    pub(super) folder: FolderSource,
    pub(super) build: BuildOperation,
    pub(super) reply: PendingReply,
    /// Whether the operation restores a run. The run would be lost without the folder, so a failing storage is retried.
    pub(super) restores: bool,
}

/// Result of fetching a request's folder.
pub(super) struct FetchedFolder {
    pub(super) request: RequestId,
    pub(super) folder: Result<FolderGuard, OpError>,
}

/// Finds a folder and fetches it. With `restores`, retries for as long as the storage fails.
pub(super) async fn fetch<M: Mailbox>(
    mailbox: Arc<M>,
    workspace: Workspace,
    folder: FolderSource,
    restores: bool,
) -> Result<FolderGuard, OpError> {
    let location = match folder {
        FolderSource::At(location) => location,
        FolderSource::Load { tenant, request, path } => match pin(&*mailbox, &tenant, &request, &path).await {
            Ok(location) => location,
            Err(error @ (Error::NotFound { .. } | Error::Gone { .. })) => {
                return Err(OpError::user(format!("path: {error}")));
            }
            Err(error) => return Err(OpError::server(error.to_string())),
        },
    };
    loop {
        match workspace.fetch(&location).await {
            Ok(guard) => return Ok(guard),
            Err(error @ StorageError::NotFound(_)) => {
                tracing::error!(%error, "checkpoint folder missing in storage");
                let missing = "the checkpoint's files are missing; the server's log has the details";
                return Err(OpError::server(missing));
            }
            Err(error @ (StorageError::Failed { .. } | StorageError::NoSpace { .. })) if restores => {
                tracing::warn!(%error, "run restore deferred: storage unavailable, retrying");
                tokio::time::sleep(STORAGE_PAUSE).await;
            }
            Err(error) => return Err(unavailable(&error)),
        }
    }
}

/// Finds the folder of a load, retrying for as long as the store is unavailable.
async fn pin<M: Mailbox>(
    mailbox: &M,
    tenant: &TenantId,
    request: &RequestId,
    path: &TinkerPath,
) -> Result<PathBuf, Error> {
    loop {
        match mailbox.pin_load(tenant, request, path).await {
            Err(Error::Unavailable(_) | Error::NoSpace(_) | Error::Conflict(_)) => tokio::time::sleep(PAUSE).await,
            found => return found,
        }
    }
}

/// Stores a folder that the engine wrote, encrypted if required. Returns what to report.
pub(super) async fn publish(workspace: Workspace, folder: WrittenFolder) -> Result<(Outcome, Vec<Effect>), OpError> {
    let WrittenFolder { written, location, size_bytes, age_recipients, report } = folder;
    let stored_bytes = match age_recipients.is_empty() {
        true => size_bytes,
        false => encrypt(written.clone(), age::recipients(&age_recipients)?).await?,
    };
    workspace.publish(&written, &location).await.map_err(|error| unavailable(&error))?;
    Ok(report(stored_bytes))
}

/// Encrypts the files of a folder and returns their total size in bytes.
async fn encrypt(folder: PathBuf, recipients: Vec<Recipient>) -> Result<u64, OpError> {
    let encrypting = tokio::task::spawn_blocking(move || age::encrypt_folder(&folder, &recipients));
    let encrypted =
        encrypting.await.map_err(|error| error.to_string()).and_then(|done| done.map_err(|e| e.to_string()));
    encrypted.map_err(|error| {
        tracing::error!(%error, "failed to encrypt an export");
        OpError::server("failed to encrypt the export; the server's log has the details")
    })
}

/// The error for a storage failure. The client learns no details.
fn unavailable(error: &StorageError) -> OpError {
    tracing::error!(%error, "storage request failed");
    OpError::server("the storage failed; the server's log has the details")
}

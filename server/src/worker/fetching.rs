//! Bringing the folders that operations read to this machine, while the engine works on.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trainyard_protocol::{OpError, Operation, RequestId, TenantId, TinkerPath};
use trainyard_scheduler::{Error, StorageError};

use super::Mailbox;
use super::job::Job;
use crate::workspace::{Lease, Workspace};

/// Between two attempts to reach the store.
const PAUSE: Duration = Duration::from_millis(250);
/// Between two attempts to fetch what must not be given up.
const STORAGE_PAUSE: Duration = Duration::from_secs(2);

/// A folder that an operation reads.
#[derive(Clone, Debug)]
pub(super) enum Folder {
    /// Of a checkpoint that is loaded into a run; the catalogue knows where it is.
    Load {
        /// Whose load.
        tenant: TenantId,
        /// The load.
        request: RequestId,
        /// The checkpoint.
        path: TinkerPath,
    },
    /// At this place in the storage.
    At(PathBuf),
}

/// Makes the operation, once its folder is there.
pub(super) type Build = Box<dyn FnOnce(&Path) -> Operation + Send>;

/// A request that waits for a folder.
pub(super) struct Waiting {
    pub(super) folder: Folder,
    pub(super) build: Build,
    pub(super) job: Job,
    /// It restores a run, which would be lost without it: a storage that fails is waited for.
    pub(super) restores: bool,
}

/// What came of fetching a request's folder.
pub(super) struct Fetched {
    pub(super) request: RequestId,
    pub(super) folder: Result<Lease, OpError>,
}

/// Finds a folder and fetches it; with `restores` however long the storage fails.
pub(super) async fn fetch<M: Mailbox>(
    mailbox: Arc<M>,
    workspace: Workspace,
    folder: Folder,
    restores: bool,
) -> Result<Lease, OpError> {
    let location = match folder {
        Folder::At(location) => location,
        Folder::Load { tenant, request, path } => match pin(&*mailbox, &tenant, &request, &path).await {
            Ok(location) => location,
            Err(error @ (Error::NotFound { .. } | Error::Gone { .. })) => {
                return Err(OpError::user(format!("path: {error}")));
            }
            Err(error) => return Err(OpError::server(error.to_string())),
        },
    };
    loop {
        match workspace.fetch(&location).await {
            Ok(lease) => return Ok(lease),
            Err(error @ StorageError::NotFound(_)) => {
                tracing::error!(%error, "the folder of a checkpoint is missing");
                let missing = "the checkpoint's files are missing; the server's log has the details";
                return Err(OpError::server(missing));
            }
            Err(error @ StorageError::Failed { .. }) if restores => {
                tracing::warn!(%error, "a run can't be restored yet; it is tried again");
                tokio::time::sleep(STORAGE_PAUSE).await;
            }
            Err(error) => return Err(unavailable(&error)),
        }
    }
}

/// Finds the folder of a load, however long the store can't be reached.
async fn pin<M: Mailbox>(
    mailbox: &M,
    tenant: &TenantId,
    request: &RequestId,
    path: &TinkerPath,
) -> Result<PathBuf, Error> {
    loop {
        match mailbox.pin_load(tenant, request, path).await {
            Err(Error::Unavailable(_) | Error::Conflict(_)) => tokio::time::sleep(PAUSE).await,
            found => return found,
        }
    }
}

/// Stores what the engine wrote.
pub(super) async fn publish(workspace: Workspace, written: PathBuf, location: PathBuf) -> Result<(), OpError> {
    workspace.publish(&written, &location).await.map_err(|error| unavailable(&error))
}

/// The client learns no details.
fn unavailable(error: &StorageError) -> OpError {
    tracing::error!(%error, "the storage failed");
    OpError::server("the storage failed; the server's log has the details")
}

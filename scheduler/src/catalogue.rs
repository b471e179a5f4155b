//! Runs and checkpoints.

use trainyard_protocol::{RunId, TenantId, TinkerPath};

use crate::{Checkpoint, Error, Page, Run, Scheduler};

impl Scheduler {
    /// Runs, newest first, and how many there are.
    pub async fn runs(&self, _tenant: &TenantId, _page: Page) -> Result<(Vec<Run>, u64), Error> {
        Err(Error::Store("x"))
    }

    /// A run.
    pub async fn run(&self, _tenant: &TenantId, _run: &RunId) -> Result<Run, Error> {
        Err(Error::Store("x"))
    }

    /// The tenant's checkpoints, of one run when given, newest first, and how many there are.
    pub async fn checkpoints(
        &self,
        _tenant: &TenantId,
        _run: Option<&RunId>,
        _page: Page,
    ) -> Result<(Vec<Checkpoint>, u64), Error> {
        Err(Error::Store("x"))
    }

    /// A checkpoint that the tenant may read: its own or a public one.
    pub async fn checkpoint(&self, _tenant: &TenantId, _path: &TinkerPath) -> Result<Checkpoint, Error> {
        Err(Error::Store("x"))
    }

    /// Removes a checkpoint from the catalogue. The caller removes its folder.
    pub async fn delete_checkpoint(&self, _tenant: &TenantId, _path: &TinkerPath) -> Result<Checkpoint, Error> {
        Err(Error::Store("x"))
    }

    /// Lets a checkpoint expire so many seconds from now, or never.
    pub async fn set_ttl(&self, _tenant: &TenantId, _path: &TinkerPath, _seconds: Option<i64>) -> Result<(), Error> {
        Err(Error::Store("x"))
    }

    /// Lets other tenants read a checkpoint, or no longer.
    pub async fn set_public(&self, _tenant: &TenantId, _path: &TinkerPath, _public: bool) -> Result<(), Error> {
        Err(Error::Store("x"))
    }

    /// Checkpoints of all tenants whose time is over.
    pub async fn expired_checkpoints(&self) -> Result<Vec<(TenantId, Checkpoint)>, Error> {
        Err(Error::Store("x"))
    }
}

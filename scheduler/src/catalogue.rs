//! Runs and checkpoints.

use std::{fs, io};

use trainyard_protocol::limits::{MAX_TTL_SECONDS, MIN_TTL_SECONDS};
use trainyard_protocol::{RunId, TenantId, TinkerPath};

use crate::core::Core;
use crate::store::db::Conn;
use crate::store::{checkpoints, runs};
use crate::writer::Write;
use crate::{Checkpoint, Error, Page, Run, Scheduler, Timestamp};

impl Scheduler {
    /// Runs, newest first, and how many there are.
    pub async fn runs(&self, tenant: &TenantId, page: Page) -> Result<(Vec<Run>, u64), Error> {
        runs::list_runs(&mut self.core.reader().await?, tenant, page).await
    }

    /// A run.
    pub async fn run(&self, tenant: &TenantId, run: &RunId) -> Result<Run, Error> {
        runs::run(&mut self.core.reader().await?, tenant, run).await
    }

    /// The tenant's checkpoints, of one run when given, newest first, and how many there are.
    pub async fn checkpoints(
        &self,
        tenant: &TenantId,
        run: Option<&RunId>,
        page: Page,
    ) -> Result<(Vec<Checkpoint>, u64), Error> {
        let now = self.core.now();
        checkpoints::list_checkpoints(&mut self.core.reader().await?, tenant, run, page, now).await
    }

    /// A checkpoint that the tenant may read: its own or a public one.
    pub async fn checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<Checkpoint, Error> {
        let now = self.core.now();
        checkpoints::readable_checkpoint(&mut self.core.reader().await?, tenant, path, now).await
    }

    /// Whether the tenant has a checkpoint of this path; saves that were completed before the call are seen.
    /// Blocks the calling thread, which must not be one of the runtime's.
    pub fn has_checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<bool, Error> {
        // Through the writer, because it may still hold what the worker completed.
        self.core.runtime.block_on(self.write(HasCheckpoint { tenant: tenant.clone(), path: path.clone() }))
    }

    /// Removes a checkpoint from the catalogue, and its folder from its place: the name is free at once. The caller
    /// removes the folder from where the answer says that it is, a hidden name that ends in `.saving`, as unfinished
    /// folders do.
    pub async fn delete_checkpoint(&self, tenant: &TenantId, path: &TinkerPath) -> Result<Checkpoint, Error> {
        self.write(DeleteCheckpoint { tenant: tenant.clone(), path: path.clone() }).await
    }

    /// Lets a checkpoint expire so many seconds from now, or never.
    ///
    /// # Errors
    /// [`Error::Invalid`] outside the protocol's limits.
    pub async fn set_ttl(&self, tenant: &TenantId, path: &TinkerPath, seconds: Option<i64>) -> Result<(), Error> {
        if let Some(seconds) = seconds
            && !(MIN_TTL_SECONDS..=MAX_TTL_SECONDS).contains(&seconds)
        {
            return Err(Error::Invalid(format!(
                "ttl_seconds {seconds} is invalid: use {MIN_TTL_SECONDS} to {MAX_TTL_SECONDS}, or null"
            )));
        }
        let change = Change::ExpiresIn(seconds);
        self.write(ChangeCheckpoint { tenant: tenant.clone(), path: path.clone(), change }).await
    }

    /// Lets other tenants read a checkpoint, or no longer.
    pub async fn set_public(&self, tenant: &TenantId, path: &TinkerPath, public: bool) -> Result<(), Error> {
        let change = Change::Public(public);
        self.write(ChangeCheckpoint { tenant: tenant.clone(), path: path.clone(), change }).await
    }

    /// Checkpoints of all tenants whose time is over, up to a thousand.
    pub async fn expired_checkpoints(&self) -> Result<Vec<(TenantId, Checkpoint)>, Error> {
        checkpoints::expired_checkpoints(&mut self.core.reader().await?, self.core.now()).await
    }
}

struct HasCheckpoint {
    tenant: TenantId,
    path: TinkerPath,
}

impl Write for HasCheckpoint {
    type Output = bool;

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<bool, Error> {
        checkpoints::has_checkpoint(conn, &self.tenant, &self.path).await
    }
}

struct DeleteCheckpoint {
    tenant: TenantId,
    path: TinkerPath,
}

impl Write for DeleteCheckpoint {
    type Output = Checkpoint;

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<Checkpoint, Error> {
        let mut deleted = checkpoints::delete_checkpoint(conn, &self.tenant, &self.path).await?;
        let away = deleted.dir.with_file_name(format!(".{}-{}.saving", self.path.name, core.new_uuid()));
        // Moved here, because whoever asks the writer next may write a new folder of this name.
        match fs::rename(&deleted.dir, &away) {
            Ok(()) => deleted.dir = away,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::store("move a deleted checkpoint", error)),
        }
        Ok(deleted)
    }
}

enum Change {
    /// Seconds from now; never when `None`.
    ExpiresIn(Option<i64>),
    Public(bool),
}

struct ChangeCheckpoint {
    tenant: TenantId,
    path: TinkerPath,
    change: Change,
}

impl Write for ChangeCheckpoint {
    type Output = ();

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<(), Error> {
        let (now, tenant, path) = (core.now(), &self.tenant, &self.path);
        match self.change {
            Change::ExpiresIn(seconds) => {
                let expires_at = seconds.map(|seconds| Timestamp(now.0.saturating_add(seconds.saturating_mul(1000))));
                checkpoints::set_checkpoint_expiry(conn, tenant, path, expires_at, now).await
            }
            Change::Public(public) => checkpoints::set_checkpoint_public(conn, tenant, path, public, now).await,
        }
    }
}

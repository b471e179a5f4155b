//! Calls of the operator about the audit log of all organisations.

use serde_json::Value;
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, entry};
use crate::store::audit::{self, ExportedEntry};
use crate::store::db::{Conn, RowScope};
use crate::{AuditCategory, Error, NewAuditEntry, Timestamp};

impl Directory {
    /// Returns a page of the entries of all organisations from before a time, in the order of their ids, from the one after
    /// `after` on. The last page is empty.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn export_audit_log(&self, after: &str, before: Timestamp) -> Result<Vec<ExportedEntry>, Error> {
        audit::exported_entries(&mut self.system_reader().await?, after, before).await
    }

    /// Deletes entries of all organisations from before a time. First an entry about that is appended to each log. Returns
    /// the number of deleted entries.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the time is in the future.
    pub async fn prune_audit_log(&self, before: Timestamp) -> Result<u64, Error> {
        if before > self.now().await? {
            return Err(Error::Invalid("before: must not be in the future".to_owned()));
        }
        let organisations = audit::audited_organisations(&mut self.system_reader().await?, before).await?;
        if organisations.is_empty() {
            return Ok(0);
        }
        self.act(AnnouncePrune { before, organisations }).await?;
        let mut deleted = 0;
        loop {
            let (some, is_full) = self.act(PruneAuditLog { before }).await?;
            deleted += some;
            if !is_full {
                return Ok(deleted);
            }
        }
    }
}

struct AnnouncePrune {
    before: Timestamp,
    organisations: Vec<TenantId>,
}

impl Act for AnnouncePrune {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn make(&self, _conn: &mut Conn, _stage: &Stage) -> Result<(), Error> {
        Ok(())
    }

    fn entry(&self, (): &()) -> Option<NewAuditEntry> {
        None
    }

    fn entries(&self, (): &()) -> Vec<NewAuditEntry> {
        let before = Value::from(self.before.as_millis());
        let of = |name: &TenantId| {
            let details = [("before_ms", before.clone())];
            entry(name, AuditCategory::Organizations, "audit_prune", name, details)
        };
        self.organisations.iter().map(of).collect()
    }
}

struct PruneAuditLog {
    before: Timestamp,
}

impl Act for PruneAuditLog {
    type Output = (u64, bool);

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn make(&self, conn: &mut Conn, _stage: &Stage) -> Result<(u64, bool), Error> {
        audit::delete_entries(conn, self.before).await
    }

    /// Returns no entry: the prune was announced.
    fn entry(&self, _: &Self::Output) -> Option<NewAuditEntry> {
        None
    }
}

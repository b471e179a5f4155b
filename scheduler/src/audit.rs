//! The audit log: what was done is appended in the transaction that does it.

use std::sync::Arc;

use trainyard_protocol::TenantId;
use uuid::Uuid;

use crate::core::Core;
use crate::store::audit::{self, AuditedCall};
use crate::store::db::Conn;
use crate::write::Write;
use crate::{Actor, AuditCategory, AuditEntry, Error, NewAuditEntry, Origin, Scheduler, Timestamp};

/// Who is doing what is about to be done, and when.
pub(crate) struct Audit {
    id: Uuid,
    at: Timestamp,
    actor: Actor,
    request_id: Option<Arc<str>>,
}

impl Audit {
    /// On behalf of the current task's actor and call.
    pub(crate) fn begin(at: Timestamp, id: Uuid) -> Self {
        Self { id, at, actor: Actor::current(), request_id: Origin::current().map(|origin| origin.call) }
    }

    pub(crate) async fn append(&self, conn: &mut Conn, entry: &NewAuditEntry) -> Result<(), Error> {
        let call = AuditedCall {
            id: self.id.hyphenated().to_string(),
            actor: &self.actor,
            request_id: self.request_id.as_deref(),
        };
        audit::append_to_audit_log(conn, &call, entry, self.at).await
    }
}

impl Scheduler {
    pub(crate) fn begin_audit(&self) -> Audit {
        Audit::begin(self.core.now(), self.core.new_uuid())
    }

    /// Appends what was done on behalf of the current actor to the audit log.
    ///
    /// # Errors
    /// When the store can't be written.
    pub async fn audit(&self, entry: NewAuditEntry) -> Result<(), Error> {
        self.write(Append { audit: self.begin_audit(), entry }).await
    }

    /// Entries of an organisation from one time to before another, oldest first, of one category when given; of too many
    /// the newest.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn audit_log(
        &self,
        organisation: &TenantId,
        category: Option<AuditCategory>,
        period: (Timestamp, Timestamp),
    ) -> Result<Vec<AuditEntry>, Error> {
        audit::audit_entries(&mut self.core.reader().await?, organisation, category, period).await
    }
}

struct Append {
    audit: Audit,
    entry: NewAuditEntry,
}

impl Write for Append {
    type Output = ();

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        self.audit.append(conn, &self.entry).await
    }
}

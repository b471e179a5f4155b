//! The audit log: an entry is appended in the transaction that makes the change.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use trainyard_protocol::TenantId;
use uuid::Uuid;

use crate::context::core::Core;
use crate::store::audit::{self, AuditedCall};
use crate::store::db::{Conn, RowScope};
use crate::writer::write::Write;
use crate::{Actor, AuditCategory, AuditEntry, Error, NewAuditEntry, Origin, Scheduler, Timestamp};

/// Duration of an hour in ms.
const HOUR: i64 = 3_600_000;

/// Actor, call and time of a change that is about to be made.
#[derive(Clone)]
pub(crate) struct Audit {
    id: Uuid,
    at: Timestamp,
    actor: Actor,
    request_id: Option<Arc<str>>,
}

impl Audit {
    /// Begins a change on behalf of the current task's actor and call.
    pub(crate) fn begin(at: Timestamp, id: Uuid) -> Self {
        Self { id, at, actor: Actor::current(), request_id: Origin::current().map(|origin| origin.call) }
    }

    /// Encodes the actor, to be stored until the change is made.
    pub(crate) fn to_text(&self) -> String {
        let Self { actor: Actor { name, key, user, address }, request_id, .. } = self;
        let request_id = request_id.as_deref();
        json!({ "name": name, "key": key, "user": user, "address": address, "request_id": request_id }).to_string()
    }

    /// Decodes the actor that [`Self::to_text`] encoded; an unknown actor becomes the service itself.
    pub(crate) fn on_behalf_of(text: Option<&str>, at: Timestamp, id: Uuid) -> Self {
        let known: Option<Value> = text.and_then(|text| serde_json::from_str(text).ok());
        let field = |name: &str| known.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let actor = field("name").map(|name| Actor {
            name,
            key: known.as_ref().and_then(|known| known.get("key")?.as_i64()),
            user: field("user"),
            address: field("address"),
        });
        Self { id, at, actor: actor.unwrap_or_else(Actor::service), request_id: field("request_id").map(Arc::from) }
    }

    /// Returns the audit data of one of several entries of the same change, with its own id.
    pub(crate) fn part(&self, index: usize) -> Self {
        Self { id: Uuid::from_u128(self.id.as_u128().wrapping_add(index as u128)), ..self.clone() }
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

    /// Appends an entry on behalf of the current actor to the audit log.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn audit(&self, entry: NewAuditEntry) -> Result<(), Error> {
        self.write(Append { audit: self.begin_audit(), entry }).await
    }

    /// Appends an entry as [`Self::audit`] does, unless an entry of the same change was appended in the same hour. `of`
    /// distinguishes the change from others with the same content.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn audit_once_an_hour(&self, entry: NewAuditEntry, of: &str) -> Result<(), Error> {
        let now = self.core.now();
        let audit = Audit::begin(now, id_of_hour(now, &entry, of));
        self.write(Append { audit, entry }).await
    }

    /// Returns entries of an organisation from `from` to before `to`, oldest first, of one category if it is given. If
    /// there are too many, only the newest are returned.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn audit_log(
        &self,
        organisation: &TenantId,
        category: Option<AuditCategory>,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<AuditEntry>, Error> {
        audit::audit_entries(&mut self.core.reader_of(organisation).await?, organisation, category, from, to).await
    }
}

/// Returns the time-ordered id that all entries of a change have in an hour.
fn id_of_hour(now: Timestamp, entry: &NewAuditEntry, of: &str) -> Uuid {
    let hour = u64::try_from(now.as_millis() / HOUR * HOUR).unwrap_or(0);
    let details = Value::from(entry.details.clone()).to_string();
    let mut hash = Sha256::new();
    for part in [entry.organisation.as_str(), entry.event, &entry.subject, &details, of] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    uuid::Builder::from_unix_timestamp_millis(hour, &random).into_uuid()
}

struct Append {
    audit: Audit,
    entry: NewAuditEntry,
}

impl Write for Append {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.entry.organisation)
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<(), Error> {
        self.audit.append(conn, &self.entry).await
    }
}

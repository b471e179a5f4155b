//! Entries of the audit log.

use serde_json::{Map, Value};
use trainyard_protocol::TenantId;

use super::text_enum;
use crate::Timestamp;

text_enum!(
    /// Kind of the object of an audited change.
    AuditCategory {
        /// A checkpoint of a run.
        Checkpoints = "checkpoints",
        /// A project of an organisation.
        Projects = "projects",
        /// A user, or a user's key.
        Teams = "teams",
        /// An organisation and its limits.
        Organizations = "organizations",
    }
);

/// A change to enter into the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAuditEntry {
    /// Organisation that owns the object.
    pub organisation: TenantId,
    /// Kind of the object.
    pub category: AuditCategory,
    /// Object and act, such as `checkpoint_delete`.
    pub event: &'static str,
    /// Id, name or path of the object.
    pub subject: String,
    /// Further facts about the change.
    pub details: Map<String, Value>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// Time of the change.
    pub at: Timestamp,
    /// Kind of the object.
    pub category: AuditCategory,
    /// Object and act, such as `checkpoint_delete`.
    pub event: String,
    /// Id, name or path of the object.
    pub subject: String,
    /// Further facts about the change.
    pub details: Map<String, Value>,
    /// Description of the actor: a user, a key or a program.
    pub actor: String,
    /// API key that was used, if it is in the store.
    pub key: Option<i64>,
    /// Header `x-request-id` of the call.
    pub request_id: Option<String>,
    /// Network address of the caller.
    pub address: Option<String>,
}

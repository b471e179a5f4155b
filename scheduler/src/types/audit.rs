//! What was done, by whom.

use serde_json::{Map, Value};
use trainyard_protocol::TenantId;

use super::text_enum;
use crate::Timestamp;

text_enum!(
    /// The kind of object that an act concerned.
    AuditCategory {
        /// Checkpoints.
        Checkpoints = "checkpoints",
        /// Projects.
        Projects = "projects",
        /// Users and their keys.
        Teams = "teams",
        /// Organisations.
        Organizations = "organizations",
    }
);

/// An act that was done.
#[derive(Clone, Debug, PartialEq)]
pub struct NewAuditEntry {
    /// Whose objects were concerned.
    pub organisation: TenantId,
    /// The kind of object.
    pub category: AuditCategory,
    /// Object and act, such as `checkpoint_delete`.
    pub event: &'static str,
    /// Id, name or path of the object.
    pub subject: String,
    /// What else there is to say.
    pub details: Map<String, Value>,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// When it was done.
    pub at: Timestamp,
    /// The kind of object.
    pub category: AuditCategory,
    /// Object and act, such as `checkpoint_delete`.
    pub event: String,
    /// Id, name or path of the object.
    pub subject: String,
    /// What else there is to say.
    pub details: Map<String, Value>,
    /// Who did it, in words.
    pub actor: String,
    /// The API key that was used, where the store has it.
    pub key: Option<i64>,
    /// `x-request-id` of the call.
    pub request_id: Option<String>,
    /// Where the call came from.
    pub address: Option<String>,
}

//! The administration of organisations by admins: of their own organisation, or of all if it is an operator.

mod convert;
mod limits;
pub(crate) mod usage;

pub(super) mod admin_change_limits;
pub(super) mod admin_change_organisation;
pub(super) mod admin_change_user;
pub(super) mod admin_create_key;
pub(super) mod admin_create_organisation;
pub(super) mod admin_create_project;
pub(super) mod admin_create_user;
pub(super) mod admin_delete_project;
pub(super) mod admin_keys;
pub(super) mod admin_limits;
pub(super) mod admin_organisations;
pub(super) mod admin_projects;
pub(super) mod admin_revoke_key;
pub(super) mod admin_rotate_signing;
pub(super) mod admin_users;
pub(super) mod audit;

use trainyard_protocol::TenantId;

pub(super) use self::usage::{admin_usage_csv, billing_storage, billing_usage};

use crate::auth::Principal;
use crate::error::ApiError;

/// The organisation of a call. One that the caller does not manage looks like one that does not exist.
pub(super) fn organisation(caller: &Principal, named: Option<String>) -> Result<TenantId, ApiError> {
    match named {
        Some(name) if name != caller.tenant.as_str() && !caller.operator => {
            Err(ApiError::NotFound { what: "organisation", id: name })
        }
        Some(name) => Ok(TenantId::new(name)),
        None => Ok(caller.tenant.clone()),
    }
}

//! Administration of organisations by their own admins, and by the admins of operators.

mod convert;
mod first_key;
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
use crate::endpoint::table::endpoints;
use crate::error::ApiError;

endpoints! {
    keyed {
        get "/api/v1/audit" audit: Admin, [Missing];
        get "/api/v1/billing/usage/events" billing_usage: Admin, [Missing];
        get "/api/v1/billing/usage/checkpoints/current" billing_storage: Admin, [Missing];
        get "/api/v1/admin/usage.csv" admin_usage_csv: Admin, [Missing];
        get "/api/v1/admin/organisations" admin_organisations: Admin, [];
        post "/api/v1/admin/organisations" admin_create_organisation: Admin, [];
        put "/api/v1/admin/organisations/{organisation}" admin_change_organisation: Admin, [Missing];
        get "/api/v1/admin/organisations/{organisation}/limits" admin_limits: Admin, [Missing];
        put "/api/v1/admin/organisations/{organisation}/limits" admin_change_limits: Admin, [Missing];
        post "/api/v1/admin/signing_keys/rotate" admin_rotate_signing: Admin, [];
        get "/api/v1/admin/projects" admin_projects: Admin, [Missing];
        post "/api/v1/admin/projects" admin_create_project: Admin, [Missing];
        delete "/api/v1/admin/projects/{project_id}" admin_delete_project: Admin, [Missing];
        get "/api/v1/admin/users" admin_users: Admin, [Missing];
        post "/api/v1/admin/users" admin_create_user: Admin, [Missing];
        put "/api/v1/admin/users/{email}" admin_change_user: Admin, [Missing];
        get "/api/v1/admin/keys" admin_keys: Admin, [Missing];
        post "/api/v1/admin/keys" admin_create_key: Admin, [Missing];
        delete "/api/v1/admin/keys/{key_id}" admin_revoke_key: Admin, [Missing];
    }
    open {}
}

/// Returns the organisation of a call. One that the caller does not manage looks like one that does not exist.
pub(super) fn organisation(caller: &Principal, named: Option<String>) -> Result<TenantId, ApiError> {
    match named {
        Some(name) if name != caller.tenant.as_str() && !caller.operator => {
            Err(ApiError::NotFound { what: "organisation", id: name })
        }
        Some(name) => Ok(TenantId::new(name)),
        None => Ok(caller.tenant.clone()),
    }
}

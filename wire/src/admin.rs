//! Organisations, projects, users, API keys and the audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{json, lists};

/// Which organisation; the caller's own when absent. Others are there for the admins of operators alone.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OrganisationQuery {
    /// Its name.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// An organisation: the tenant that owns sessions, runs and checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Organisation {
    /// The tenant of its objects.
    pub name: String,
    /// For people.
    pub display_name: String,
    /// Its admins manage all organisations.
    pub operator: bool,
    /// When it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Since when none of its keys and tokens is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub disabled_at: Option<String>,
}

/// Answer of `GET admin/organisations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrganisationsResponse {
    /// Those that the caller manages, by name.
    pub organisations: Vec<Organisation>,
}

/// Body of `POST admin/organisations`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateOrganisationRequest {
    /// The tenant of its objects.
    pub name: String,
    /// Its admins manage all organisations.
    #[serde(default)]
    pub operator: bool,
}

/// Body of `PUT admin/organisations/{organisation}`; what is absent stays.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeOrganisationRequest {
    /// For people.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub display_name: Option<String>,
    /// Whether its keys and tokens are refused; for admins of operators.
    #[serde(default)]
    pub disabled: Option<bool>,
}

/// A project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    /// As sessions name it.
    pub id: String,
    /// For people.
    pub name: String,
    /// When it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Answer of `GET admin/projects`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectsResponse {
    /// By id.
    pub projects: Vec<Project>,
}

/// Body of `POST admin/projects`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateProjectRequest {
    /// As sessions name it.
    pub id: String,
    /// For people.
    #[serde(default, deserialize_with = "json::or_default")]
    pub name: String,
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// A time-ordered id.
    pub id: String,
    /// Names the user within the organisation.
    pub email: String,
    /// For people.
    pub name: String,
    /// `admin`, `member` or `read-only`: the most that the user's keys allow.
    pub role: String,
    /// When it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Since when none of the user's keys is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub disabled_at: Option<String>,
}

/// Answer of `GET admin/users`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsersResponse {
    /// By email.
    pub users: Vec<User>,
}

/// Body of `POST admin/users`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateUserRequest {
    /// Names the user within the organisation.
    pub email: String,
    /// For people.
    #[serde(default, deserialize_with = "json::or_default")]
    pub name: String,
    /// `admin`, `member` (when absent) or `read-only`.
    #[serde(default)]
    pub role: Option<String>,
}

/// Body of `PUT admin/users/{email}`; what is absent stays.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeUserRequest {
    /// `admin`, `member` or `read-only`.
    #[serde(default)]
    pub role: Option<String>,
    /// Whether the user's keys are refused.
    #[serde(default)]
    pub disabled: Option<bool>,
}

/// An API key, without the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// Names it.
    pub id: i64,
    /// For people.
    pub name: String,
    /// For people.
    pub note: String,
    /// The first characters of the key.
    pub hint: String,
    /// The email of the user whose it is; absent for one of the organisation's programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `admin`, `member` or `read-only`: the most that it allows.
    pub role: String,
    /// What it is cut to, of `train`, `sample`, `checkpoints` and `admin`; absent for all of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// When it was created.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// When it expires, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
}

/// Answer of `GET admin/keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeysResponse {
    /// Oldest first.
    pub keys: Vec<ApiKey>,
}

/// Body of `POST admin/keys`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateKeyRequest {
    /// For people.
    pub name: String,
    /// For people.
    #[serde(default, deserialize_with = "json::or_default")]
    pub note: String,
    /// The email of the user whose it is; absent for one of the organisation's programs.
    #[serde(default)]
    pub user: Option<String>,
    /// `admin`, `member` (when absent) or `read-only`.
    #[serde(default)]
    pub role: Option<String>,
    /// Cuts it to some of `train`, `sample`, `checkpoints` and `admin`.
    #[serde(default, deserialize_with = "lists::scopes")]
    #[schema(max_items = 16)]
    pub scopes: Option<Vec<String>>,
    /// Seconds from now after which it expires; absent for never.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub expires_in_seconds: Option<u32>,
}

/// Answer of `POST admin/keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateKeyResponse {
    /// The key. It is stored nowhere, and never shown again.
    pub key: String,
    /// What is known of it.
    pub details: ApiKey,
}

/// Answer of `GET auth/apikey/me`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyResponse {
    /// Names the key; 0 where the store does not have it.
    pub key_id: i64,
    /// For people.
    pub name: String,
    /// For people.
    pub note: String,
    /// Whose it is.
    pub details: OwnKeyDetails,
}

/// Whose a key is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyDetails {
    /// The organisation.
    pub org_details: OwnKeyOrganisation,
    /// The user.
    pub user_details: OwnKeyUser,
}

/// The organisation of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyOrganisation {
    /// Its name.
    pub name: String,
}

/// The user of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyUser {
    /// The user's email; empty for a key that is no user's.
    pub email: String,
}

/// Query of `audit`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// `all` (when absent), `checkpoints`, `projects`, `teams` or `organizations`.
    #[serde(default)]
    pub event_type: Option<String>,
    /// `YYYY-MM-DD`, from midnight to midnight UTC; today when absent.
    #[serde(default)]
    pub day: Option<String>,
    /// The organisation; the caller's own when absent.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// Answer of `audit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditResponse {
    /// Oldest first; of more than 10,000 the newest.
    pub entries: Vec<AuditEntry>,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// When.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// Object and act, such as `checkpoint_delete`.
    pub event: String,
    /// `actor`, `subject`, `key_id`, `request_id`, `address` and what else there is to say.
    #[schema(value_type = Object)]
    pub event_details: BTreeMap<String, Value>,
    /// The run of a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tinker_path: Option<String>,
}

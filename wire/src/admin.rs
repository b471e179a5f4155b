//! Administration: organisations, projects, users, API keys and the audit log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{json, lists};

/// The organisation that a request concerns. Only admins of operators may name one other than their own.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct OrganisationQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// An organisation: the tenant that owns sessions, runs and checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Organisation {
    /// Unique name; the tenant of its sessions, runs and checkpoints.
    pub name: String,
    /// Name for display; any text.
    pub display_name: String,
    /// Whether this is an operator, whose admins manage all organisations.
    pub operator: bool,
    /// Time of creation, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time from which its keys and tokens are refused, in RFC 3339; absent while it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub disabled_at: Option<String>,
}

/// Response body of `GET admin/organisations`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrganisationsResponse {
    /// The organisations that the caller manages, ordered by name.
    pub organisations: Vec<Organisation>,
}

/// Request body of `POST admin/organisations`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateOrganisationRequest {
    /// Unique name; the tenant of its sessions, runs and checkpoints.
    pub name: String,
    /// Makes it an operator, whose admins manage all organisations.
    #[serde(default)]
    pub operator: bool,
}

/// Request body of `PUT admin/organisations/{organisation}`. Absent fields keep their values.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeOrganisationRequest {
    /// Name for display, of at most 200 characters.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub display_name: Option<String>,
    /// Whether to refuse the organisation's keys and tokens. Only admins of operators may change this.
    #[serde(default)]
    pub disabled: Option<bool>,
}

/// A project of an organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Project {
    /// Id by which sessions refer to the project.
    pub id: String,
    /// Name for display; any text.
    pub name: String,
    /// Time of creation, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// Response body of `GET admin/projects`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectsResponse {
    /// The organisation's projects, ordered by id.
    pub projects: Vec<Project>,
}

/// Request body of `POST admin/projects`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateProjectRequest {
    /// Id by which sessions refer to the project.
    pub id: String,
    /// Name for display; empty by default.
    #[serde(default, deserialize_with = "json::or_default")]
    pub name: String,
}

/// A user of an organisation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Id that increases with the time of creation.
    pub id: String,
    /// Email address, unique within the organisation.
    pub email: String,
    /// Name for display; any text.
    pub name: String,
    /// `admin`, `member` or `read-only`: the highest role of the user's keys.
    pub role: String,
    /// Time of creation, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time from which the user's keys are refused, in RFC 3339; absent while the user is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub disabled_at: Option<String>,
}

/// Response body of `GET admin/users`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UsersResponse {
    /// The organisation's users, ordered by email address.
    pub users: Vec<User>,
}

/// Request body of `POST admin/users`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateUserRequest {
    /// Email address, unique within the organisation.
    pub email: String,
    /// Name for display; empty by default.
    #[serde(default, deserialize_with = "json::or_default")]
    pub name: String,
    /// Highest role of the user's keys: `admin`, `member` (the default) or `read-only`.
    #[serde(default)]
    pub role: Option<String>,
}

/// Request body of `PUT admin/users/{email}`. Absent fields keep their values.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangeUserRequest {
    /// Highest role of the user's keys: `admin`, `member` or `read-only`.
    #[serde(default)]
    pub role: Option<String>,
    /// Whether to refuse the user's keys.
    #[serde(default)]
    pub disabled: Option<bool>,
}

/// An API key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiKey {
    /// Number that identifies the key.
    pub id: i64,
    /// Name for display; any text.
    pub name: String,
    /// Note for display; any text.
    pub note: String,
    /// First characters of the key, to recognise it by.
    pub hint: String,
    /// Email address of the user who owns the key; absent if the key belongs to a program of the organisation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `admin`, `member` or `read-only`: the highest role that the key grants.
    pub role: String,
    /// Scopes that the key is limited to: `train`, `sample`, `checkpoints` and `admin`; absent if it grants all scopes
    /// of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// Time of creation, in RFC 3339.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Time at which the key expires, in RFC 3339; absent if it never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Time at which the key was revoked, in RFC 3339; absent unless it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
}

/// Response body of `GET admin/keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeysResponse {
    /// The organisation's keys, oldest first.
    pub keys: Vec<ApiKey>,
}

/// Request body of `POST admin/keys`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreateKeyRequest {
    /// Name for display; any text.
    pub name: String,
    /// Note for display; empty by default.
    #[serde(default, deserialize_with = "json::or_default")]
    pub note: String,
    /// Email address of the user who owns the key; absent for a key of one of the organisation's programs.
    #[serde(default)]
    pub user: Option<String>,
    /// Highest role: `admin`, `member` or `read-only`; by default its user's, or `member`.
    #[serde(default)]
    pub role: Option<String>,
    /// Limits the key to these scopes: `train`, `sample`, `checkpoints` or `admin`; all scopes of its role by default.
    #[serde(default, deserialize_with = "lists::scopes")]
    #[schema(max_items = 16)]
    pub scopes: Option<Vec<String>>,
    /// Seconds from now until the key expires; it never does by default.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub expires_in_seconds: Option<u32>,
}

/// Response body of `POST admin/keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateKeyResponse {
    /// The key. It is returned only once; the server stores only its SHA-256.
    pub key: String,
    /// The stored details of the key.
    pub details: ApiKey,
}

/// Response body of `GET auth/apikey/me`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyResponse {
    /// Number that identifies the key; 0 if it is not in the store.
    pub key_id: i64,
    /// Name for display; any text.
    pub name: String,
    /// Note for display; any text.
    pub note: String,
    /// The owner of the key.
    pub details: OwnKeyDetails,
}

/// The owner of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyDetails {
    /// The organisation that the key belongs to.
    pub org_details: OwnKeyOrganisation,
    /// The user that the key belongs to.
    pub user_details: OwnKeyUser,
}

/// The organisation that a key belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyOrganisation {
    /// Name of the organisation.
    pub name: String,
}

/// The user that a key belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKeyUser {
    /// Email address of the user; empty if the key does not belong to a user.
    pub email: String,
}

/// Query parameters of `audit`.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Events to return: `all` (the default), `checkpoints`, `projects`, `teams` or `organizations`.
    #[serde(default)]
    pub event_type: Option<String>,
    /// Day in UTC, as `YYYY-MM-DD`; today by default.
    #[serde(default)]
    pub day: Option<String>,
    /// Name of the organisation; the caller's own by default.
    #[serde(default)]
    pub organisation: Option<String>,
}

/// Response body of `audit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditResponse {
    /// The newest 10,000 entries of the day, oldest first.
    pub entries: Vec<AuditEntry>,
}

/// An action that was recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Time of the action, in RFC 3339.
    #[schema(format = DateTime)]
    pub timestamp: String,
    /// Object and action, such as `checkpoint_delete`.
    pub event: String,
    /// Details: `actor`, `subject`, `key_id`, `request_id`, `address`, and others that depend on the event.
    #[schema(value_type = Object)]
    pub event_details: BTreeMap<String, Value>,
    /// Run of the checkpoint that was acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// Path of the checkpoint that was acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tinker_path: Option<String>,
}

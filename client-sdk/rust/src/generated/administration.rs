// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `administration`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// Lists the API keys of an organisation, including expired and revoked ones.
    ///
    /// `GET /api/v1/admin/keys`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_keys(
        &self,
        query: &AdminKeysQuery,
    ) -> Result<types::KeysResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["api", "v1", "admin", "keys"])
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Creates an API key. The key is returned only once; the server stores only its SHA-256.
    ///
    /// `POST /api/v1/admin/keys`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_create_key(
        &self,
        query: &AdminCreateKeyQuery,
        body: &types::CreateKeyRequest,
    ) -> Result<types::CreateKeyResponse, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "admin", "keys"],
            )
            .query(query)?
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Revokes an API key: every server refuses it from now on.
    ///
    /// `DELETE /api/v1/admin/keys/{key_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_revoke_key(
        &self,
        key_id: i64,
        query: &AdminRevokeKeyQuery,
    ) -> Result<(), Error> {
        let request = Request::new(
                reqwest::Method::DELETE,
                &["api", "v1", "admin", "keys", &key_id.to_string()],
            )
            .query(query)?;
        self.send_for_nothing(request).await
    }
    /// Lists the organisations that the caller manages.
    ///
    /// `GET /api/v1/admin/organisations`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_organisations(
        &self,
    ) -> Result<types::OrganisationsResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "admin", "organisations"],
        );
        self.send_for_json(request).await
    }
    /// Creates an organisation; for admins of operators.
    ///
    /// `POST /api/v1/admin/organisations`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_create_organisation(
        &self,
        body: &types::CreateOrganisationRequest,
    ) -> Result<types::Organisation, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "admin", "organisations"],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Changes an organisation's display name, or disables or enables it. Absent fields keep their values. Every server answers the keys and tokens of a disabled organisation with 401 within a second. Its sessions expire, which cancels waiting requests and all samples; its objects stay. Only admins of operators can disable and enable organisations, but not their own.
    ///
    /// `PUT /api/v1/admin/organisations/{organisation}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_change_organisation(
        &self,
        organisation: &str,
        body: &types::ChangeOrganisationRequest,
    ) -> Result<types::Organisation, Error> {
        let request = Request::new(
                reqwest::Method::PUT,
                &["api", "v1", "admin", "organisations", &organisation.to_string()],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns the weight and the quotas of an organisation, and where each one is set.
    ///
    /// `GET /api/v1/admin/organisations/{organisation}/limits`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_limits(
        &self,
        organisation: &str,
    ) -> Result<types::LimitsResponse, Error> {
        let request = Request::new(
            reqwest::Method::GET,
            &["api", "v1", "admin", "organisations", &organisation.to_string(), "limits"],
        );
        self.send_for_json(request).await
    }
    /// Sets and unsets the weight and the quotas of an organisation; for admins of operators. Absent fields keep their values, and `null` unsets a limit. Every server enforces the new limits within a second; requests that were accepted or started earlier are not affected. A limit that the configuration file sets can't be changed.
    ///
    /// `PUT /api/v1/admin/organisations/{organisation}/limits`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_change_limits(
        &self,
        organisation: &str,
        body: &types::ChangeLimitsRequest,
    ) -> Result<types::LimitsResponse, Error> {
        let request = Request::new(
                reqwest::Method::PUT,
                &[
                    "api",
                    "v1",
                    "admin",
                    "organisations",
                    &organisation.to_string(),
                    "limits",
                ],
            )
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Lists the projects of an organisation.
    ///
    /// `GET /api/v1/admin/projects`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_projects(
        &self,
        query: &AdminProjectsQuery,
    ) -> Result<types::ProjectsResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "admin", "projects"],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Creates a project in an organisation.
    ///
    /// `POST /api/v1/admin/projects`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_create_project(
        &self,
        query: &AdminCreateProjectQuery,
        body: &types::CreateProjectRequest,
    ) -> Result<types::Project, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "admin", "projects"],
            )
            .query(query)?
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Deletes a project. Its sessions keep the project's id.
    ///
    /// `DELETE /api/v1/admin/projects/{project_id}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_delete_project(
        &self,
        project_id: &str,
        query: &AdminDeleteProjectQuery,
    ) -> Result<(), Error> {
        let request = Request::new(
                reqwest::Method::DELETE,
                &["api", "v1", "admin", "projects", &project_id.to_string()],
            )
            .query(query)?;
        self.send_for_nothing(request).await
    }
    /// Withdraws all keys that sign the service's tokens and creates another one, which signs at once; for admins of operators. Use this if a signing key may have become known. Every server refuses the earlier tokens within a second. Clients that exchange API keys for tokens obtain new ones by themselves.
    ///
    /// `POST /api/v1/admin/signing_keys/rotate`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_rotate_signing(
        &self,
    ) -> Result<types::RotateSigningResponse, Error> {
        let request = Request::new(
            reqwest::Method::POST,
            &["api", "v1", "admin", "signing_keys", "rotate"],
        );
        self.send_for_json(request).await
    }
    /// Exports as CSV what each request of an organisation used; for admins. The file contains the requests that ended in the period. A period that begins before the time from which they are kept is refused with that time.
    ///
    /// `GET /api/v1/admin/usage.csv`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_usage_csv(
        &self,
        query: &AdminUsageCsvQuery,
    ) -> Result<String, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "admin", "usage.csv"],
            )
            .query(query)?;
        self.send_for_text(request).await
    }
    /// Lists the users of an organisation.
    ///
    /// `GET /api/v1/admin/users`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_users(
        &self,
        query: &AdminUsersQuery,
    ) -> Result<types::UsersResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "admin", "users"],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Creates a user in an organisation.
    ///
    /// `POST /api/v1/admin/users`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_create_user(
        &self,
        query: &AdminCreateUserQuery,
        body: &types::CreateUserRequest,
    ) -> Result<types::User, Error> {
        let request = Request::new(
                reqwest::Method::POST,
                &["api", "v1", "admin", "users"],
            )
            .query(query)?
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Changes a user's role, or disables or enables the user. The keys of a disabled user are refused.
    ///
    /// `PUT /api/v1/admin/users/{email}`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn admin_change_user(
        &self,
        email: &str,
        query: &AdminChangeUserQuery,
        body: &types::ChangeUserRequest,
    ) -> Result<types::User, Error> {
        let request = Request::new(
                reqwest::Method::PUT,
                &["api", "v1", "admin", "users", &email.to_string()],
            )
            .query(query)?
            .json(body)?;
        self.send_for_json(request).await
    }
    /// Returns what was done to an organisation and its objects on one day; for admins. The audit log contains administrative actions, publications, downloads and deletions.
    ///
    /// `GET /api/v1/audit`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn audit(
        &self,
        query: &AuditQuery,
    ) -> Result<types::AuditResponse, Error> {
        let request = Request::new(reqwest::Method::GET, &["api", "v1", "audit"])
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Returns the checkpoints that an organisation stores now, by project and user; for admins.
    ///
    /// `GET /api/v1/billing/usage/checkpoints/current`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn billing_storage(
        &self,
        query: &BillingStorageQuery,
    ) -> Result<types::StorageResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "billing", "usage", "checkpoints", "current"],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
    /// Returns what an organisation used, by hour, session and kind; for admins. Tokens count in the hour in which their request ended. Saved checkpoints and storage count too. The service knows no prices.
    ///
    /// `GET /api/v1/billing/usage/events`
    ///
    /// # Errors
    ///
    /// [`Error::Api`] when the server refuses the request; others when it does not answer.
    pub async fn billing_usage(
        &self,
        query: &BillingUsageQuery,
    ) -> Result<types::UsageResponse, Error> {
        let request = Request::new(
                reqwest::Method::GET,
                &["api", "v1", "billing", "usage", "events"],
            )
            .query(query)?;
        self.send_for_json(request).await
    }
}
/// What `admin_keys` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminKeysQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_create_key` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminCreateKeyQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_revoke_key` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminRevokeKeyQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_projects` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminProjectsQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_create_project` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminCreateProjectQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_delete_project` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminDeleteProjectQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_usage_csv` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminUsageCsvQuery {
    /// Start of the period, in RFC 3339: the start of an hour.
    pub starting_on: String,
    /// End of the period, in RFC 3339: the start of an hour, at most 14 days after `starting_on`.
    pub ending_before: String,
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_users` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminUsersQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_create_user` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminCreateUserQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_change_user` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminChangeUserQuery {
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `audit` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AuditQuery {
    /// Events to return: `all` (the default), `checkpoints`, `projects`, `teams` or `organizations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Day in UTC, as `YYYY-MM-DD`; today by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `billing_storage` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct BillingStorageQuery {
    /// Returns only checkpoints of this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `billing_usage` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct BillingUsageQuery {
    /// Start of the period, in RFC 3339: the start of an hour.
    pub starting_on: String,
    /// End of the period, in RFC 3339: the start of an hour, at most 14 days after `starting_on`.
    pub ending_before: String,
    /// Name of the organisation; the caller's own by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}

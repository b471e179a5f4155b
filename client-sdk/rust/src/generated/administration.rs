// Generated from openapi/openapi.json by `make sdk`; not for editing.

//! Operations of the group `administration`.

use crate::api::{Api, Request};
use crate::error::Error;
#[allow(unused_imports, reason = "not every group has bodies")]
use super::types;
impl Api {
    /// The API keys of an organisation, those that are not accepted any more included.
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
    /// Creates an API key. The answer alone has it: what is stored is its SHA-256.
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
    /// The organisations that the caller manages.
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
    /// Changes what people call an organisation, or disables or enables it. What is absent stays. While it is disabled, its keys and tokens get 401, on every server within a second; its sessions expire, which cancels what waits and all samples, and its objects stay. Admins of operators alone disable and enable, and not the organisation that they call from.
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
    /// The weight and the quotas of an organisation, and where each is set.
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
    /// Sets and unsets the weight and the quotas of an organisation; for admins of operators. What is absent stays, and `null` unsets. Every server enforces them within a second; what was accepted or started before is not taken back. A limit that the configuration file sets can't be changed.
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
    /// The projects of an organisation.
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
    /// Creates a project.
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
    /// Deletes a project. Sessions keep its id.
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
    /// Withdraws all keys that sign the service's tokens, and makes another one, which signs at once; for admins of operators, when one may have become known. Every server refuses the tokens that were made before within a second, and clients that exchange keys for tokens make new ones by themselves.
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
    /// What each request of an organisation used that ended in a period, as CSV. For admins.
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
    /// The users of an organisation.
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
    /// Creates a user.
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
    /// Gives a user another role, or refuses the user's keys or accepts them again.
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
    /// What was done to an organisation and its objects on one day: administrative acts, publications, downloads and deletions. For admins.
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
    /// The checkpoints that an organisation has now, by project and user. For admins.
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
    /// What an organisation used, by hour, session and kind: tokens of the requests that ended in the hour, checkpoints that were saved, and storage. For admins. There are no prices.
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
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_create_key` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminCreateKeyQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_revoke_key` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminRevokeKeyQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_projects` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminProjectsQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_create_project` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminCreateProjectQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_delete_project` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminDeleteProjectQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_usage_csv` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminUsageCsvQuery {
    /// RFC 3339, at the start of an hour.
    pub starting_on: String,
    /// RFC 3339, at the start of an hour, at most 14 days later.
    pub ending_before: String,
    /// The organisation; the caller's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_users` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminUsersQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_create_user` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminCreateUserQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `admin_change_user` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AdminChangeUserQuery {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `audit` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct AuditQuery {
    /// `all` (when absent), `checkpoints`, `projects`, `teams` or `organizations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// `YYYY-MM-DD`, from midnight to midnight UTC; today when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The organisation; the caller's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `billing_storage` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct BillingStorageQuery {
    /// Of one project alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The organisation; the caller's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}
/// What `billing_usage` takes in the query.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct BillingUsageQuery {
    /// RFC 3339, at the start of an hour.
    pub starting_on: String,
    /// RFC 3339, at the start of an hour, at most 14 days later.
    pub ending_before: String,
    /// The organisation; the caller's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
}

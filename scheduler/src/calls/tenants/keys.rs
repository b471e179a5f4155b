//! Calls about API keys.

use serde_json::json;
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, check_text, entry};
use crate::store::db::{Conn, RowScope};
use crate::store::room::{self, Bounded};
use crate::store::{api_keys, organisations};
use crate::{ApiKey, AuditCategory, Error, FoundKey, NewApiKey, NewAuditEntry, Role, Scope};

impl Directory {
    /// Returns the key with this SHA-256, whether or not it is accepted.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn key(&self, digest: &[u8; 32]) -> Result<Option<FoundKey>, Error> {
        api_keys::key_by_digest(&mut self.system_reader().await?, digest).await
    }

    /// Returns the key with this id, whether or not it is accepted.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn key_by_id(&self, id: i64) -> Result<Option<FoundKey>, Error> {
        api_keys::key_by_id(&mut self.system_reader().await?, id).await
    }

    /// Returns whether any key was ever created.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn has_keys(&self) -> Result<bool, Error> {
        api_keys::has_api_keys(&mut self.system_reader().await?).await
    }

    /// Returns the keys of an organisation, oldest first, including those that are no longer accepted.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown organisation.
    pub async fn keys(&self, organisation: &TenantId) -> Result<Vec<ApiKey>, Error> {
        let mut conn = self.reader_of(organisation).await?;
        organisations::ensure_organisation(&mut conn, organisation).await?;
        api_keys::api_keys(&mut conn, organisation).await
    }

    /// Creates an API key.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown organisation or user; [`Error::Invalid`] for a key that could not be used.
    pub async fn create_key(&self, organisation: TenantId, new: NewApiKey) -> Result<ApiKey, Error> {
        check_text("name", &new.name, false)?;
        check_text("note", &new.note, true)?;
        self.act(CreateKey { organisation, new }).await
    }

    /// Revokes a key: every process refuses it from now on.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organisation has no such unrevoked key.
    pub async fn revoke_key(&self, organisation: TenantId, id: i64) -> Result<(), Error> {
        self.act(RevokeKey { organisation, id }).await.map(drop)
    }
}

struct CreateKey {
    organisation: TenantId,
    new: NewApiKey,
}

impl Act for CreateKey {
    type Output = ApiKey;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<ApiKey, Error> {
        let Self { organisation, new } = self;
        organisations::ensure_organisation(conn, organisation).await?;
        room::ensure_room(conn, Bounded::Keys, organisation.as_str()).await?;
        if new.expires_at.is_some_and(|expiry| expiry <= stage.now) {
            return Err(Error::Invalid("expires_at: lies in the past".to_owned()));
        }
        let user = match &new.user {
            Some(email) => {
                let found = organisations::users(conn, organisation, Some(email)).await?.into_iter().next();
                Some(found.ok_or_else(|| Error::not_found("user", email))?)
            }
            None => None,
        };
        let role = new.role.or(user.as_ref().map(|user| user.role)).unwrap_or(Role::Member);
        if let Some(scope) = new.scopes.iter().flatten().find(|scope| !role.allows(**scope)) {
            let (scope, role) = (scope.as_str(), role.as_str());
            return Err(Error::Invalid(format!("scopes: the role {role} does not allow {scope:?}")));
        }
        if !api_keys::insert_api_key(conn, organisation, new, role, user.as_ref(), stage.now).await? {
            return Err(Error::Invalid("key: a key with this id or text already exists".to_owned()));
        }
        let NewApiKey { id, user, name, note, hint, scopes, expires_at, .. } = new.clone();
        let organisation = organisation.clone();
        let created_at = stage.now;
        Ok(ApiKey { id, organisation, user, name, note, hint, role, scopes, created_at, expires_at, revoked_at: None })
    }

    fn entry(&self, key: &ApiKey) -> Option<NewAuditEntry> {
        let scopes =
            key.scopes.as_ref().map(|scopes| scopes.iter().map(|scope| Scope::as_str(*scope)).collect::<Vec<_>>());
        let details = [
            ("name", json!(key.name)),
            ("user", json!(key.user)),
            ("role", json!(key.role.as_str())),
            ("scopes", json!(scopes)),
        ];
        Some(entry(&self.organisation, AuditCategory::Teams, "key_create", key.id, details))
    }
}

struct RevokeKey {
    organisation: TenantId,
    id: i64,
}

impl Act for RevokeKey {
    /// Name of the key.
    type Output = String;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<String, Error> {
        let revoked = api_keys::revoke_api_key(conn, &self.organisation, self.id, stage.now).await?;
        revoked.ok_or_else(|| Error::not_found("key", self.id))
    }

    fn entry(&self, name: &String) -> Option<NewAuditEntry> {
        Some(entry(&self.organisation, AuditCategory::Teams, "key_revoke", self.id, [("name", json!(name))]))
    }
}

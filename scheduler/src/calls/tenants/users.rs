//! Calls about the users of an organisation.

use serde_json::{Value, json};
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, check_text, entry};
use crate::store::db::{Conn, RowScope};
use crate::store::organisations;
use crate::store::room::{self, Bounded};
use crate::{AuditCategory, Error, Membership, NewAuditEntry, NewUser, Role, User};

impl Directory {
    /// Returns the users of an organisation, by email.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown organisation.
    pub async fn users(&self, organisation: &TenantId) -> Result<Vec<User>, Error> {
        let mut conn = self.reader_of(organisation).await?;
        organisations::ensure_organisation(&mut conn, organisation).await?;
        organisations::users(&mut conn, organisation, None).await
    }

    /// Returns the facts about a member of an organisation, with the user of this email if one is given; `None` for an
    /// unknown organisation.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn membership(&self, organisation: &TenantId, email: Option<&str>) -> Result<Option<Membership>, Error> {
        organisations::membership(&mut self.reader_of(organisation).await?, organisation, email).await
    }

    /// Creates a user.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the email is invalid or already used in the organisation; [`Error::NotFound`] for an
    /// unknown organisation.
    pub async fn create_user(&self, organisation: TenantId, new: NewUser) -> Result<User, Error> {
        check_text("email", &new.email, false)?;
        check_text("name", &new.name, true)?;
        let is_email = new.email.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
        if !is_email || new.email.contains(char::is_whitespace) {
            return Err(Error::Invalid(format!("email: {:?} is not an email address", new.email)));
        }
        self.act(CreateUser { organisation, new }).await
    }

    /// Changes a user's role, or refuses or accepts the user's keys; `None` keeps the present value.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown user.
    pub async fn change_user(
        &self,
        organisation: TenantId,
        email: String,
        role: Option<Role>,
        disabled: Option<bool>,
    ) -> Result<User, Error> {
        self.act(ChangeUser { organisation, email, role, disabled }).await
    }
}

struct CreateUser {
    organisation: TenantId,
    new: NewUser,
}

impl Act for CreateUser {
    type Output = User;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<User, Error> {
        let Self { organisation, new } = self;
        organisations::ensure_organisation(conn, organisation).await?;
        room::ensure_room(conn, Bounded::Users, organisation.as_str()).await?;
        let id = stage.new_id.hyphenated().to_string();
        if !organisations::insert_user(conn, organisation, &id, new, stage.now).await? {
            return Err(Error::Invalid(format!("email: the user {:?} already exists", new.email)));
        }
        let NewUser { email, name, role } = new.clone();
        Ok(User { id, email, name, role, created_at: stage.now, disabled_at: None })
    }

    fn entry(&self, _: &User) -> Option<NewAuditEntry> {
        Some(entry(
            &self.organisation,
            AuditCategory::Teams,
            "user_create",
            &self.new.email,
            [("role", Value::from(self.new.role.as_str()))],
        ))
    }
}

struct ChangeUser {
    organisation: TenantId,
    email: String,
    role: Option<Role>,
    disabled: Option<bool>,
}

impl Act for ChangeUser {
    type Output = User;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<User, Error> {
        let Self { organisation, email, role, .. } = self;
        let disabled_at = self.disabled.map(|disabled| disabled.then_some(stage.now));
        organisations::update_user(conn, organisation, email, *role, disabled_at).await?;
        let found = organisations::users(conn, organisation, Some(email)).await?;
        found.into_iter().next().ok_or_else(|| Error::not_found("user", email))
    }

    fn entry(&self, _: &User) -> Option<NewAuditEntry> {
        let details = [("role", json!(self.role.map(Role::as_str))), ("disabled", json!(self.disabled))];
        Some(entry(&self.organisation, AuditCategory::Teams, "user_change", &self.email, details))
    }
}

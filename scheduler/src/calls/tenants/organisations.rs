//! Calls that create and change organisations.

use serde_json::{Value, json};
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, check_text, entry};
use crate::store::db::{Conn, RowScope};
use crate::store::organisations;
use crate::{AuditCategory, Error, NewAuditEntry, Organisation};

impl Directory {
    /// Returns all organisations, by name.
    ///
    /// # Errors
    /// Fails if the store can't be read.
    pub async fn organisations(&self) -> Result<Vec<Organisation>, Error> {
        organisations::organisations(&mut self.system_reader().await?, None).await
    }

    /// Creates an organisation. The admins of an `operator` manage all organisations.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is taken.
    pub async fn create_organisation(&self, name: TenantId, operator: bool) -> Result<Organisation, Error> {
        check_text("name", name.as_str(), false)?;
        self.act(CreateOrganisation { name, operator }).await
    }

    /// Changes an organisation's display name, or disables or enables it; `None` keeps the present value. While it is
    /// disabled, all processes refuse its keys and tokens within a second. Its sessions end as if their heartbeats had
    /// stopped. Its objects stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown name; [`Error::Invalid`] for an invalid display name, or if both values are
    /// absent.
    pub async fn change_organisation(
        &self,
        name: TenantId,
        display_name: Option<String>,
        disabled: Option<bool>,
    ) -> Result<Organisation, Error> {
        if let Some(display_name) = &display_name {
            check_text("display_name", display_name, true)?;
        }
        if display_name.is_none() && disabled.is_none() {
            return Err(Error::Invalid("neither display_name nor disabled is given".to_owned()));
        }
        self.act(ChangeOrganisation { name, display_name, disabled }).await
    }

    /// Creates those organisations that do not exist yet.
    ///
    /// # Errors
    /// Fails if the store can't be written.
    pub async fn seed_organisations(&self, names: Vec<(TenantId, bool)>) -> Result<(), Error> {
        let known = self.organisations().await?;
        for (name, operator) in names {
            if !known.iter().any(|organisation| organisation.name == name) {
                self.act(SeedOrganisation { name, operator }).await?;
            }
        }
        Ok(())
    }
}

struct CreateOrganisation {
    name: TenantId,
    operator: bool,
}

impl Act for CreateOrganisation {
    type Output = Organisation;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.name)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<Organisation, Error> {
        if !organisations::insert_organisation(conn, &self.name, self.operator, stage.now).await? {
            return Err(Error::Invalid(format!("name: the organisation {:?} already exists", self.name.as_str())));
        }
        Ok(Organisation {
            name: self.name.clone(),
            display_name: String::new(),
            operator: self.operator,
            created_at: stage.now,
            disabled_at: None,
        })
    }

    fn entry(&self, _: &Organisation) -> Option<NewAuditEntry> {
        Some(created(&self.name, self.operator))
    }
}

struct ChangeOrganisation {
    name: TenantId,
    display_name: Option<String>,
    disabled: Option<bool>,
}

impl Act for ChangeOrganisation {
    type Output = Organisation;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.name)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<Organisation, Error> {
        let Self { name, display_name, disabled } = self;
        organisations::update_organisation(conn, name, display_name.as_deref(), *disabled, stage.now).await?;
        let found = organisations::organisations(conn, Some(name)).await?;
        found.into_iter().next().ok_or_else(|| Error::not_found("organisation", name))
    }

    fn entry(&self, _: &Organisation) -> Option<NewAuditEntry> {
        let details = [("display_name", json!(self.display_name)), ("disabled", json!(self.disabled))];
        Some(entry(&self.name, AuditCategory::Organizations, "organization_change", &self.name, details))
    }
}

struct SeedOrganisation {
    name: TenantId,
    operator: bool,
}

impl Act for SeedOrganisation {
    type Output = bool;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.name)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<bool, Error> {
        // Another process may seed the same.
        organisations::insert_organisation(conn, &self.name, self.operator, stage.now).await
    }

    fn entry(&self, is_new: &bool) -> Option<NewAuditEntry> {
        is_new.then(|| created(&self.name, self.operator))
    }
}

fn created(name: &TenantId, operator: bool) -> NewAuditEntry {
    entry(name, AuditCategory::Organizations, "organization_create", name, [("operator", Value::from(operator))])
}

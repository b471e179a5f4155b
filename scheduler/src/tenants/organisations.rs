//! Organisations.

use serde_json::Value;
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, check_text, entry};
use crate::store::db::Conn;
use crate::store::organisations;
use crate::{AuditCategory, Error, NewAuditEntry, Organisation};

impl Directory {
    /// All organisations, by name.
    ///
    /// # Errors
    /// When the store can't be read.
    pub async fn organisations(&self) -> Result<Vec<Organisation>, Error> {
        organisations::organisations(&mut self.reader().await?).await
    }

    /// Creates an organisation. The admins of an `operator` manage all organisations.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is one of this name.
    pub async fn create_organisation(&self, name: TenantId, operator: bool) -> Result<Organisation, Error> {
        check_text("name", name.as_str(), false)?;
        self.act(CreateOrganisation { name, operator }).await
    }

    /// Creates the organisations that there are not yet.
    ///
    /// # Errors
    /// When the store can't be written.
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

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<Organisation, Error> {
        if !organisations::insert_organisation(conn, &self.name, self.operator, stage.now).await? {
            return Err(Error::Invalid(format!("name: there is an organisation {:?}", self.name.as_str())));
        }
        Ok(Organisation { name: self.name.clone(), operator: self.operator, created_at: stage.now })
    }

    fn entry(&self, _: &Organisation) -> Option<NewAuditEntry> {
        Some(created(&self.name, self.operator))
    }
}

struct SeedOrganisation {
    name: TenantId,
    operator: bool,
}

impl Act for SeedOrganisation {
    type Output = bool;

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<bool, Error> {
        // Another process may seed the same.
        organisations::insert_organisation(conn, &self.name, self.operator, stage.now).await
    }

    fn entry(&self, is_new: &bool) -> Option<NewAuditEntry> {
        is_new.then(|| created(&self.name, self.operator))
    }
}

fn created(name: &TenantId, operator: bool) -> NewAuditEntry {
    entry(name, (AuditCategory::Organizations, "organization_create"), name, [("operator", Value::from(operator))])
}

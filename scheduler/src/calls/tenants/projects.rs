//! Calls about the projects of an organisation.

use serde_json::Value;
use trainyard_protocol::TenantId;

use super::{Act, Directory, Stage, check_text, entry};
use crate::store::db::{Conn, RowScope};
use crate::store::organisations;
use crate::store::room::{self, Bounded};
use crate::{AuditCategory, Error, NewAuditEntry, Project};

impl Directory {
    /// Returns the projects of an organisation, by id.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown organisation.
    pub async fn projects(&self, organisation: &TenantId) -> Result<Vec<Project>, Error> {
        let mut conn = self.reader_of(organisation).await?;
        organisations::ensure_organisation(&mut conn, organisation).await?;
        organisations::projects(&mut conn, organisation).await
    }

    /// Creates a project.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the id is taken; [`Error::NotFound`] for an unknown organisation.
    pub async fn create_project(&self, organisation: TenantId, id: String, name: String) -> Result<Project, Error> {
        check_text("id", &id, false)?;
        check_text("name", &name, true)?;
        self.act(CreateProject { organisation, id, name }).await
    }

    /// Deletes a project. Sessions keep its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown project.
    pub async fn delete_project(&self, organisation: TenantId, id: String) -> Result<(), Error> {
        self.act(DeleteProject { organisation, id }).await
    }
}

struct CreateProject {
    organisation: TenantId,
    id: String,
    name: String,
}

impl Act for CreateProject {
    type Output = Project;

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, stage: &Stage) -> Result<Project, Error> {
        let Self { organisation, id, name } = self;
        organisations::ensure_organisation(conn, organisation).await?;
        room::ensure_room(conn, Bounded::Projects, organisation.as_str()).await?;
        if !organisations::insert_project(conn, organisation, id, name, stage.now).await? {
            return Err(Error::Invalid(format!("id: the project {id:?} already exists")));
        }
        Ok(Project { id: id.clone(), name: name.clone(), created_at: stage.now })
    }

    fn entry(&self, _: &Project) -> Option<NewAuditEntry> {
        Some(entry(
            &self.organisation,
            AuditCategory::Projects,
            "project_create",
            &self.id,
            [("name", Value::from(self.name.as_str()))],
        ))
    }
}

struct DeleteProject {
    organisation: TenantId,
    id: String,
}

impl Act for DeleteProject {
    type Output = ();

    fn scope(&self) -> RowScope {
        RowScope::of(&self.organisation)
    }

    async fn make(&self, conn: &mut Conn, _: &Stage) -> Result<(), Error> {
        let deleted = organisations::delete_project(conn, &self.organisation, &self.id).await?;
        if deleted { Ok(()) } else { Err(Error::not_found("project", &self.id)) }
    }

    fn entry(&self, (): &()) -> Option<NewAuditEntry> {
        Some(entry(&self.organisation, AuditCategory::Projects, "project_delete", &self.id, []))
    }
}

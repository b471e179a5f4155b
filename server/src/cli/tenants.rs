//! `trainyard tenants`: organisations with their users and projects.

use std::error::Error;

use trainyard_protocol::TenantId;
use trainyard_scheduler::NewUser;

use super::directory::{line, role, time, with};
use crate::config::TenantsCommand;

/// Reads or changes the store.
pub(super) fn tenants(command: TenantsCommand) -> Result<(), Box<dyn Error>> {
    match command {
        TenantsCommand::List { store } => with(store, async |directory| {
            for found in directory.organisations().await? {
                let kind = if found.operator { "operator" } else { "" };
                line([found.name.as_str(), &time(Some(found.created_at)), kind])?;
            }
            Ok(())
        }),
        TenantsCommand::Create { name, operator, store } => with(store, async |directory| {
            let created = directory.create_organisation(TenantId::new(name), operator).await?;
            Ok(line([created.name.as_str()])?)
        }),
        TenantsCommand::Users { name, store } => with(store, async |directory| {
            for user in directory.users(&TenantId::new(name)).await? {
                let disabled = user.disabled_at.map_or_else(String::new, |at| format!("disabled {}", time(Some(at))));
                line([&user.email, user.role.as_str(), &time(Some(user.created_at)), &user.name, &disabled])?;
            }
            Ok(())
        }),
        TenantsCommand::AddUser { name, email, full_name, role: given, store } => {
            let new = NewUser { email, name: full_name, role: role(&given)? };
            with(store, async |directory| {
                let created = directory.create_user(TenantId::new(name), new).await?;
                Ok(line([&created.email, created.role.as_str()])?)
            })
        }
        TenantsCommand::ChangeUser { name, email, role: given, disable, enable, store } => {
            let given = given.as_deref().map(role).transpose()?;
            let disabled = (disable || enable).then_some(disable);
            with(store, async |directory| {
                let changed = directory.change_user(TenantId::new(name), email, given, disabled).await?;
                Ok(line([&changed.email, changed.role.as_str(), &time(changed.disabled_at)])?)
            })
        }
        TenantsCommand::Projects { name, store } => with(store, async |directory| {
            for project in directory.projects(&TenantId::new(name)).await? {
                line([&project.id, &time(Some(project.created_at)), &project.name])?;
            }
            Ok(())
        }),
        TenantsCommand::AddProject { name, project, full_name, store } => with(store, async |directory| {
            let created = directory.create_project(TenantId::new(name), project, full_name).await?;
            Ok(line([&created.id])?)
        }),
        TenantsCommand::RemoveProject { name, project, store } => {
            with(store, async |directory| Ok(directory.delete_project(TenantId::new(name), project).await?))
        }
    }
}

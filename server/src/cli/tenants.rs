//! `trainyard tenants`: organisations with their users and projects.

use std::error::Error;
use std::num::NonZeroU64;

use trainyard_protocol::TenantId;
use trainyard_scheduler::{Limit, LimitChanges, NewUser, Timestamp};

use super::directory::{line, role, time, with};
use super::table;
use crate::config::{Stores, TenantsCommand, size};

/// Lists or changes organisations in the store.
pub(super) fn tenants(command: TenantsCommand) -> Result<(), Box<dyn Error>> {
    match command {
        TenantsCommand::List { store } => with(store, async |directory| {
            let rows = directory.organisations().await?.into_iter().map(|found| {
                let kind = if found.operator { "operator" } else { "" };
                [
                    found.name.as_str().to_owned(),
                    time(Some(found.created_at)),
                    kind.to_owned(),
                    found.display_name,
                    disabled(found.disabled_at),
                ]
            });
            Ok(table::print(["NAME", "CREATED", "KIND", "DISPLAY NAME", "STATE"], rows)?)
        }),
        TenantsCommand::Create { name, operator, store } => with(store, async |directory| {
            let created = directory.create_organisation(TenantId::new(name), operator).await?;
            Ok(line([created.name.as_str()])?)
        }),
        TenantsCommand::Change { name, display_name, disable, enable, store } => {
            let disabled = (disable || enable).then_some(disable);
            with(store, async |directory| {
                let changed = directory.change_organisation(TenantId::new(name), display_name, disabled).await?;
                Ok(line([changed.name.as_str(), &changed.display_name, &time(changed.disabled_at)])?)
            })
        }
        TenantsCommand::Limits { name, store } => {
            let file = Stores::policies(&store)?;
            with(store, async |directory| {
                let tenant = TenantId::new(name);
                let stored = directory.limits(&tenant).await?;
                let rows = Limit::ALL.iter().copied().map(|limit| {
                    let seeded = file.seed(&tenant).and_then(|seed| seed.get(limit)).map(|value| (value, "file"));
                    let found = seeded.or_else(|| stored.get(limit).map(|value| (value, "store")));
                    let (value, origin) =
                        found.map_or_else(|| ("-".to_owned(), ""), |(value, origin)| (shown(limit, value), origin));
                    [limit.as_str().to_owned(), value, origin.to_owned()]
                });
                Ok(table::print(["LIMIT", "VALUE", "SET BY"], rows)?)
            })
        }
        TenantsCommand::SetLimits { name, limits, store } => {
            let changes = limits.iter().map(|text| assignment(text)).collect::<Result<LimitChanges, _>>()?;
            with(store, async |directory| {
                directory.change_limits(TenantId::new(name), changes).await?;
                Ok(())
            })
        }
        TenantsCommand::UnsetLimits { name, limits, store } => {
            let changes =
                limits.iter().map(|text| Ok((limit(text)?, None))).collect::<Result<LimitChanges, String>>()?;
            with(store, async |directory| {
                directory.change_limits(TenantId::new(name), changes).await?;
                Ok(())
            })
        }
        TenantsCommand::Users { name, store } => with(store, async |directory| {
            let rows = directory.users(&TenantId::new(name)).await?.into_iter().map(|user| {
                let role = user.role.as_str().to_owned();
                [user.email, role, time(Some(user.created_at)), user.name, disabled(user.disabled_at)]
            });
            Ok(table::print(["EMAIL", "ROLE", "CREATED", "NAME", "STATE"], rows)?)
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
            let projects = directory.projects(&TenantId::new(name)).await?;
            let rows = projects.into_iter().map(|project| [project.id, time(Some(project.created_at)), project.name]);
            Ok(table::print(["PROJECT", "CREATED", "NAME"], rows)?)
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

/// Formats the state of an organisation or a user.
fn disabled(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| format!("disabled {}", time(Some(at))))
}

/// Formats the value of a limit.
fn shown(limit: Limit, value: NonZeroU64) -> String {
    if is_size(limit) { size::exact(value.get()) } else { value.to_string() }
}

/// Returns whether the values of a limit are bytes.
fn is_size(limit: Limit) -> bool {
    matches!(limit, Limit::MaxStorageBytes | Limit::MaxQueuedBytes)
}

fn limit(name: &str) -> Result<Limit, String> {
    let names = || Limit::ALL.iter().map(|limit| limit.as_str()).collect::<Vec<_>>().join(", ");
    Limit::from_text(name).ok_or_else(|| format!("unknown limit {name:?}: expected one of {}", names()))
}

/// Parses a limit and its value.
fn assignment(text: &str) -> Result<(Limit, Option<NonZeroU64>), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?}: expected LIMIT=VALUE"))?;
    let limit = limit(name)?;
    let given: u64 = match is_size(limit) {
        true => size::bytes(value).map_err(|error| format!("{name}: {error}"))?,
        false => value
            .replace('_', "")
            .parse()
            .map_err(|_| format!("{name}: must be a number from 1 to {}, not {value:?}", limit.largest()))?,
    };
    Ok((limit, Some(limit.value(given).map_err(|error| error.to_string())?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_assigned_by_its_name() {
        assert_eq!(assignment("max_runs=1_6"), Ok((Limit::MaxRuns, NonZeroU64::new(16))));
        let size = NonZeroU64::new(50 << 30);
        assert_eq!(assignment("max_storage_bytes=50GiB"), Ok((Limit::MaxStorageBytes, size)));
        assert_eq!(size.map(|size| shown(Limit::MaxStorageBytes, size)).as_deref(), Some("50 GiB"));
        assert_eq!(size.map(|tokens| shown(Limit::MaxQueuedTokens, tokens)).as_deref(), Some("53687091200"));
        for (text, message) in [
            ("max_runs", "\"max_runs\": expected LIMIT=VALUE"),
            ("runs=1", "unknown limit \"runs\": expected one of weight, max_runs, max_queued_tokens"),
            ("max_runs=", "max_runs: must be a number from 1 to 9223372036854775807, not \"\""),
            ("max_runs=-1", "max_runs: must be a number from 1 to 9223372036854775807, not \"-1\""),
            ("weight=0", "weight: must be from 1 to 1000, not 0"),
            ("max_queued_bytes=5GB", "max_queued_bytes: invalid size \"5GB\": expected a number of bytes"),
            ("max_runs=1GiB", "max_runs: must be a number from 1 to 9223372036854775807, not \"1GiB\""),
        ] {
            let refused = assignment(text).unwrap_err();
            assert!(refused.starts_with(message), "{refused}");
        }
    }
}

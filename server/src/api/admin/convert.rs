//! Converts between the values of the store and those of the API.

use trainyard_scheduler::{self as scheduler, Role, Scope, Timestamp};
use trainyard_wire::admin::{ApiKey, Organisation, Project, User};
use trainyard_wire::timestamp::rfc3339;

use crate::error::ApiError;

/// Parses the name of a role.
pub(super) fn role(text: &str) -> Result<Role, ApiError> {
    Role::from_text(text)
        .ok_or_else(|| ApiError::invalid(format!("role: expected admin, member or read-only, found {text:?}")))
}

/// Parses the scopes of a key.
pub(super) fn scopes(names: &[String]) -> Result<Vec<Scope>, ApiError> {
    let unknown = |name: &str| {
        let all: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        ApiError::invalid(format!("scopes: expected any of {}, found {name:?}", all.join(", ")))
    };
    names.iter().map(|name| Scope::from_text(name).ok_or_else(|| unknown(name))).collect()
}

fn time(at: Timestamp) -> String {
    rfc3339(at.as_millis())
}

pub(super) fn organisation(found: scheduler::Organisation) -> Organisation {
    Organisation {
        name: found.name.to_string(),
        display_name: found.display_name,
        operator: found.operator,
        created_at: time(found.created_at),
        disabled_at: found.disabled_at.map(time),
    }
}

pub(super) fn project(found: scheduler::Project) -> Project {
    Project { id: found.id, name: found.name, created_at: time(found.created_at) }
}

pub(super) fn user(found: scheduler::User) -> User {
    User {
        id: found.id,
        email: found.email,
        name: found.name,
        role: found.role.as_str().to_owned(),
        created_at: time(found.created_at),
        disabled_at: found.disabled_at.map(time),
    }
}

pub(super) fn key(found: scheduler::ApiKey) -> ApiKey {
    let names = |scopes: Vec<Scope>| scopes.into_iter().map(|scope| scope.as_str().to_owned()).collect();
    ApiKey {
        id: found.id,
        name: found.name,
        note: found.note,
        hint: found.hint,
        user: found.user,
        role: found.role.as_str().to_owned(),
        scopes: found.scopes.map(names),
        created_at: time(found.created_at),
        expires_at: found.expires_at.map(time),
        revoked_at: found.revoked_at.map(time),
    }
}

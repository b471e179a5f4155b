//! `trainyard keys`: API keys of an organisation, and the keys that sign tokens.

use std::error::Error;
use std::time::Duration;

use trainyard_protocol::TenantId;
use trainyard_scheduler::{ApiKey, Scope};

use super::directory::{line, role, scope, time, with};
use super::table;
use crate::auth::{KeyRequest, replace_signing_keys};
use crate::config::KeysCommand;

/// The columns of the list of keys.
const HEADER: [&str; 8] = ["ID", "KEY", "ROLE", "SCOPES", "USER", "CREATED", "NAME", "STATE"];

const DAY: Duration = Duration::from_secs(86_400);

/// Lists or changes keys in the store.
pub(super) fn keys(command: KeysCommand) -> Result<(), Box<dyn Error>> {
    match command {
        KeysCommand::List { organisation, store } => with(store, async |directory| {
            let keys = directory.keys(&TenantId::new(organisation)).await?;
            Ok(table::print(HEADER, keys.iter().map(row))?)
        }),
        KeysCommand::Create { organisation, name, note, user, role: given, scopes, expires_in_days, store } => {
            let scopes: Vec<Scope> = scopes.iter().map(|name| scope(name)).collect::<Result<_, _>>()?;
            let scopes = (!scopes.is_empty()).then_some(scopes);
            let request = KeyRequest {
                user,
                name,
                note,
                role: given.as_deref().map(role).transpose()?,
                scopes,
                expires_at: None,
            };
            let (key, mut new) = request.make()?;
            with(store, async |directory| {
                if let Some(days) = expires_in_days {
                    new.expires_at = Some(directory.now().await?.plus(DAY.saturating_mul(days)));
                }
                let created = directory.create_key(TenantId::new(organisation), new).await?;
                Ok(line([&key, &created.id.to_string()])?)
            })
        }
        KeysCommand::RotateSigning { store } => with(store, async |directory| {
            let withdrawn = replace_signing_keys(&directory, directory.now().await?).await?;
            Ok(line(["withdrawn", &withdrawn.to_string()])?)
        }),
        KeysCommand::Revoke { organisation, id, store } => {
            with(store, async |directory| Ok(directory.revoke_key(TenantId::new(organisation), id).await?))
        }
    }
}

fn row(key: &ApiKey) -> [String; 8] {
    let scopes = key.scopes.as_ref().map_or_else(
        || "all scopes of its role".to_owned(),
        |scopes| scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(","),
    );
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", time(Some(at))),
        (None, Some(at)) => format!("expires {}", time(Some(at))),
        (None, None) => String::new(),
    };
    [
        key.id.to_string(),
        key.hint.clone(),
        key.role.as_str().to_owned(),
        scopes,
        key.user.clone().unwrap_or_else(|| "-".to_owned()),
        time(Some(key.created_at)),
        key.name.clone(),
        state,
    ]
}

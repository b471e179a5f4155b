//! `trainyard keys`: API keys of an organisation, and the keys that sign tokens.

use std::error::Error;
use std::time::Duration;

use trainyard_protocol::TenantId;
use trainyard_scheduler::{ApiKey, Clock, Scope, SystemClock};

use super::directory::{line, role, scope, time, with};
use crate::auth::{KeyRequest, replace_signing_keys};
use crate::config::KeysCommand;

const DAY: Duration = Duration::from_secs(86_400);

/// Lists or changes keys in the store.
pub(super) fn keys(command: KeysCommand) -> Result<(), Box<dyn Error>> {
    match command {
        KeysCommand::List { organisation, store } => with(store, async |directory| {
            for key in directory.keys(&TenantId::new(organisation)).await? {
                print(&key)?;
            }
            Ok(())
        }),
        KeysCommand::Create { organisation, name, note, user, role: given, scopes, expires_in_days, store } => {
            let scopes: Vec<Scope> = scopes.iter().map(|name| scope(name)).collect::<Result<_, _>>()?;
            let expires_at = expires_in_days.map(|days| SystemClock.now().plus(DAY.saturating_mul(days)));
            let scopes = (!scopes.is_empty()).then_some(scopes);
            let request = KeyRequest { user, name, note, role: role(&given)?, scopes, expires_at };
            let (key, new) = request.make()?;
            with(store, async |directory| {
                let created = directory.create_key(TenantId::new(organisation), new).await?;
                Ok(line([&key, &created.id.to_string()])?)
            })
        }
        KeysCommand::RotateSigning { store } => with(store, async |directory| {
            let withdrawn = replace_signing_keys(&directory, SystemClock.now()).await?;
            Ok(line(["withdrawn", &withdrawn.to_string()])?)
        }),
        KeysCommand::Revoke { organisation, id, store } => {
            with(store, async |directory| Ok(directory.revoke_key(TenantId::new(organisation), id).await?))
        }
    }
}

fn print(key: &ApiKey) -> std::io::Result<()> {
    let scopes = key.scopes.as_ref().map_or_else(
        || "all of its role".to_owned(),
        |scopes| scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(","),
    );
    let state = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", time(Some(at))),
        (None, Some(at)) => format!("expires {}", time(Some(at))),
        (None, None) => String::new(),
    };
    let user = key.user.as_deref().unwrap_or("-");
    line([
        &key.id.to_string(),
        &key.hint,
        key.role.as_str(),
        &scopes,
        user,
        &time(Some(key.created_at)),
        &key.name,
        &state,
    ])
}

//! `trainyard auth`: prints what a server knows about a key.

use std::error::Error;

use reqwest::Method;
use trainyard_wire::auth::{AuthTokenResponse, WhoamiResponse};

use super::client::Api;
use super::directory::line;
use crate::config::AuthCommand;

pub(super) fn auth(command: AuthCommand) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match command {
        AuthCommand::Whoami(flags) => {
            let caller: WhoamiResponse = runtime.block_on(Api::new(flags)?.call(Method::GET, "auth/whoami"))?;
            Ok(print(&caller)?)
        }
        AuthCommand::Token(flags) => {
            let made: AuthTokenResponse = runtime.block_on(Api::new(flags)?.call(Method::POST, "auth/token"))?;
            Ok(line([made.jwt.as_str()])?)
        }
    }
}

fn print(caller: &WhoamiResponse) -> std::io::Result<()> {
    let or_dash = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    let operator = if caller.operator { " (operator)" } else { "" };
    line(["organisation", &format!("{}{operator}", caller.organisation)])?;
    line(["user", &or_dash(caller.user.as_ref().map(|user| user.email.clone()))])?;
    line(["role", &caller.role])?;
    line(["scopes", &or_dash(Some(caller.scopes.join(",")))])?;
    line(["key", &or_dash(caller.key.as_ref().map(|key| format!("{} {:?}", key.id, key.name)))])?;
    line(["expires", &or_dash(caller.expires_at.clone())])
}

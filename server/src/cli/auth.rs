//! `trainyard auth`: prints what a server knows about a key.

use std::error::Error;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trainyard_wire::auth::{AuthTokenResponse, WhoamiResponse};

use super::directory::line;
use crate::auth::API_KEY;
use crate::config::{AuthCommand, ServerFlags};

/// The time limit of the server's answer.
const LIMIT: Duration = Duration::from_secs(30);

pub(super) fn auth(command: AuthCommand) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match command {
        AuthCommand::Whoami(flags) => {
            let caller = runtime.block_on(call::<WhoamiResponse>(flags, Method::GET, "auth/whoami"))?;
            Ok(print(&caller)?)
        }
        AuthCommand::Token(flags) => {
            let made = runtime.block_on(call::<AuthTokenResponse>(flags, Method::POST, "auth/token"))?;
            Ok(line([made.jwt.as_str()])?)
        }
    }
}

async fn call<T: DeserializeOwned>(flags: ServerFlags, method: Method, path: &str) -> Result<T, Box<dyn Error>> {
    // The first one that is installed counts; there is but one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().timeout(LIMIT).build()?;
    let url = format!("{}/api/v1/{path}", flags.url.trim_end_matches('/'));
    let request = client.request(method.clone(), &url).header(API_KEY, flags.api_key);
    let request = match method {
        Method::POST => request.header("content-type", "application/json").body(json!({}).to_string()),
        _ => request,
    };
    let response = request.send().await.map_err(|error| format!("{url}: {error}"))?;
    let status = response.status();
    let body = response.bytes().await.map_err(|error| format!("{url}: {error}"))?;
    if status != StatusCode::OK {
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let detail = body["detail"].as_str().unwrap_or("no reason given");
        return Err(format!("{url}: {status}: {detail}").into());
    }
    serde_json::from_slice(&body)
        .map_err(|error| format!("{url}: expected the answer of a Trainyard server: {error}").into())
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

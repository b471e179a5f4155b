//! Calls of a server's API by commands.

use std::error::Error;
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::auth::API_KEY;
use crate::config::ServerFlags;

/// The time in which the server must begin to answer, and the longest silence within an answer.
const LIMIT: Duration = Duration::from_secs(30);

/// A server, and the key that it is called with.
pub(super) struct Api {
    http: Client,
    flags: ServerFlags,
}

impl Api {
    pub(super) fn new(flags: ServerFlags) -> Result<Self, Box<dyn Error>> {
        // The first one that is installed counts; there is but one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self { http: Client::builder().connect_timeout(LIMIT).read_timeout(LIMIT).build()?, flags })
    }

    /// Calls an endpoint of `/api/v1/`.
    ///
    /// # Errors
    /// A message with the URL, and the reason of the server.
    pub(super) async fn call<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Box<dyn Error>> {
        let url = format!("{}/api/v1/{path}", self.flags.url.trim_end_matches('/'));
        let request = self.http.request(method.clone(), &url).header(API_KEY, self.flags.key());
        let request = match method {
            Method::POST => request.header("content-type", "application/json").body(json!({}).to_string()),
            _ => request,
        };
        let response = request.send().await.map_err(|error| format!("{url}: {}", described(&error)))?;
        let response = self.accepted(&url, response).await?;
        let body = response.bytes().await.map_err(|error| format!("{url}: {}", described(&error)))?;
        serde_json::from_slice(&body)
            .map_err(|error| format!("{url}: expected the answer of a Trainyard server: {error}").into())
    }

    /// Opens a URL that contains its authorisation.
    ///
    /// # Errors
    /// A message with `name`, and the reason of the server. The URL is a secret.
    pub(super) async fn open(&self, name: &str, url: &str) -> Result<Response, Box<dyn Error>> {
        let response = self.http.get(url).send().await;
        let response = response.map_err(|error| format!("{name}: {}", described(&error.without_url())))?;
        self.accepted(name, response).await
    }

    /// Returns a response with the status 200.
    async fn accepted(&self, what: &str, response: Response) -> Result<Response, Box<dyn Error>> {
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap_or_default()).unwrap_or_default();
        Err(self.flags.refusal(what, status.as_u16(), body["detail"].as_str()).into())
    }
}

/// Formats a failure with its causes, of which the last one tells the most.
pub(super) fn described(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(Some(error as &(dyn Error + 'static)), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

//! The server's stream of overviews.

use std::time::Duration;

use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;
use trainyard_wire::overview::Overview;

use crate::auth::API_KEY;
use crate::config::ServerFlags;

/// A server that sends nothing for this long, not even a heartbeat, is unavailable.
const SILENCE: Duration = Duration::from_secs(40);
/// Maximum size of one event, in bytes.
const MOST_BYTES: usize = 4 << 20;

/// A stream of overviews.
pub(super) struct Overviews {
    response: Response,
    /// Bytes received of the incomplete event.
    rest: Vec<u8>,
}

impl Overviews {
    /// Opens the stream of a server.
    ///
    /// # Errors
    ///
    /// A message with the reason why it can't be opened.
    pub(super) async fn open(flags: &ServerFlags) -> Result<Self, String> {
        // The first one that is installed counts; there is but one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = format!("{}/console/data/events?topic=overview", flags.url.trim_end_matches('/'));
        let client = Client::builder().connect_timeout(SILENCE).build().map_err(|error| error.to_string())?;
        let response = client.get(&url).header(API_KEY, flags.key()).send();
        let response = response.await.map_err(|error| format!("{url}: {error}"))?;
        match response.status() {
            StatusCode::OK => Ok(Self { response, rest: Vec::new() }),
            StatusCode::NOT_FOUND => Err(format!("{url}: the server serves no console (--no-console)")),
            status => {
                let body = response.bytes().await.unwrap_or_default();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                Err(flags.refusal(&url, status.as_u16(), body["detail"].as_str()))
            }
        }
    }

    /// Waits for the next overview. Nothing is lost if the future is dropped.
    ///
    /// # Errors
    ///
    /// A message with the reason why the stream ended.
    pub(super) async fn next(&mut self) -> Result<Overview, String> {
        loop {
            while let Some(event) = take_event(&mut self.rest) {
                if let Some(overview) = read(&event)? {
                    return Ok(overview);
                }
            }
            let chunk = timeout(SILENCE, self.response.chunk()).await;
            match chunk
                .map_err(|_| "the server stopped sending events".to_owned())?
                .map_err(|error| error.to_string())?
            {
                Some(chunk) if self.rest.len() + chunk.len() <= MOST_BYTES => self.rest.extend_from_slice(&chunk),
                Some(_) => return Err("the server sent an event that exceeds the size limit".to_owned()),
                None => return Err("the server ended the stream".to_owned()),
            }
        }
    }
}

/// Takes a complete event, which ends with an empty line.
fn take_event(rest: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = rest.windows(2).position(|pair| pair == b"\n\n")?;
    let tail = rest.split_off(end + 2);
    Some(std::mem::replace(rest, tail))
}

/// Reads an overview; `None` for a heartbeat.
fn read(event: &[u8]) -> Result<Option<Overview>, String> {
    let text = std::str::from_utf8(event).map_err(|error| error.to_string())?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    match (field("event"), field("data")) {
        (Some("overview"), Some(data)) => serde_json::from_str(data).map(Some).map_err(|error| error.to_string()),
        (Some("failure"), Some(data)) => Err(data.to_owned()),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn events_are_found_in_pieces_of_any_size() {
        let overview = Overview { version: "1".to_owned(), ..Overview::default() };
        let event = format!("event: overview\ndata: {}\n\n", serde_json::to_string(&overview).unwrap());
        let text = format!(": ping\n\n{event}{event}event: over");
        let (mut rest, mut seen) = (Vec::new(), Vec::new());
        for byte in text.bytes() {
            rest.push(byte);
            while let Some(event) = take_event(&mut rest) {
                seen.push(read(&event).unwrap());
            }
        }
        assert_eq!(seen, [None, Some(overview.clone()), Some(overview)]);
        assert!(read(b"event: failure\ndata: {}\n\n").is_err() && read(b"event: overview\ndata: {\n\n").is_err());
    }
}

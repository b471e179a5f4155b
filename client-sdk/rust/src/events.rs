//! Server-sent events of the OpenAI and Anthropic APIs.

use serde_json::Value;

use crate::api::Api;
use crate::error::Error;
use crate::request::Request;

/// The last event of chats and completions in the OpenAI API.
const END: &str = "[DONE]";

/// Types of the last events of messages and responses.
const LAST: [&str; 3] = ["message_stop", "response.completed", "response.incomplete"];

/// Events of an answer, as they arrive. Dropping the stream cancels the answer.
#[derive(Debug)]
pub struct EventStream {
    response: reqwest::Response,
    place: String,
    decoder: Decoder,
}

impl EventStream {
    /// Sends a request whose answer is a stream.
    pub(crate) async fn open(api: &Api, request: Request) -> Result<Self, Error> {
        let request = request.accept("text/event-stream");
        let response = api.open(&request).await?;
        Ok(Self { response, place: request.place(), decoder: Decoder::default() })
    }

    /// Returns the next chunk of the OpenAI API, or the next event of the Anthropic API; `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`Error::Transport`] or [`Error::Protocol`] when the stream breaks or is malformed.
    pub async fn next(&mut self) -> Result<Option<Value>, Error> {
        loop {
            if let Some(event) = self.decoder.next()? {
                return Ok(Some(event));
            }
            if self.decoder.ended {
                return Ok(None);
            }
            let failed = |source| Error::Transport { place: self.place.clone(), source };
            match self.response.chunk().await.map_err(failed)? {
                Some(bytes) => self.decoder.buffer.extend_from_slice(&bytes),
                None => return Err(Error::Protocol(format!("{}: the stream ended before its last event", self.place))),
            }
        }
    }
}

/// Assembles the bytes of a stream into events.
#[derive(Debug, Default)]
struct Decoder {
    buffer: Vec<u8>,
    data: Vec<String>,
    ended: bool,
}

impl Decoder {
    /// Returns the next complete event of the received bytes.
    fn next(&mut self) -> Result<Option<Value>, Error> {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\n', '\r']);
            if let Some(data) = line.strip_prefix("data:") {
                self.data.push(data.strip_prefix(' ').unwrap_or(data).to_owned());
            } else if line.is_empty() && !self.data.is_empty() {
                let text = std::mem::take(&mut self.data).join("\n");
                if text == END {
                    self.ended = true;
                    return Ok(None);
                }
                return self.event(&text).map(Some);
            }
        }
        Ok(None)
    }

    fn event(&mut self, text: &str) -> Result<Value, Error> {
        let event: Value =
            serde_json::from_str(text).map_err(|error| Error::Protocol(format!("event of a stream: {error}")))?;
        if let Some(refusal) = event.get("error").filter(|refusal| !refusal.is_null()) {
            let message = refusal["message"].as_str().map_or_else(|| refusal.to_string(), str::to_owned);
            return Err(Error::Protocol(format!("stream: {message}")));
        }
        self.ended = event["type"].as_str().is_some_and(|kind| LAST.contains(&kind));
        Ok(event)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::Decoder;

    #[test]
    fn events_are_the_same_however_their_bytes_arrive() {
        let text = ": comment\n\nevent: x\ndata: {\"a\":\ndata: 1}\r\n\r\ndata:{\"é\":2}\n\ndata: [DONE]\n\n";
        for size in 1..text.len() {
            let mut decoder = Decoder::default();
            let mut events = Vec::new();
            for part in text.as_bytes().chunks(size) {
                decoder.buffer.extend_from_slice(part);
                while let Some(event) = decoder.next().unwrap() {
                    events.push(event.to_string());
                }
            }
            assert_eq!(events, ["{\"a\":1}", "{\"é\":2}"]);
            assert!(decoder.ended);
        }
    }

    #[test]
    fn an_error_in_a_stream_is_one() {
        let mut decoder = Decoder::default();
        decoder.buffer.extend_from_slice(b"data: {\"error\": {\"message\": \"busy\"}}\n\n");
        assert_eq!(decoder.next().unwrap_err().to_string(), "stream: busy");
    }
}

//! Requests before they are sent.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::error::Error;

/// Content types of the protocol.
pub(crate) const JSON: &str = "application/json";
pub(crate) const PROTOBUF: &str = "application/x-protobuf";

/// Smallest body that is compressed, in bytes.
const COMPRESSED_FROM: usize = 1024;

/// Level of zstd: the fastest of the usual levels.
const COMPRESSION: i32 = 1;

/// A request that may be sent any number of times: all attempts have the same idempotency key.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) content_type: &'static str,
    pub(crate) compressed: bool,
    pub(crate) accept: &'static str,
    pub(crate) key: String,
    /// Time limit of one attempt.
    pub(crate) timeout: Option<Duration>,
    /// Time limit of all attempts.
    pub(crate) deadline: Option<Instant>,
}

impl Request {
    pub(crate) fn new(method: Method, path: &[&str]) -> Self {
        Self {
            method,
            path: path.iter().map(|segment| (*segment).to_owned()).collect(),
            query: Vec::new(),
            body: None,
            content_type: JSON,
            compressed: false,
            accept: JSON,
            key: Uuid::now_v7().to_string(),
            timeout: None,
            deadline: None,
        }
    }

    /// Makes a POST request of the Tinker API.
    pub(crate) fn post(name: &str) -> Self {
        Self::new(Method::POST, &["api", "v1", name])
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, Error> {
        self.body = Some(serde_json::to_vec(body).map_err(unserializable)?);
        Ok(self)
    }

    pub(crate) fn bytes(mut self, body: Vec<u8>, content_type: &'static str) -> Self {
        self.body = Some(body);
        self.content_type = content_type;
        self
    }

    /// Sets a body in protobuf, compressed unless it is short.
    pub(crate) fn protobuf(mut self, message: &impl prost::Message) -> Result<Self, Error> {
        let mut body = message.encode_to_vec();
        if body.len() >= COMPRESSED_FROM {
            body = zstd::bulk::compress(&body, COMPRESSION).map_err(|error| Error::Value(format!("zstd: {error}")))?;
            self.compressed = true;
        }
        Ok(self.bytes(body, PROTOBUF))
    }

    /// Adds the fields of an object as parameters; absent fields are left out.
    pub(crate) fn query(mut self, parameters: &impl Serialize) -> Result<Self, Error> {
        let Value::Object(fields) = serde_json::to_value(parameters).map_err(unserializable)? else {
            return Err(Error::Value("expected an object as the parameters of a query".into()));
        };
        for (name, value) in fields {
            match value {
                Value::Null => {}
                Value::String(text) => self.query.push((name, text)),
                other => self.query.push((name, other.to_string())),
            }
        }
        Ok(self)
    }

    pub(crate) fn accept(mut self, types: &'static str) -> Self {
        self.accept = types;
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(crate) fn deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns whether the request may be repeated although it may have arrived. A request that creates something
    /// without a number to recognise it by may not.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.method != Method::POST || !self.path.iter().any(|segment| segment == "admin")
    }

    /// Returns method and path, for errors.
    pub(crate) fn place(&self) -> String {
        format!("{} /{}", self.method, self.path.join("/"))
    }
}

fn unserializable(error: serde_json::Error) -> Error {
    Error::Value(format!("body: {error}"))
}

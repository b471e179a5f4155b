//! Typed ids and the `tinker://` path grammar.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::OpError;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps an id read from a request or a row. Only the store knows whether it exists.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

string_id!(
    /// Owner of a row. Every query carries one.
    TenantId
);
string_id!(
    /// A client's session; free of `:` and `/`, time-ordered.
    SessionId
);
string_id!(
    /// A training run, `<session>:train:<n>`; the protocol's `model_id` and `training_run_id`.
    RunId
);
string_id!(
    /// A sampling session, `<session>:sample:<n>`.
    SamplingSessionId
);
string_id!(
    /// A custom loss, `<session>:loss:<n>`; also the future of its creation.
    CustomLossId
);
string_id!(
    /// An adapter that a client uploads; time-ordered.
    UploadId
);
string_id!(
    /// A session of an agent, which has a key of its own; time-ordered.
    AgentSessionId
);
string_id!(
    /// A future: one submitted request; time-ordered.
    RequestId
);

impl SessionId {
    /// Makes a new id from a time-ordered UUID.
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string())
    }
}

impl UploadId {
    /// Makes a new id from a time-ordered UUID.
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string())
    }
}

impl AgentSessionId {
    /// Makes a new id from a time-ordered UUID.
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string())
    }
}

impl RequestId {
    /// Makes a new id from a time-ordered UUID.
    pub fn from_uuid(id: uuid::Uuid) -> Self {
        Self(id.hyphenated().to_string())
    }
}

impl RunId {
    /// Returns the id that the client computes for the `n`-th model of a session.
    pub fn of_session(session: &SessionId, n: i64) -> Self {
        Self(format!("{session}:train:{n}"))
    }
}

impl SamplingSessionId {
    /// Returns the id of the `n`-th sampling session of a session.
    pub fn of_session(session: &SessionId, n: i64) -> Self {
        Self(format!("{session}:sample:{n}"))
    }
}

impl CustomLossId {
    /// Returns the id of the `n`-th custom loss of a session.
    pub fn of_session(session: &SessionId, n: i64) -> Self {
        Self(format!("{session}:loss:{n}"))
    }

    /// Returns the custom loss whose creation a future stands for.
    pub fn of_future(id: &RequestId) -> Option<Self> {
        id.0.contains(":loss:").then(|| Self(id.0.clone()))
    }
}

/// Content of a checkpoint, and the path segment that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointKind {
    /// Weights and optimizer state: `weights/<name>`.
    Training,
    /// Weights for sampling: `sampler_weights/<name>`.
    Sampler,
    /// An exported adapter for download: `external_weights/<name>`.
    External,
}

impl CheckpointKind {
    /// Returns the segment of a `tinker://` path.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Training => "weights",
            Self::Sampler => "sampler_weights",
            Self::External => "external_weights",
        }
    }

    /// Returns the value of the protocol's `checkpoint_type`.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Sampler => "sampler",
            Self::External => "external",
        }
    }

    /// Returns the kind that a path segment names.
    pub fn from_segment(segment: &str) -> Option<Self> {
        [Self::Training, Self::Sampler, Self::External].into_iter().find(|kind| kind.segment() == segment)
    }
}

/// A checkpoint's bare name: 1 to 128 of `A–Z a–z 0–9 . _ -`, not starting with a dot, so that it is a
/// safe folder name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CheckpointName(String);

impl CheckpointName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CheckpointName {
    type Err = OpError;

    fn from_str(name: &str) -> Result<Self, OpError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.chars().all(allowed) {
            return Err(OpError::user(format!(
                "checkpoint name {name:?} is invalid: use 1 to 128 letters, digits, '.', '_' or '-', not starting with '.'"
            )));
        }
        Ok(Self(name.to_owned()))
    }
}

impl fmt::Display for CheckpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `tinker://<run>/<segment>/<name>`: exactly three parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TinkerPath {
    /// The run that made the checkpoint.
    pub run: RunId,
    /// Kind of the checkpoint's content.
    pub kind: CheckpointKind,
    /// Name of the checkpoint, unique within run and kind.
    pub name: CheckpointName,
}

impl FromStr for TinkerPath {
    type Err = OpError;

    fn from_str(path: &str) -> Result<Self, OpError> {
        let invalid = || {
            OpError::user(format!(
                "path {path:?} is invalid: expected tinker://<training_run_id>/<weights|sampler_weights|external_weights>/<name>"
            ))
        };
        let rest = path.strip_prefix("tinker://").ok_or_else(invalid)?;
        let mut parts = rest.split('/');
        let (Some(run), Some(segment), Some(name), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(invalid());
        };
        if run.is_empty() {
            return Err(invalid());
        }
        let kind = CheckpointKind::from_segment(segment).ok_or_else(invalid)?;
        Ok(Self { run: RunId::new(run), kind, name: name.parse()? })
    }
}

impl fmt::Display for TinkerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tinker://{}/{}/{}", self.run, self.kind.segment(), self.name)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn tinker_path_round_trips() {
        let text = "tinker://0c1f:train:0/sampler_weights/step-400";
        let path: TinkerPath = text.parse().unwrap();
        assert_eq!(path.kind, CheckpointKind::Sampler);
        assert_eq!(path.run.as_str(), "0c1f:train:0");
        assert_eq!(path.to_string(), text);
    }

    #[test]
    fn traversal_and_malformed_paths_are_refused() {
        for text in [
            "tinker://a/weights/..",
            "tinker://a/weights/.hidden",
            "tinker://a/weights/",
            "tinker://a/weights/b/c",
            "tinker:///weights/b",
            "tinker://a/other/b",
            "a/weights/b",
            "tinker://a/weights/b\0",
        ] {
            assert!(text.parse::<TinkerPath>().is_err(), "{text:?} must be refused");
        }
    }
}

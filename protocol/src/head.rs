//! What a run has at the end of the model: the unembedding, or a head of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::OpError;

/// What a run computes from the normalised hidden state of each position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelHead {
    /// Log-probabilities of tokens, by the base model's unembedding.
    #[default]
    Unembedding,
    /// One number, `hidden · w + b`: a value or a reward. `w` and `b` are trained and start at zero.
    Scalar,
}

impl ModelHead {
    /// The key of a run's `user_metadata` that asks for a head of its own.
    pub const KEY: &str = "trainyard.head";

    /// The head that a run with this metadata asks for; `None` when it names none.
    ///
    /// # Errors
    /// The user's, for another text than `scalar`.
    pub fn of_metadata(user_metadata: &BTreeMap<String, String>) -> Result<Option<Self>, OpError> {
        match user_metadata.get(Self::KEY).map(String::as_str) {
            None => Ok(None),
            Some("scalar") => Ok(Some(Self::Scalar)),
            Some(other) => Err(OpError::user(format!(
                "user_metadata.{}: {other:?} is not a head; the one is \"scalar\"",
                Self::KEY
            ))),
        }
    }

    /// Whether it is the base model's.
    pub fn is_unembedding(&self) -> bool {
        *self == Self::Unembedding
    }

    /// Whether it is a head of its own with one output.
    pub fn is_scalar(&self) -> bool {
        *self == Self::Scalar
    }
}

//! The head of a run's model: the unembedding, or a head of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::OpError;

/// Function that a run computes from the normalised hidden state of each position.
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

    /// Returns the head that a run's metadata asks for, or `None` if the metadata names none.
    ///
    /// # Errors
    /// A user error for any text other than `scalar`.
    pub fn of_metadata(user_metadata: &BTreeMap<String, String>) -> Result<Option<Self>, OpError> {
        match user_metadata.get(Self::KEY).map(String::as_str) {
            None => Ok(None),
            Some("scalar") => Ok(Some(Self::Scalar)),
            Some(other) => {
                Err(OpError::user(format!("user_metadata.{}: unknown head {other:?}: expected \"scalar\"", Self::KEY)))
            }
        }
    }

    /// Whether this is the base model's unembedding.
    pub fn is_unembedding(&self) -> bool {
        *self == Self::Unembedding
    }

    /// Whether this is a run's own head with one output.
    pub fn is_scalar(&self) -> bool {
        *self == Self::Scalar
    }
}

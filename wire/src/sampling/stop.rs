//! Stop conditions of a sample, as clients write them.

use serde::{Deserialize, Deserializer};
use trainyard_protocol::limits::{MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, MAX_STOP_TOKENS};
use trainyard_protocol::{OpError, Stop};

use crate::lists::{StopList, StopVisitor};

/// Value of `stop`, as clients write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopBody {
    /// A single string, which stops when it appears.
    Text(String),
    /// Token ids, or an empty list.
    Tokens(Vec<i64>),
    /// Several strings, any of which stops.
    Texts(Vec<String>),
}

impl<'de> Deserialize<'de> for StopBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bounds = StopVisitor { most_texts: MAX_STOP_STRINGS, most_tokens: Some(MAX_STOP_TOKENS) };
        Ok(match deserializer.deserialize_any(bounds)? {
            StopList::Text(text) => Self::Text(text),
            StopList::Texts(texts) => Self::Texts(texts),
            StopList::Tokens(tokens) => Self::Tokens(tokens),
        })
    }
}

/// Returns the stop condition.
///
/// # Errors
///
/// A user error if there are too many strings or tokens, or if a string is empty or too long.
pub(super) fn checked(stop: Option<StopBody>) -> Result<Stop, OpError> {
    let refuse = |message: String| Err(OpError::user(format!("sampling_params.stop: {message}")));
    let texts = match stop {
        None => return Ok(Stop::Default),
        Some(StopBody::Tokens(tokens)) if tokens.is_empty() => return Ok(Stop::Nothing),
        Some(StopBody::Tokens(tokens)) if tokens.len() > MAX_STOP_TOKENS => {
            return refuse(format!("{} token ids, at most {MAX_STOP_TOKENS} are allowed", tokens.len()));
        }
        Some(StopBody::Tokens(tokens)) => return Ok(Stop::Tokens(tokens)),
        Some(StopBody::Text(text)) => vec![text],
        Some(StopBody::Texts(texts)) => texts,
    };
    if texts.len() > MAX_STOP_STRINGS {
        return refuse(format!("{} strings, at most {MAX_STOP_STRINGS} are allowed", texts.len()));
    }
    if texts.iter().any(String::is_empty) {
        return refuse("an empty string would stop everything".to_owned());
    }
    if texts.iter().any(|text| text.len() > MAX_STOP_STRING_BYTES) {
        return refuse(format!("a string is longer than {MAX_STOP_STRING_BYTES} bytes"));
    }
    Ok(Stop::Strings(texts))
}

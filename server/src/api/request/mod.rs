//! Code that handlers share: bodies, extractors, refusals, submission and responses.

pub(crate) mod base_name;
pub(crate) mod body;
mod body_limits;
pub(crate) mod content_range;
pub(crate) mod extract;
pub(crate) mod fallback;
pub(crate) mod listing;
pub(crate) mod recorded;
pub(crate) mod refusals;
pub(crate) mod respond;
pub(crate) mod submit;
pub(crate) mod weights_access;

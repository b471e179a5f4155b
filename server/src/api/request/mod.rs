//! What handlers share: bodies and answers with their memory, extractors, refusals, submission.

pub(crate) mod answers;
pub(crate) mod base_name;
pub(crate) mod body;
mod body_memory;
pub(crate) mod content_range;
pub(crate) mod extract;
pub(crate) mod fallback;
pub(crate) mod listing;
pub(crate) mod receive;
pub(crate) mod receive_pieces;
pub(crate) mod recorded;
pub(crate) mod refusals;
pub(crate) mod respond;
pub(crate) mod submit;
pub(crate) mod weights_access;

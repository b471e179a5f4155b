//! The output of a tower for an image.

use std::collections::BTreeMap;
use std::sync::Arc;

use trainyard_protocol::ImageDigest;

use crate::backend::{Backend, Rows};

/// Embeddings of a request's images.
pub(crate) type Embeddings<B> = BTreeMap<ImageDigest, Arc<ImageEmbedding<B>>>;

/// Embeddings of an image's tokens.
pub(crate) struct ImageEmbedding<B: Backend> {
    /// Rows that stand for the embeddings of the image's tokens, `[tokens, hidden]`.
    pub(crate) rows: B::Rows,
    /// Features that are added to the residual stream after the text model's first blocks, `[tokens, hidden]` each.
    pub(crate) deepstack: Vec<B::Rows>,
}

impl<B: Backend> ImageEmbedding<B> {
    /// Bytes of its rows.
    pub(crate) fn bytes(&self) -> usize {
        let elements = |rows: &B::Rows| rows.rows() * rows.width();
        (elements(&self.rows) + self.deepstack.iter().map(elements).sum::<usize>()) * B::ACTIVATION_BYTES
    }
}

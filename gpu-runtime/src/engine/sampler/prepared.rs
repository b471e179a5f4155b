//! Data with which a sample is executed.

use trainyard_protocol::{PreparedImage, SampleOperation};

use crate::backend::Backend;
use crate::grammar::Grammar;
use crate::vision::Embeddings;

/// A sample with what its execution needs beside weights.
pub(in crate::engine) struct PreparedSample<B: Backend> {
    pub(in crate::engine) operation: SampleOperation,
    /// Grammar of the text, if that must follow one.
    pub(in crate::engine) grammar: Option<Grammar>,
    /// Images of the prompt, in order.
    pub(in crate::engine) images: Vec<PreparedImage>,
    /// Embeddings of these images.
    pub(in crate::engine) embeddings: Embeddings<B>,
}

#[cfg(test)]
impl<B: Backend> PreparedSample<B> {
    /// A sample without images and without a grammar.
    pub(super) fn text(operation: SampleOperation) -> Self {
        Self { operation, grammar: None, images: Vec::new(), embeddings: Embeddings::new() }
    }
}

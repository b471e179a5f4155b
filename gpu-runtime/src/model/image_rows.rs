//! Images in a batch: their embeddings take the place of tokens', and features are added after the first blocks.

use std::ops::Range;
use std::sync::Arc;

use super::mrope::Coordinates;
use crate::backend::{Backend, Rows, VisionOps};
use crate::vision::ImageEmbedding;

/// Consecutive tokens of an image in a batch.
pub(crate) struct ImageRows<B: Backend> {
    /// Rows of the batch.
    pub(crate) rows: Range<usize>,
    /// Index of the first of these tokens in the image.
    pub(crate) first: usize,
    pub(crate) embedding: Arc<ImageEmbedding<B>>,
}

/// Images of a batch, and positions of all of its rows.
pub(crate) struct PassImages<B: Backend> {
    pub(crate) coordinates: Vec<Coordinates>,
    /// Images of the batch, in the order of rows.
    pub(crate) images: Vec<ImageRows<B>>,
}

impl<B: Backend> ImageRows<B> {
    /// Its tokens' part of rows that the image has for all of its tokens.
    fn part(&self, backend: &B, of: &B::Rows) -> B::Rows {
        let own: Vec<usize> = (self.first..self.first + self.rows.len()).collect();
        backend.gather(of, &own)
    }
}

impl<B: Backend> PassImages<B> {
    /// Overwrites embeddings of tokens by those of images.
    pub(super) fn insert(&self, backend: &B, x: &mut B::Rows) {
        for image in &self.images {
            let rows: Vec<usize> = image.rows.clone().collect();
            backend.scatter(&image.part(backend, &image.embedding.rows), &rows, x);
        }
    }

    /// Adds the features for a block to its output, the residual stream.
    pub(super) fn add_features(&self, backend: &B, layer: usize, x: &mut B::Rows) {
        for image in &self.images {
            if let Some(features) = image.embedding.deepstack.get(layer) {
                let rows: Vec<usize> = image.rows.clone().collect();
                B::Family::add_rows(backend, &image.part(backend, features), &rows, x);
            }
        }
    }

    /// Rows of all images.
    pub(super) fn rows(&self) -> Vec<usize> {
        self.images.iter().flat_map(|image| image.rows.clone()).collect()
    }
}

/// Sets some rows of a gradient to zero: those of images, whose embeddings are not parameters.
pub(super) fn clear_rows<B: Backend>(backend: &B, rows: &[usize], dx: &mut B::Rows) {
    if !rows.is_empty() {
        backend.scatter(&backend.zeros(rows.len(), dx.width()), rows, dx);
    }
}

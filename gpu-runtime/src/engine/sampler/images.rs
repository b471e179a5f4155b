//! Images of prompts: their embeddings and positions in passes, and their keys in the prefix cache.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use trainyard_protocol::{ImageDigest, PreparedImage, SampleResult};

use crate::backend::Backend;
use crate::config::ModelConfig;
use crate::model::{ImageGrid, ImageRows, PassImages, coordinates};
use crate::vision::{Embeddings, ImageEmbedding};

/// First key of images. Tokens are below it.
const FIRST_KEY: u32 = 1 << 31;
/// Images whose keys are remembered; if there are more, all are forgotten, and only hits in the cache are lost.
const MAX_KEYS: usize = 1 << 16;

/// Numbers that stand for images in keys of the prefix cache, each for one digest and never for another.
///
/// All tokens of an image have one key. A path of keys from the start of a sequence says where the image began, and the digest how
/// many tokens it has.
pub(super) struct ImageKeys {
    known: BTreeMap<ImageDigest, u32>,
    next: u32,
}

impl Default for ImageKeys {
    fn default() -> Self {
        Self { known: BTreeMap::new(), next: FIRST_KEY }
    }
}

impl ImageKeys {
    fn of(&mut self, digest: ImageDigest) -> u32 {
        if self.known.len() >= MAX_KEYS {
            self.known.clear();
        }
        let next = &mut self.next;
        *self.known.entry(digest).or_insert_with(|| {
            *next = next.wrapping_add(1).max(FIRST_KEY + 1);
            *next - 1
        })
    }
}

/// An image of a prompt.
struct PromptImage<B: Backend> {
    grid: ImageGrid,
    embedding: Arc<ImageEmbedding<B>>,
}

/// Images of a prompt, in order.
pub(super) struct PromptImages<B: Backend> {
    images: Vec<PromptImage<B>>,
    grids: Vec<ImageGrid>,
    /// Keys of the prompt's tokens; `None` without images.
    keys: Option<Vec<u32>>,
}

impl<B: Backend> Default for PromptImages<B> {
    fn default() -> Self {
        Self { images: Vec::new(), grids: Vec::new(), keys: None }
    }
}

impl<B: Backend> PromptImages<B> {
    /// Images of a prompt with their embeddings.
    pub(super) fn new(
        prompt: &[i64],
        placed: &[PreparedImage],
        embeddings: &Embeddings<B>,
        known: &mut ImageKeys,
    ) -> Self {
        if placed.is_empty() {
            return Self::default();
        }
        // Tokens beyond the vocabulary are refused later.
        let mut keys: Vec<u32> = prompt.iter().map(|token| u32::try_from(*token).unwrap_or(0)).collect();
        let mut images = Vec::with_capacity(placed.len());
        for image in placed {
            let grid = ImageGrid::of(image);
            let key = known.of(image.digest);
            keys.iter_mut().skip(grid.start).take(grid.tokens()).for_each(|own| *own = key);
            let embedding = embeddings.get(&image.digest).cloned();
            images.extend(embedding.map(|embedding| PromptImage { grid, embedding }));
        }
        let grids = images.iter().map(|image| image.grid).collect();
        Self { images, grids, keys: Some(keys) }
    }

    /// Embeddings of the images, in order.
    pub(super) fn embeddings(&self) -> impl Iterator<Item = Arc<ImageEmbedding<B>>> {
        self.images.iter().map(|image| Arc::clone(&image.embedding))
    }

    /// Keys of a prompt's tokens in the prefix cache.
    pub(super) fn keys<'a>(&'a self, prompt: &'a [u32]) -> &'a [u32] {
        self.keys.as_deref().unwrap_or(prompt)
    }

    /// Adds the coordinates of a sequence's positions to a pass, and what is in them of images; `row` is the first one's row.
    fn add_to(&self, positions: &Range<usize>, row: usize, pass: &mut PassImages<B>) {
        pass.coordinates.extend(positions.clone().map(|index| coordinates(&self.grids, index)));
        for PromptImage { grid, embedding } in &self.images {
            let start = grid.start.max(positions.start);
            let end = (grid.start + grid.tokens()).min(positions.end);
            if start < end {
                let rows = row + start - positions.start..row + end - positions.start;
                pass.images.push(ImageRows { rows, first: start - grid.start, embedding: Arc::clone(embedding) });
            }
        }
    }

    /// Removes log-probabilities of images, which are not tokens that anyone chose.
    pub(super) fn clear_logprobs(&self, result: &mut SampleResult) {
        let Some(logprobs) = &mut result.prompt_logprobs else { return };
        for grid in &self.grids {
            logprobs.iter_mut().skip(grid.start).take(grid.tokens()).for_each(|logprob| *logprob = f32::NAN);
        }
    }
}

/// Images of a pass over parts of sequences, given for each its images, its positions and its first row; `None` if no sequence has
/// images.
pub(super) fn pass_images<'a, B: Backend>(
    parts: impl Iterator<Item = (&'a PromptImages<B>, &'a Range<usize>, usize)>,
) -> Option<PassImages<B>> {
    let parts: Vec<_> = parts.collect();
    if parts.iter().all(|(images, _, _)| images.images.is_empty()) {
        return None;
    }
    let mut pass = PassImages { coordinates: Vec::new(), images: Vec::new() };
    parts.into_iter().for_each(|(images, positions, row)| images.add_to(positions, row, &mut pass));
    Some(pass)
}

/// Tokens that a model never samples: placeholders of images, with which a completion could not be rendered.
pub(super) fn never_sampled(config: &ModelConfig) -> &[u32] {
    config.vision.as_ref().map(|vision| &vision.placeholders[..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_images_are_neither_tokens_nor_used_twice() {
        let mut keys = ImageKeys::default();
        let digest = |byte| ImageDigest([byte; 32]);
        let [first, second] = [1, 2].map(|byte| keys.of(digest(byte)));
        assert!(first >= FIRST_KEY && second > first);
        assert_eq!(keys.of(digest(1)), first);
        for i in 0..MAX_KEYS {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(i as u64 + 1000).to_le_bytes());
            keys.of(ImageDigest(bytes));
        }
        assert!(keys.known.len() <= MAX_KEYS);
        assert!(keys.of(digest(1)) > second, "forgotten, and not given to another image");
    }
}

//! Vision towers, which turn the patches of images into embeddings of tokens. Towers are frozen.

mod cache;
mod embedding;
mod forward;
mod geometry;
mod weights;

pub(crate) use cache::{EmbeddingCache, ImageKey};
pub(crate) use embedding::{Embeddings, ImageEmbedding};
pub(crate) use weights::Tower;

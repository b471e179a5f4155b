//! Places of tokens in blocks.

use super::paged::Paged;
use crate::AttentionShape;

/// A token of one head.
pub(super) struct HeadToken<'a> {
    /// Index of the token in its block.
    pub(super) slot: usize,
    pub(super) key: &'a [f32],
    pub(super) value: &'a [f32],
}

/// Places of tokens in a block; its layers follow each other, and so do the heads within a layer.
pub(super) trait Layout {
    type Element: Copy + Default;

    fn pages(&mut self) -> &mut Paged<Self::Element>;

    /// Elements of one head's keys and values in a block.
    fn head_len(shape: &AttentionShape) -> usize;

    /// Writes a token into its head's part of a block.
    fn put(token: HeadToken<'_>, head: &mut [Self::Element]);
}

//! The right side of products of tiles: words as they are stored, or words that blocks are dequantized to.

use std::ops::Range;

use super::super::Isa;
use super::super::packed::{BlockPanels, NR, PackedData, STEP_WORDS, transpose_words};
use super::super::tile_layout::TILE_K;
use super::rhs::GemmRhs;
use crate::blocks::BLOCK;

#[derive(Clone, Copy)]
pub(super) enum TiledRhs<'a> {
    Words(&'a [u32]),
    Blocks(&'a BlockPanels),
    /// The transpose of blocks.
    Transpose(&'a BlockPanels),
}

impl<'a> TiledRhs<'a> {
    pub(super) fn of(w: &GemmRhs<'a>) -> Option<Self> {
        match w {
            GemmRhs::Matrix(w) => match &w.data {
                PackedData::Bf16(words) => Some(Self::Words(words)),
                PackedData::Blocks(panels) => Some(Self::Blocks(panels)),
                PackedData::F32(_) => None,
            },
            GemmRhs::Transpose(w) => w.blocks().map(Self::Transpose),
        }
    }

    /// Writes positions `k`, from a multiple of [`TILE_K`] on, of the strip of columns at `column`: rows of [`NR`] words.
    pub(super) fn dequantize(&self, isa: Isa, column: usize, k: &Range<usize>, words: &mut [u32]) {
        const { assert!(BLOCK == TILE_K && NR == BLOCK, "a block is a step, and a panel is as wide") };
        let steps = k.start / BLOCK..k.end.div_ceil(BLOCK);
        match self {
            Self::Words(_) => {}
            Self::Blocks(panels) => panels.words(isa, column / NR, steps, words),
            Self::Transpose(panels) => {
                let mut step = [0; STEP_WORDS];
                for (panel, words) in steps.zip(words.chunks_exact_mut(STEP_WORDS)) {
                    let at = column / BLOCK;
                    panels.words(isa, panel, at..at + 1, &mut step);
                    transpose_words(isa, step.as_chunks().0, words);
                }
            }
        }
    }
}

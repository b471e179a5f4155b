//! Division of the rows of the embedding and of the unembedding among ranks.

use std::ops::Range;

use super::ModelConfig;

/// Rows that a rank's part is a multiple of, where each rank can have that many: a panel of packed weights, and whole tiles of a
/// GEMM.
const UNIT: usize = 32;

/// One of several equal parts of the vocabulary, which a rank holds. The rows of a part follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VocabularyPart {
    /// Index of the part, from 0.
    pub index: usize,
    /// Number of parts of the vocabulary.
    pub of: usize,
}

impl Default for VocabularyPart {
    /// The whole vocabulary as one part.
    fn default() -> Self {
        Self { index: 0, of: 1 }
    }
}

impl VocabularyPart {
    /// Rows of every part of `vocab` rows. Parts have room for as many tokens, so that ranks hold and exchange the same; what the
    /// last ones have beyond the vocabulary's end is zero.
    fn rows(self, vocab: usize) -> usize {
        let even = vocab.div_ceil(self.of);
        if self.of > 1 && even >= UNIT { even.next_multiple_of(UNIT) } else { even }
    }
}

impl ModelConfig {
    /// Returns the number of rows of the embedding and of the unembedding on this rank: the same on all ranks, with
    /// zeros beyond [`ModelConfig::held_tokens`].
    pub fn vocab_rows(&self) -> usize {
        self.vocab_part.rows(self.vocab_size)
    }

    /// Returns the tokens whose rows this rank has, in order from its first row.
    pub fn held_tokens(&self) -> Range<usize> {
        let rows = self.vocab_rows();
        let at = |part: usize| (part * rows).min(self.vocab_size);
        at(self.vocab_part.index)..at(self.vocab_part.index + 1)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::load::describe_json;

    fn parts(vocab: usize, of: usize) -> Vec<(usize, Range<usize>)> {
        let text = r#"{"model_type": "llama", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-5, "vocab_size": "#;
        let whole = describe_json("config.json", &format!("{text}{vocab}}}")).unwrap();
        assert_eq!((whole.vocab_rows(), whole.held_tokens()), (vocab, 0..vocab));
        let part = |index| {
            let own = ModelConfig { vocab_part: VocabularyPart { index, of }, ..whole.clone() };
            (own.vocab_rows(), own.held_tokens())
        };
        (0..of).map(part).collect()
    }

    #[test]
    fn parts_follow_each_other_and_have_as_many_rows() {
        assert_eq!(parts(512, 2), [(256, 0..256), (256, 256..512)]);
        assert_eq!(parts(500, 2), [(256, 0..256), (256, 256..500)]);
        assert_eq!(parts(10, 4), [(3, 0..3), (3, 3..6), (3, 6..9), (3, 9..10)]);
        assert_eq!(parts(129, 4), [(64, 0..64), (64, 64..128), (64, 128..129), (64, 129..129)]);
        for vocab in [1, 2, 31, 64, 65, 1000, 50_257, 151_936] {
            for of in [1, 2, 3, 4, 8, 64] {
                let parts = parts(vocab, of);
                let (rows, _) = parts[0];
                assert!(rows < vocab.div_ceil(of) + UNIT, "{vocab} in {of}");
                let mut next = 0;
                for (own, held) in parts {
                    assert_eq!((own, held.start), (rows, next), "{vocab} in {of}");
                    assert!(held.len() <= rows);
                    next = held.end;
                }
                assert_eq!(next, vocab);
            }
        }
    }
}

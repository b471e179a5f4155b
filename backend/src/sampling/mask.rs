//! Mask of the tokens of the vocabulary that may be sampled.

/// One bit for each token: the lowest bit of the first word is token 0.
#[derive(Debug, Default, PartialEq)]
pub struct TokenMask(Vec<u32>);

impl TokenMask {
    /// A mask of these words.
    pub fn new(words: Vec<u32>) -> Self {
        Self(words)
    }

    /// Whether a token may be sampled; those beyond the last word may not.
    pub fn allows(&self, token: u32) -> bool {
        self.0.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// The bits as words of 32.
    pub fn words(&self) -> &[u32] {
        &self.0
    }

    /// Allows a token that has a bit.
    pub fn allow(&mut self, token: u32) {
        if let Some(word) = self.0.get_mut(token as usize / 32) {
            *word |= 1 << (token % 32);
        }
    }

    /// Whether no token may be sampled.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Sets the logits of the other tokens to -inf.
    pub fn apply(&self, logits: &mut [f32]) {
        for (token, logit) in (0u32..).zip(logits) {
            if !self.allows(token) {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
}

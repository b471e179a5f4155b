//! Mask of the tokens of the vocabulary that may be sampled.

/// One bit for each token: the lowest bit of the first word is token 0.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TokenMask(Vec<u32>);

impl TokenMask {
    #[cfg_attr(not(any(test, feature = "grammar")), allow(dead_code, reason = "only grammars use it"))]
    pub(crate) fn new(words: Vec<u32>) -> Self {
        Self(words)
    }

    /// Whether a token may be sampled; those beyond the last word may not.
    pub(crate) fn allows(&self, token: u32) -> bool {
        self.0.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// The bits as words of 32.
    #[cfg(any(test, feature = "cuda"))]
    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }

    /// Allows a token that has a bit.
    #[cfg_attr(not(any(test, feature = "grammar")), allow(dead_code, reason = "only grammars use it"))]
    pub(crate) fn allow(&mut self, token: u32) {
        if let Some(word) = self.0.get_mut(token as usize / 32) {
            *word |= 1 << (token % 32);
        }
    }

    #[cfg_attr(not(any(test, feature = "grammar")), allow(dead_code, reason = "only grammars use it"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Sets the logits of the other tokens to -inf.
    pub(super) fn apply(&self, logits: &mut [f32]) {
        for (token, logit) in (0u32..).zip(logits) {
            if !self.allows(token) {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
}

//! Log-probabilities in the forms of the OpenAI API.

use std::collections::BTreeMap;

use trainyard_wire::openai::{CompletionLogprobs, TokenLogprob, TopLogprob};

use super::super::sequence::Token;
use super::super::texts::ModelText;

/// The value that stands for the logarithm of zero in JSON.
const LEAST: f64 = -9_999.0;

fn finite(logprob: f32) -> f64 {
    f64::from(logprob).max(LEAST)
}

fn shown(text: &ModelText, token: u32) -> (String, Vec<u8>) {
    let bytes = text.tokenizer.bytes(token);
    (String::from_utf8_lossy(&bytes).into_owned(), bytes)
}

/// Returns the log-probabilities of a chat completion, with `top` candidates per token. Special tokens, such as the one
/// that ended it, do not belong to its content: they are included if `special` is set.
pub fn of_chat(text: &ModelText, tokens: &[Token], top: u32, special: bool) -> Vec<TokenLogprob> {
    let content = tokens.iter().filter(|token| special || text.tokenizer.special(token.id).is_none());
    content
        .map(|token| {
            let (shown_token, bytes) = shown(text, token.id);
            let candidates = token.candidates.iter().take(top as usize);
            let top_logprobs = candidates
                .map(|&(id, logprob)| {
                    let (token, bytes) = shown(text, id);
                    TopLogprob { token, logprob: finite(logprob), bytes: Some(bytes) }
                })
                .collect();
            let logprob = token.logprob.map_or(LEAST, finite);
            TokenLogprob { token: shown_token, logprob, bytes: Some(bytes), top_logprobs }
        })
        .collect()
}

/// Returns the log-probabilities of a text completion; `offset` counts the characters before it.
pub fn of_completion(text: &ModelText, tokens: &[Token], offset: &mut usize) -> CompletionLogprobs {
    let mut logprobs = CompletionLogprobs::default();
    for token in tokens {
        let special = text.tokenizer.special(token.id).is_some();
        let (shown_token, _) = shown(text, token.id);
        logprobs.text_offset.push(*offset);
        *offset += if special { 0 } else { shown_token.chars().count() };
        logprobs.tokens.push(shown_token);
        logprobs.token_logprobs.push(token.logprob.map(finite));
        let candidates = token.candidates.iter();
        // Two candidates may have the same text: the likelier one comes first and is kept.
        let mut top = BTreeMap::new();
        for &(id, logprob) in candidates {
            top.entry(shown(text, id).0).or_insert(finite(logprob));
        }
        logprobs.top_logprobs.push(token.logprob.is_some().then_some(top));
    }
    logprobs
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{EOS, byte_level};
    use super::*;

    #[test]
    fn half_characters_keep_their_bytes_and_the_end_is_left_out() {
        let text = byte_level();
        let token = |id, logprob| Token { id, logprob: Some(logprob), candidates: vec![(0xC3, -0.25), (97, f32::MIN)] };
        let tokens = [token(97, -0.5), token(0xC3, -1.0), token(EOS, -0.1)];
        let content = of_chat(&text, &tokens, 1, false);
        assert_eq!(content.len(), 2);
        assert_eq!(of_chat(&text, &tokens, 1, true).last().map(|token| token.token.as_str()), Some("<|end|>"));
        let half = content.last().map(|token| (token.token.as_str(), token.bytes.clone(), token.top_logprobs.len()));
        assert_eq!(half, Some(("\u{FFFD}", Some(vec![0xC3]), 1)));
        let mut offset = 3;
        let legacy = of_completion(&text, &tokens, &mut offset);
        assert_eq!((legacy.text_offset, offset), (vec![3, 4, 5], 5));
        assert_eq!(legacy.tokens, ["a", "\u{FFFD}", "<|end|>"]);
        let first = legacy.top_logprobs.first().cloned().flatten().unwrap_or_default();
        assert_eq!(first.get("a"), Some(&LEAST));
    }
}

//! The text of each token of a sequence, special tokens included.

use std::sync::Arc;

use super::detokenizer::Detokenizer;
use super::texts::ModelText;

/// Returns the text of each token; joined, they are the whole text. A character of several tokens belongs to the last
/// one.
pub fn pieces(text: &Arc<ModelText>, tokens: &[u32]) -> Vec<String> {
    let mut detokenizer = Detokenizer::new(Arc::clone(text));
    let mut pieces: Vec<String> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut piece = detokenizer.push(*token);
        piece.push_str(text.tokenizer.special(*token).unwrap_or_default());
        pieces.push(piece);
    }
    let rest = detokenizer.finish();
    if let Some(last) = pieces.last_mut() {
        last.push_str(&rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EOS, byte_level};
    use super::*;

    #[test]
    fn every_token_has_its_text_and_special_tokens_have_theirs() {
        let text = byte_level();
        assert_eq!(pieces(&text, &[u32::from(b'a'), 0xC3, 0xA9, EOS]), ["a", "", "é", "<|end|>"]);
        assert_eq!(pieces(&text, &[u32::from(b'a'), 0xC3]), ["a", "\u{FFFD}"]);
        assert_eq!(pieces(&text, &[]), Vec::<String>::new());
    }
}

//! Decoding of a growing sequence of tokens: emitted text is final and never ends within a character.

use std::sync::Arc;

use trainyard_gpu_runtime::tokenizer::TextTokenizer;

use super::texts::ModelText;

/// Number of tokens after which text that still ends within a character is emitted: no character has more bytes.
const MAX_PENDING: usize = 8;

/// State of decoding one sequence.
pub(crate) struct Detokenizer {
    text: Arc<ModelText>,
    /// Bytes of an incomplete character, in byte-level vocabularies.
    bytes: Vec<u8>,
    /// Tokens that the decoder needs to see, in other vocabularies; the first `emitted` of them are emitted.
    window: Vec<u32>,
    emitted: usize,
}

impl Detokenizer {
    pub(crate) fn new(text: Arc<ModelText>) -> Self {
        Self { text, bytes: Vec::new(), window: Vec::new(), emitted: 0 }
    }

    fn tokenizer(&self) -> &TextTokenizer {
        &self.text.tokenizer
    }

    /// Appends a token and returns the text that became final. Special tokens have no text.
    pub(crate) fn push(&mut self, token: u32) -> String {
        if self.tokenizer().special(token).is_some() {
            // A special token ends an incomplete character.
            return self.finish();
        }
        if self.tokenizer().is_byte_level() {
            let bytes = self.tokenizer().bytes(token);
            self.bytes.extend_from_slice(&bytes);
            return take_complete(&mut self.bytes);
        }
        self.window.push(token);
        let whole = self.tokenizer().decode(&self.window);
        let pending = self.window.len() - self.emitted;
        if whole.ends_with(char::REPLACEMENT_CHARACTER) && pending < MAX_PENDING {
            return String::new();
        }
        self.emit(&whole)
    }

    /// Ends the sequence and returns the remaining text, with U+FFFD for incomplete characters.
    pub(crate) fn finish(&mut self) -> String {
        if self.tokenizer().is_byte_level() {
            return String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned();
        }
        let whole = self.tokenizer().decode(&self.window);
        let rest = self.emit(&whole);
        (self.window, self.emitted) = (Vec::new(), 0);
        rest
    }

    /// The text of the window beyond what was emitted. Afterwards the window starts with the last token that was
    /// emitted before: decoders treat the first token of a text differently.
    fn emit(&mut self, whole: &str) -> String {
        let before = self.tokenizer().decode(self.window.get(..self.emitted).unwrap_or_default());
        let common = whole.char_indices().zip(before.chars()).take_while(|((_, a), b)| a == b).count();
        let new: String = whole.chars().skip(common).collect();
        self.window.drain(..self.emitted);
        self.emitted = self.window.len();
        new
    }
}

/// Takes the complete characters from the front, with U+FFFD for bytes that begin none, like `String::from_utf8_lossy`
/// for the whole.
fn take_complete(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(valid) => {
                text.push_str(valid);
                bytes.clear();
                return text;
            }
            Err(error) => {
                let (valid, _) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                let Some(wrong) = error.error_len() else {
                    bytes.drain(..error.valid_up_to());
                    return text;
                };
                text.push(char::REPLACEMENT_CHARACTER);
                bytes.drain(..error.valid_up_to() + wrong);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::super::testing::{EOS, byte_level, sentence_piece};
    use super::*;

    fn pieces(text: &Arc<ModelText>, tokens: &[u32]) -> Vec<String> {
        let mut detokenizer = Detokenizer::new(Arc::clone(text));
        let mut pieces: Vec<String> = tokens.iter().map(|&token| detokenizer.push(token)).collect();
        pieces.push(detokenizer.finish());
        pieces
    }

    #[test]
    fn characters_are_emitted_whole() {
        let text = byte_level();
        let tokens: Vec<u32> = "aé\u{1F600}".bytes().map(u32::from).collect();
        assert_eq!(pieces(&text, &tokens), ["a", "", "é", "", "", "", "\u{1F600}", ""]);
        assert_eq!(pieces(&text, &[0xF0, 0x9F]), ["", "", "\u{FFFD}"]);
        assert_eq!(pieces(&text, &[0xC3, EOS, 0xA9, u32::from(b'x')]), ["", "\u{FFFD}", "\u{FFFD}", "x", ""]);
    }

    #[test]
    fn a_space_at_the_front_of_a_later_word_stays() {
        let text = sentence_piece();
        // ▁hello ▁world, then the bytes of é.
        assert_eq!(pieces(&text, &[3, 4, 5, 6]).concat(), "hello worldé");
        assert_eq!(pieces(&text, &[3, 5]).concat(), "hello\u{FFFD}");
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_whole(tokens in prop::collection::vec(0u32..256, 0..40)) {
            let text = byte_level();
            let whole = text.tokenizer.decode(&tokens);
            prop_assert_eq!(pieces(&text, &tokens).concat(), whole);
        }
    }
}

//! Ends a sequence at end tokens, stop tokens and stop strings.

use std::fmt;
use std::sync::Arc;

use trainyard_protocol::limits::{MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, MAX_STOP_TOKENS};
use trainyard_protocol::{OpError, Stop};

use crate::config::LoadError;
use crate::tokenizer_file::TokenizerFile;

/// Decodes tokens to text. Special tokens are not skipped.
pub(crate) struct Detokenizer(TokenizerFile);

impl fmt::Debug for Detokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Detokenizer").finish_non_exhaustive()
    }
}

impl Detokenizer {
    /// Reads the text of a `tokenizer.json`.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self, LoadError> {
        TokenizerFile::from_json(json).map(Self)
    }

    /// The text of tokens; unknown ids have none, and incomplete UTF-8 becomes U+FFFD. Should the tokenizer's
    /// decoder fail, the text is that of its raw vocabulary entries.
    pub(crate) fn decode(&self, tokens: &[u32]) -> String {
        self.0.decode(tokens, false).unwrap_or_else(|error| {
            tracing::warn!(%error, "the tokenizer cannot decode");
            tokens.iter().filter_map(|&token| self.0.entry(token)).collect()
        })
    }

    /// The content of the `tokenizer.json`.
    #[cfg_attr(not(any(test, feature = "grammar")), allow(dead_code, reason = "only grammars use it"))]
    pub(crate) fn to_json(&self) -> Result<serde_json::Value, String> {
        self.0.to_json().map_err(|error| error.to_string())
    }

    fn has_text(&self, token: u32) -> bool {
        self.0.entry(token).is_some()
    }
}

/// Detects the end of one sequence.
#[derive(Clone, Debug)]
pub(crate) struct StopMatcher {
    /// Sorted. Shared by all sequences of a request.
    tokens: Arc<[u32]>,
    text: Option<TextMatcher>,
}

impl StopMatcher {
    /// Compiles `stop` for a sequence of a model whose end tokens are `eos`. Stop strings need the detokenizer.
    pub(crate) fn new(stop: &Stop, eos: &[u32], detokenizer: Option<Arc<Detokenizer>>) -> Result<Self, OpError> {
        let mut tokens = if *stop == Stop::Nothing { Vec::new() } else { eos.to_vec() };
        let mut text = None;
        match stop {
            Stop::Default | Stop::Nothing => {}
            Stop::Tokens(ids) if ids.len() > MAX_STOP_TOKENS => {
                return Err(refused(format_args!("{} token ids, at most {MAX_STOP_TOKENS} are allowed", ids.len())));
            }
            Stop::Tokens(ids) => {
                for &id in ids {
                    tokens.push(u32::try_from(id).map_err(|_| refused(format_args!("{id} is not a token id")))?);
                }
            }
            Stop::Strings(strings) => text = TextMatcher::new(strings, detokenizer)?,
        }
        tokens.sort_unstable();
        tokens.dedup();
        Ok(Self { tokens: tokens.into(), text })
    }

    /// Appends the sequence's next token; whether the sequence ends with it. The token belongs to the sequence.
    pub(crate) fn push(&mut self, token: u32) -> bool {
        // The text matcher has to see every token that does not end the sequence, so it is called second.
        self.tokens.binary_search(&token).is_ok() || self.text.as_mut().is_some_and(|text| text.push(token))
    }
}

fn refused(reason: impl fmt::Display) -> OpError {
    OpError::user(format!("sampling_params.stop: {reason}"))
}

/// Characters of the window beyond the longest stop string. The ends of a decoded window may differ from the same part of
/// the whole text: by up to three bytes of a cut character at either end, and by a space that some decoders strip from the
/// front.
const SLACK: usize = 8;

/// Finds stop strings in the text of a sequence by decoding its last tokens.
#[derive(Clone, Debug)]
struct TextMatcher {
    detokenizer: Arc<Detokenizer>,
    strings: Arc<[String]>,
    /// Characters of the end of the text that can be part of a match to come, with slack.
    reach: usize,
    /// The last tokens; their text holds at least the last `reach` characters.
    window: Vec<u32>,
}

impl TextMatcher {
    /// Makes a matcher; `None` without strings.
    fn new(strings: &[String], detokenizer: Option<Arc<Detokenizer>>) -> Result<Option<Self>, OpError> {
        if strings.len() > MAX_STOP_STRINGS {
            return Err(refused(format_args!("{} strings, at most {MAX_STOP_STRINGS} are allowed", strings.len())));
        }
        if strings.iter().any(String::is_empty) {
            return Err(refused("a stop string is empty"));
        }
        if let Some(long) = strings.iter().find(|string| string.len() > MAX_STOP_STRING_BYTES) {
            let (found, most) = (long.len(), MAX_STOP_STRING_BYTES);
            return Err(refused(format_args!("a stop string has {found} bytes, at most {most} are allowed")));
        }
        let Some(longest) = strings.iter().map(|string| string.chars().count()).max() else { return Ok(None) };
        let detokenizer = detokenizer.ok_or_else(|| {
            refused("this model has no tokenizer.json that can be read, so strings cannot be matched; use token ids")
        })?;
        Ok(Some(Self { detokenizer, strings: strings.into(), reach: longest + SLACK, window: Vec::new() }))
    }

    fn push(&mut self, token: u32) -> bool {
        // A token without text would only lengthen the window.
        if !self.detokenizer.has_text(token) {
            return false;
        }
        self.window.push(token);
        let text = self.detokenizer.decode(&self.window);
        if self.strings.iter().any(|string| text.contains(string.as_str())) {
            return true;
        }
        if text.chars().count() >= 2 * self.reach {
            self.shorten();
        }
        false
    }

    /// Drops the older half of the window if the newer one reaches far enough.
    fn shorten(&mut self) {
        let half = self.window.len() / 2;
        if self.detokenizer.decode(&self.window[half..]).chars().count() >= self.reach {
            self.window.drain(..half);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    const EOS: u32 = 256;
    const PIECES: [&[u8]; 5] = [b"hello", b" world", "é".as_bytes(), "a\u{1F600}".as_bytes(), b"            "];

    /// The printable stand-in of a byte in byte-level BPE (Radford et al. 2019): printable Latin-1 stands for itself,
    /// the other bytes for the characters from U+0100 on, in order.
    fn stand_in(byte: u8) -> char {
        let prints = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        if prints(byte) {
            return char::from(byte);
        }
        let rank = (0..byte).filter(|&byte| !prints(byte)).count() as u32;
        char::from_u32(0x100 + rank).unwrap()
    }

    /// Ids: 0 to 255 are bytes, 256 is `<|end|>` (special), the pieces follow.
    pub(crate) fn detokenizer() -> Arc<Detokenizer> {
        let spell = |bytes: &[u8]| bytes.iter().map(|&byte| stand_in(byte)).collect::<String>();
        let mut vocab: serde_json::Map<String, serde_json::Value> =
            (0..=255u8).map(|byte| (spell(&[byte]), byte.into())).collect();
        vocab.insert("<|end|>".to_owned(), EOS.into());
        for (id, piece) in (EOS + 1..).zip(PIECES) {
            vocab.insert(spell(piece), id.into());
        }
        let json = serde_json::json!({
            "version": "1.0",
            "truncation": null,
            "padding": null,
            "added_tokens": [{
                "id": EOS, "content": "<|end|>", "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true,
            }],
            "normalizer": null,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "post_processor": null,
            "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": [],
            },
        });
        Arc::new(Detokenizer::from_json(json.to_string().as_bytes()).unwrap())
    }

    fn strings(strings: &[&str]) -> Stop {
        Stop::Strings(strings.iter().map(|&string| string.to_owned()).collect())
    }

    /// How many tokens it takes to stop.
    fn stops_after(stop: &Stop, tokens: &[u32]) -> Option<usize> {
        let mut matcher = StopMatcher::new(stop, &[EOS], Some(detokenizer())).unwrap();
        tokens.iter().position(|&token| matcher.push(token)).map(|at| at + 1)
    }

    fn bytes(text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    #[test]
    fn tokens_add_to_the_end_tokens_and_nothing_switches_off() {
        assert_eq!(stops_after(&Stop::Default, &[1, 2, EOS]), Some(3));
        assert_eq!(stops_after(&Stop::Nothing, &[1, 2, EOS]), None);
        assert_eq!(stops_after(&Stop::Tokens(vec![2]), &[1, 2, EOS]), Some(2));
        assert_eq!(stops_after(&Stop::Tokens(vec![2]), &[1, EOS]), Some(2));
        assert_eq!(stops_after(&strings(&["x"]), &[1, EOS]), Some(2));
    }

    #[test]
    fn copies_share_what_they_look_for() {
        let many = Stop::Tokens((0..1_024).collect());
        let matcher = StopMatcher::new(&many, &[EOS], Some(detokenizer())).unwrap();
        assert!(Arc::ptr_eq(&matcher.tokens, &matcher.clone().tokens));
    }

    #[test]
    fn strings_match_across_tokens_and_within_characters() {
        assert_eq!(detokenizer().decode(&[257, 258, EOS]), "hello world<|end|>");
        assert_eq!(stops_after(&strings(&["lo w"]), &[257, 258, 258]), Some(2));
        assert_eq!(stops_after(&strings(&["nope", "world"]), &[257, 258]), Some(2));
        // The character's bytes come one by one.
        assert_eq!(stops_after(&strings(&["é"]), &bytes("xé")), Some(3));
        assert_eq!(stops_after(&strings(&["é!"]), &[257, 259, u32::from(b'!')]), Some(3));
        assert_eq!(stops_after(&strings(&["\u{1F600}\u{1F601}"]), &bytes("\u{1F600}\u{1F600}\u{1F601}")), Some(12));
        // The text of a special token, even of one that does not stop by itself.
        let mut matcher = StopMatcher::new(&strings(&["<|end|>"]), &[], Some(detokenizer())).unwrap();
        assert!(!matcher.push(257) && matcher.push(EOS));
    }

    #[test]
    fn the_window_stays_small() {
        let mut matcher = TextMatcher::new(&["stop!".to_owned()], Some(detokenizer())).unwrap().unwrap();
        for at in 0..5_000u32 {
            // Unknown ids, lone continuation bytes and long pieces among ordinary ones.
            let token = [257, 9_999, 0x80 + at % 64, 261, u32::from(b'a'), 260][(at % 6) as usize];
            assert!(!matcher.push(token));
            assert!(matcher.window.len() < 100);
        }
        let found: Vec<bool> = bytes("stop!").into_iter().map(|token| matcher.push(token)).collect();
        assert_eq!(found, [false, false, false, false, true]);
    }

    #[test]
    fn bad_stops_are_refused_by_name() {
        let refused = |stop: &Stop, detokenizer| StopMatcher::new(stop, &[EOS], detokenizer).unwrap_err().message;
        let cases = [
            (strings(&["a", ""]), "sampling_params.stop: a stop string is empty"),
            (strings(&["a"; 65]), "sampling_params.stop: 65 strings"),
            (strings(&[&"a".repeat(1_025)]), "sampling_params.stop: a stop string has 1025 bytes"),
            (Stop::Tokens(vec![1; 1_025]), "sampling_params.stop: 1025 token ids, at most 1024 are allowed"),
            (Stop::Tokens(vec![-1]), "sampling_params.stop: -1 is not a token id"),
        ];
        for (stop, expected) in cases {
            let message = refused(&stop, Some(detokenizer()));
            assert!(message.starts_with(expected), "{message}");
        }
        assert!(refused(&strings(&["a"]), None).starts_with("sampling_params.stop: this model has no tokenizer.json"));
        assert!(Detokenizer::from_json(b"{}").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// The window has the results of decoding the whole sequence at every step.
        #[test]
        fn agrees_with_decoding_everything(
            tokens in prop::collection::vec(prop_oneof![97u32..100, 257u32..262, 0xC3u32..0xC5, 0xA8u32..0xAA], 0..120),
            stop in prop::sample::select(vec!["ab", "hellohello", " worldab", "aé", "c \u{20}", "\u{1F600}é", "éa\u{1F600}"]),
        ) {
            let detokenizer = detokenizer();
            let whole = (1..=tokens.len()).find(|&end| detokenizer.decode(&tokens[..end]).contains(stop));
            let mut matcher = StopMatcher::new(&strings(&[stop]), &[EOS], Some(detokenizer)).unwrap();
            let found = tokens.iter().position(|&token| matcher.push(token)).map(|at| at + 1);
            prop_assert_eq!(found, whole);
        }
    }
}

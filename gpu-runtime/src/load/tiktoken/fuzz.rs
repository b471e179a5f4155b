//! Mutations of both files of a tokenizer.
#![allow(clippy::unwrap_used, reason = "tests")]

use serde_json::json;
use tokenizers::Tokenizer;
use trainyard_test_support::heap;
use trainyard_test_support::mutate::Corpus;

use super::tests::{VOCAB, encode, files, kimi, lines, small};
use super::*;

fn each(files: &ModelFiles) {
    const MOST_BYTES: usize = 64 << 20;
    let (json, peak) = heap::peak(|| tokenizer_of_ranks(files, VOCAB));
    assert!(peak <= MOST_BYTES, "{peak} bytes held at once");
    let Ok(Some(json)) = json else { return };
    // What is accepted is a tokenizer with these ids, which encodes any text.
    let tokenizer = Tokenizer::from_bytes(&json).unwrap();
    let size = tokenizer.get_vocab_size(true);
    assert!(size <= VOCAB, "{size}");
    let text = "abc <think> é\u{301} 日本 😀\r\n\n<|im_end|>x";
    let ids = encode(&tokenizer, text);
    assert!(ids.iter().all(|&id| (id as usize) < size));
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
    for added in tokenizer.get_added_tokens_decoder() {
        assert_eq!(tokenizer.token_to_id(&added.1.content), Some(added.0));
    }
}

#[test]
fn mutated_ranks() {
    const WORDS: [&str; 8] = ["YWI= ", "==", "\n", " 256\n", "\r\n", "YWJj", "4294967295", "AA== 0\n"];
    let config = kimi(json!({"300": {"content": "<think>", "special": false}}));
    let mut made = 0;
    Corpus::new("tiktoken").inputs(600).changes(1).words(&WORDS).each(|input| {
        let mut files = files("", &config);
        files.insert(RANKS.to_owned(), input.to_vec());
        made += usize::from(tokenizer_of_ranks(&files, VOCAB).is_ok());
        each(&files);
    });
    assert!(made > 5, "{made}: the corpus is read, and so are some mutations");
}

#[test]
fn mutated_special_tokens() {
    const WORDS: [&str; 8] = ["267", "524", "content", "special", "<|reserved_token_268|>", "auto_map", "abc", "Ġa"];
    let ranks = lines(&small()).join("\n");
    Corpus::new("tiktoken_config").inputs(600).words(&WORDS).each_value(|config| each(&files(&ranks, config)));
}

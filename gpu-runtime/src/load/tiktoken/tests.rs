#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tokenizers::Tokenizer;
use trainyard_test_support::heap;

use super::*;
use crate::load::load;

/// Tokens of the model in tests that do not say otherwise.
pub(super) const VOCAB: usize = 1_024;

/// The lines of tokens in the order of ranks.
pub(super) fn lines(tokens: &[Vec<u8>]) -> Vec<String> {
    tokens.iter().enumerate().map(|(rank, token)| format!("{} {rank}", STANDARD.encode(token))).collect()
}

fn all_bytes() -> Vec<Vec<u8>> {
    (0..=u8::MAX).map(|byte| vec![byte]).collect()
}

/// Bytes, and some tokens of several.
pub(super) fn small() -> Vec<Vec<u8>> {
    let longer = ["ab", "bc", "abc", " a", " abc", "é", "日", "日本", "12", "123", "bcd"];
    all_bytes().into_iter().chain(longer.map(|text| text.as_bytes().to_vec())).collect()
}

pub(super) fn kimi(added: Value) -> Value {
    json!({
        "tokenizer_class": "TikTokenTokenizer", "added_tokens_decoder": added,
        "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]},
    })
}

pub(super) fn files(ranks: &str, config: &Value) -> ModelFiles {
    let files = [(RANKS, ranks.to_owned()), (CONFIG, config.to_string())];
    files.into_iter().map(|(name, text)| (name.to_owned(), text.into_bytes())).collect()
}

fn made(tokens: &[Vec<u8>], added: Value) -> Tokenizer {
    let json = tokenizer_of_ranks(&files(&lines(tokens).join("\n"), &kimi(added)), VOCAB).unwrap().unwrap();
    Tokenizer::from_bytes(&json).unwrap()
}

pub(super) fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, true).unwrap().get_ids().to_vec()
}

/// Pseudo-random numbers below `limit`.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % limit
    }
}

/// Tokens that joining the most frequent pair of some random words leads to, time after time.
fn trained(letters: &[&str], joins: usize, random: &mut impl FnMut(usize) -> usize) -> Vec<Vec<u8>> {
    let mut tokens = all_bytes();
    let mut word = || -> String { (0..3 + random(20)).map(|_| letters[random(letters.len())]).collect() };
    let mut words: Vec<Vec<Vec<u8>>> =
        (0..60).map(|_| word().bytes().map(|byte| vec![byte]).collect::<Vec<_>>()).collect();
    for _ in 0..joins {
        let mut pairs: BTreeMap<[&[u8]; 2], usize> = BTreeMap::new();
        for [left, right] in words.iter().flat_map(|word| word.array_windows()) {
            *pairs.entry([left, right]).or_default() += 1;
        }
        let Some(([left, right], _)) = pairs.into_iter().max_by_key(|&(_, count)| count) else { break };
        let (left, right) = (left.to_vec(), right.to_vec());
        let joined = [&left[..], &right].concat();
        for word in &mut words {
            let mut at = 0;
            while at + 1 < word.len() {
                if word[at] == left && word[at + 1] == right {
                    word[at] = joined.clone();
                    word.remove(at + 1);
                }
                at += 1;
            }
        }
        if !tokens.contains(&joined) {
            tokens.push(joined);
        }
    }
    tokens
}

/// Tokens of a piece of text as tiktoken finds them: all of it if that is a token, else from bytes by joining the first of those
/// neighbours whose union has the lowest rank.
fn reference(ranks: &HashMap<&[u8], u32>, piece: &[u8]) -> Vec<u32> {
    if let Some(&rank) = ranks.get(piece) {
        return vec![rank];
    }
    let mut starts: Vec<usize> = (0..=piece.len()).collect();
    loop {
        let union = |at: usize| Some((*ranks.get(&piece[starts[at]..*starts.get(at + 2)?])?, at));
        match (0..starts.len()).filter_map(union).min() {
            Some((_, at)) => drop(starts.remove(at + 1)),
            None => return starts.array_windows().map(|&[start, end]| ranks[&piece[start..end]]).collect(),
        }
    }
}

#[test]
fn tokens_are_those_of_the_algorithm_on_ranks() {
    let mut compared = 0;
    for seed in 1..60 {
        let mut random = random(seed);
        let letters: &[&str] =
            [&["a", "b"][..], &["a", "b", "c"], &["a", "é", "ö"], &["i", "s", "p", "m"]][seed as usize % 4];
        let tokens = trained(letters, 20 + 2 * seed as usize, &mut random);
        let index: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
        let tokenizer = made(&tokens, json!({}));
        for _ in 0..150 {
            let text: String = (0..1 + random(60)).map(|_| letters[random(letters.len())]).collect();
            let expected = reference(&index, text.as_bytes());
            assert_eq!(encode(&tokenizer, &text), expected, "seed {seed}: {text}");
            compared += usize::from(expected.len() > 2);
        }
    }
    assert!(compared > 5_000, "{compared}");
}

/// What its class splits texts into; the pattern itself is compared with that of GGUF files in `load::tests::tokenizer`.
#[test]
fn texts_are_split_before_tokens_are_found() {
    let tokenizer = made(&small(), json!({}));
    let id = |text: &str| small().iter().position(|token| token == text.as_bytes()).unwrap() as u32;
    for (text, expected) in [
        ("abc abcd", vec![id("abc"), id(" abc"), id("d")]),
        ("日本ab", vec![id("日本"), id("ab")]),
        ("a日本b", vec![id("a"), id("日本"), id("b")]),
        ("1231", vec![id("123"), id("1")]),
        ("12 \n", vec![id("12"), id(" "), id("\n")]),
        ("", vec![]),
    ] {
        assert_eq!(encode(&tokenizer, text), expected, "{text:?}");
        assert_eq!(tokenizer.decode(&expected, false).unwrap(), text);
    }
    // Bytes that are not text by themselves.
    assert_eq!(tokenizer.decode(&[0xE6, 0x97, 0xA5], true).unwrap(), "日");
}

#[test]
fn special_tokens_are_named_or_reserved() {
    let base = small().len();
    let (end, think, last) = (base + 2, base + 3, base + 257);
    let token = |content: &str, special: bool| json!({"content": content, "special": special, "lstrip": true});
    let config = json!({
        end.to_string(): token("<|im_end|>", true), think.to_string(): token("<think>", false),
        last.to_string(): token("[PAD]", true),
    });
    let tokenizer = made(&small(), config);
    assert_eq!(tokenizer.get_vocab_size(true), base + 258);
    let ids = encode(&tokenizer, &format!("ab <think>ab<|im_end|>[PAD]<|reserved_token_{base}|>"));
    let ab = 256;
    assert_eq!(ids, [ab, 32, think as u32, ab, end as u32, last as u32, base as u32]);
    assert_eq!(tokenizer.decode(&ids, true).unwrap(), "ab <think>ab");
    assert_eq!(tokenizer.decode(&ids[2..5], false).unwrap(), "<think>ab<|im_end|>");
    // The model may have fewer ids than the class reserves.
    let few = tokenizer_of_ranks(&files(&lines(&small()).join("\n"), &kimi(Value::Null)), base + 7).unwrap().unwrap();
    assert_eq!(Tokenizer::from_bytes(few).unwrap().get_vocab_size(true), base + 7);
}

fn refusal(ranks: &str, config: &Value) -> String {
    tokenizer_of_ranks(&files(ranks, config), VOCAB).unwrap_err().to_string()
}

#[test]
fn malformed_lines_are_refused_with_their_number() {
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut all = lines(&small());
        change(&mut all);
        refusal(&all.join("\n"), &kimi(json!({})))
    };
    let third = |line: &'static str| with(&|all| all[2] = line.to_owned());
    let long = format!("{} 2", STANDARD.encode(vec![b'a'; 1_025]));
    for (found, expected) in [
        (third("Ag=="), "line 3: expected a token in base64 and its rank, found \"Ag==\""),
        (third("Ag== 2 2"), "line 3: expected a token in base64 and its rank, found \"Ag== 2 2\""),
        (third("Ag== two"), "line 3: expected a token in base64 and its rank, found \"Ag== two\""),
        (third("Ag== -2"), "line 3: expected a token in base64"),
        (third("Ag== +2"), "line 3: expected a token in base64"),
        (third("Ag== 4294967296"), "line 3: expected a token in base64"),
        (third("Ag?= 2"), "line 3: expected a token in base64 and its rank, found \"Ag?= 2\": Invalid symbol 63"),
        (third("Ag= 2"), "line 3: expected a token in base64 and its rank, found \"Ag= 2\": "),
        (third("Ag== 1"), "line 3: rank 1 is in line 2 already"),
        (third("AQ== 2"), "line 3: its token is in line 2 already"),
        (third("Ag== 999"), "line 4: rank 3, but no line has rank 2"),
        (third("!! 2"), "line 3: "),
        (with(&|all| all[2] = long.clone()), "line 3: a token of more than 1024 bytes"),
        (with(&|all| all[2] = format!("{} 2", "Q".repeat(4_000))), "line 3: a token of more than 1024 bytes"),
        (with(&|all| all[7] = "YWJj 7".to_owned()), "line 259: its token is in line 8 already"),
        (with(&|all| all[7] = "YWJjZA== 7".to_owned()), "no line has a token for the byte 0x07"),
        (
            with(&|all| all.extend((267..1_100).map(|rank| format!("{} {rank}", STANDARD.encode(rank.to_string()))))),
            "line 1025: more than 1024 tokens, the vocab_size of config.json",
        ),
        (refusal("", &kimi(json!({}))), "no line has a token for the byte 0x00"),
        (refusal(&" ".repeat((1 << 24) + 1), &kimi(json!({}))), "16777217 bytes, at most 16777216"),
    ] {
        assert!(found.starts_with(&format!("tiktoken.model: {expected}")), "{found}\n{expected}");
    }
    // Neither order nor empty lines matter.
    let mut turned = lines(&small());
    turned.reverse();
    let json = tokenizer_of_ranks(&files(&turned.join("\r\n\n"), &kimi(json!({}))), VOCAB).unwrap().unwrap();
    assert_eq!(
        json,
        tokenizer_of_ranks(&files(&lines(&small()).join("\n"), &kimi(json!({}))), VOCAB).unwrap().unwrap()
    );
}

#[test]
fn special_tokens_that_do_not_fit_are_refused_by_id() {
    let ranks = lines(&small()).join("\n");
    let with = |added: Value| refusal(&ranks, &kimi(added));
    for (found, expected) in [
        (with(json!([])), "added_tokens_decoder is not an object"),
        (with(json!({"x": {"content": "a"}})), "added_tokens_decoder.x: expected a token id"),
        (
            with(json!({"5": {"content": "<a>"}})),
            "added_tokens_decoder.5: expected an id from 267 to below 525, behind the ranks",
        ),
        (with(json!({"525": {"content": "<a>"}})), "added_tokens_decoder.525: expected an id from 267 to below 525"),
        (with(json!({"267": {}})), "added_tokens_decoder.267: expected a content of 1 to 256 bytes"),
        (with(json!({"267": {"content": ""}})), "added_tokens_decoder.267: expected a content of 1 to 256 bytes"),
        (with(json!({"267": "<a>"})), "added_tokens_decoder.267: expected a content of 1 to 256 bytes"),
        (with(json!({"267": {"content": "Ġé"}})), "added_tokens_decoder.267: its characters stand for other bytes"),
        (
            with(json!({"267": {"content": "<a>", "special": 1}})),
            "added_tokens_decoder.267: special is not true or false",
        ),
        (
            with(json!({"267": {"content": "<a>"}, "268": {"content": "<a>"}})),
            "added_tokens_decoder.268: \"<a>\" is another token too",
        ),
        (
            with(json!({"0267": {"content": "<a>"}, "267": {"content": "<b>"}})),
            "added_tokens_decoder.267: the id has two names",
        ),
        (with(json!({"267": {"content": "abc"}})), "added_tokens_decoder.267: \"abc\" is another token too"),
        (
            with(json!({"267": {"content": "<|reserved_token_268|>"}})),
            "added_tokens_decoder.268: \"<|reserved_token_268|>\" is another token too",
        ),
    ] {
        assert!(found.starts_with(&format!("tokenizer_config.json: {expected}")), "{found}\n{expected}");
    }
}

#[test]
fn classes_that_split_texts_in_another_way_are_refused_by_name() {
    let ranks = lines(&small()).join("\n");
    let named = |class: &str| json!({"auto_map": {"AutoTokenizer": [class, null]}});
    for class in ["tokenization_moonshot.TikTokenTokenizer", "owner/model--tokenization_kimi.TikTokenTokenizer"] {
        assert!(tokenizer_of_ranks(&files(&ranks, &named(class)), VOCAB).unwrap().is_some(), "{class}");
    }
    let text = json!({"auto_map": {"AutoTokenizer": "tokenization_kimi.TikTokenTokenizer"}});
    assert!(tokenizer_of_ranks(&files(&ranks, &text), VOCAB).unwrap().is_some());
    for (config, expected) in [
        (named("tokenization_qwen.QWenTokenizer"), "the class \"tokenization_qwen.QWenTokenizer\" of tokenizer"),
        (json!({"tokenizer_class": "TikTokenTokenizer"}), "the class \"TikTokenTokenizer\" of tokenizer"),
        (json!({}), "no class of tokenizer"),
    ] {
        let found = refusal(&ranks, &config);
        assert!(found.contains(&format!("tiktoken.model with {expected}")), "{found}");
        assert!(found.contains("(supported: tokenization_kimi.TikTokenTokenizer, "), "{found}");
    }
    let mut alone = files(&ranks, &json!({}));
    alone.remove(CONFIG);
    let found = tokenizer_of_ranks(&alone, VOCAB).unwrap_err().to_string();
    assert!(found.starts_with("tiktoken.model: it needs tokenizer_config.json"), "{found}");
    let mut both = files("?", &json!({}));
    both.insert("tokenizer.json".to_owned(), Vec::new());
    assert_eq!(tokenizer_of_ranks(&both, VOCAB).unwrap(), None);
    assert_eq!(tokenizer_of_ranks(&ModelFiles::new(), VOCAB).unwrap(), None);
}

/// Vocabularies whose merges, or the search for them, would take memory and time beyond all measure.
#[test]
fn ranks_that_imply_too_many_merges_are_refused() {
    let mut tokens = all_bytes();
    for length in 2..=12 {
        tokens.extend((0..1_usize << length).map(|bits| (0..length).map(|at| b"ab"[bits >> at & 1]).collect()));
    }
    let ranks = Ranks::read(lines(&tokens).join("\n").as_bytes(), 1 << 20).unwrap();
    let error = merges(&ranks).unwrap_err().to_string();
    assert_eq!(error, "tiktoken.model: ranks imply more than 8 merges for each token");
    let long = (0_u32..2_000).map(|at| [&at.to_le_bytes()[..], &[b'x'; 1_000]].concat());
    let tokens: Vec<_> = all_bytes().into_iter().chain(long).collect();
    let ranks = Ranks::read(lines(&tokens).join("\n").as_bytes(), 1 << 20).unwrap();
    let error = merges(&ranks).unwrap_err().to_string();
    assert!(error.starts_with("tiktoken.model: its 2256 tokens have 2008256 bytes: too long"), "{error}");
}

/// A vocabulary of Kimi-K2's size, whose tokens join two shorter ones.
#[test]
fn large_vocabularies_hold_little_memory() {
    const RANKS_OF_KIMI: usize = 163_584;
    let (mut random, mut tokens) = (random(7), all_bytes());
    let mut seen: std::collections::BTreeSet<Vec<u8>> = tokens.iter().cloned().collect();
    while tokens.len() < RANKS_OF_KIMI {
        let known = tokens.len();
        let joined = [&tokens[random(known)][..], &tokens[random(known)]].concat();
        if joined.len() <= 16 && seen.insert(joined.clone()) {
            tokens.push(joined);
        }
    }
    let files = files(&lines(&tokens).join("\n"), &kimi(json!({"163839": {"content": "[PAD]", "special": true}})));
    let (json, peak) = heap::peak(|| tokenizer_of_ranks(&files, 163_840).unwrap().unwrap());
    let tokenizer = Tokenizer::from_bytes(&json).unwrap();
    assert_eq!(tokenizer.get_vocab_size(true), 163_840);
    assert!(peak < 200 << 20, "{peak}");
}

fn folder_with(ranks: &str, config: &Value) -> tempfile::TempDir {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join(RANKS), ranks).unwrap();
    fs::write(folder.path().join("tokenization_kimi.py"), "# code").unwrap();
    fs::write(folder.path().join(CONFIG), config.to_string()).unwrap();
    folder
}

#[test]
fn models_have_the_made_file_and_the_original_ones() {
    let folder = folder_with(&lines(&small()).join("\n"), &kimi(json!({})));
    let files = load(folder.path()).unwrap().files;
    let tokenizer = Tokenizer::from_bytes(&files["tokenizer.json"]).unwrap();
    assert_eq!(encode(&tokenizer, "abc"), [258]);
    for name in [RANKS, CONFIG, "tokenization_kimi.py"] {
        assert_eq!(files[name], fs::read(folder.path().join(name)).unwrap(), "{name}");
    }
    // Without text, like a model with an unreadable tokenizer.json.
    let folder = folder_with("?", &kimi(json!({})));
    let files = load(folder.path()).unwrap().files;
    assert!(!files.contains_key("tokenizer.json") && files.contains_key(RANKS));
}

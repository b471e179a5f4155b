//! SentencePiece BPE with byte fallback (`tokenizer.ggml.model` = `llama`).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pipeline::Pipeline;
use super::vocabulary::{Vocabulary, merges};
use crate::config::LoadError;
use crate::load::gguf::metadata::GgufFile;

/// Maximum number of merges per token, on average by length, that scores may imply. Real vocabularies imply two or
/// three. One made of the prefixes of a long token implies as many as it has characters, and memory quadratic in the
/// file's size.
const MAX_MERGES_PER_TOKEN: usize = 8;

/// Stands for a space.
const SPACE: &str = "\u{2581}";

pub(super) fn pipeline(file: &GgufFile, vocabulary: &Vocabulary<'_>) -> Result<Pipeline, LoadError> {
    let prefix = file.flag("tokenizer.ggml.add_space_prefix")?.unwrap_or(true);
    let merges = match merges(file)? {
        Some(merges) => merges,
        None => merges_from_scores(file, vocabulary)?,
    };
    let mut normalizers = vec![json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE})];
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.insert(0, json!({"type": "Prepend", "prepend": SPACE}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    Ok(Pipeline {
        normalizer: json!({"type": "Sequence", "normalizers": normalizers}),
        pre_tokenizer: Value::Null,
        post_processors: Vec::new(),
        decoder: json!({"type": "Sequence", "decoders": decoders}),
        model: json!({
            "type": "BPE",
            "dropout": null,
            "unk_token": vocabulary.unknown(),
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": true,
            "byte_fallback": true,
            "ignore_merges": false,
            "vocab": vocabulary.ids(),
            "merges": merges,
        }),
    })
}

/// SentencePiece joins the neighbours whose union scores best; so each way to put a token together from two
/// others is a merge, in the order of the tokens' scores.
fn merges_from_scores(file: &GgufFile, vocabulary: &Vocabulary<'_>) -> Result<Vec<Value>, LoadError> {
    const KEY: &str = "tokenizer.ggml.scores";
    let scores = file.numbers(KEY)?.ok_or_else(|| file.malformed(format!("metadata key {KEY} is missing")))?;
    let ids: BTreeMap<&str, usize> = vocabulary.normal().map(|(id, token)| (token, id)).collect();
    let cost = |token: &str| 16 + token.len();
    let mut budget = MAX_MERGES_PER_TOKEN * ids.keys().map(|token| cost(token)).sum::<usize>();
    let mut found = Vec::new();
    for (id, token) in vocabulary.normal() {
        let score = *scores.get(id).ok_or_else(|| file.malformed(format!("{KEY} has no entry {id}")))?;
        for (at, _) in token.char_indices().skip(1) {
            let (left, right) = token.split_at(at);
            if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right)) {
                budget = budget.checked_sub(cost(token)).ok_or_else(|| {
                    file.malformed(format!("{KEY} imply more than {MAX_MERGES_PER_TOKEN} merges for each token"))
                })?;
                found.push((score, (id, l, r), json!([left, right])));
            }
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    Ok(found.into_iter().map(|(_, _, merge)| merge).collect())
}

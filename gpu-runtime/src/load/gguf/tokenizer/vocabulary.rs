//! The tokens of a GGUF file and their roles.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::config::LoadError;
use crate::load::gguf::config::NO_TOKEN;
use crate::load::gguf::metadata::GgufFile;

/// llama.cpp's kinds of tokens.
const NORMAL: u64 = 1;
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

/// Pre-tokenizers whose models add `bos` by default.
const ADDS_BOS: [&str; 5] = ["llama3", "llama-v3", "llama-bpe", "lfm2", "tekken"];

/// The tokens by id, and the ids of those with a role.
pub(super) struct Vocabulary<'a> {
    tokens: Vec<&'a str>,
    /// Empty if the file does not say.
    kinds: Vec<u64>,
    bos: Option<usize>,
    eos: Option<usize>,
    unk: Option<usize>,
    pad: Option<usize>,
    /// Added tokens take the space after them.
    strips: bool,
    /// Encoding puts `bos` first.
    pub(super) add_bos: bool,
    /// Encoding puts `eos` last.
    pub(super) add_eos: bool,
}

impl<'a> Vocabulary<'a> {
    pub(super) fn read(file: &'a GgufFile, model: &str) -> Result<Self, LoadError> {
        let tokens = texts(file, "tokenizer.ggml.tokens")?;
        let mut seen = BTreeSet::new();
        if let Some(token) = tokens.iter().find(|&token| !seen.insert(token)) {
            return Err(file.malformed(format!("tokenizer.ggml.tokens has {token:?} twice")));
        }
        let kinds = file.integers("tokenizer.ggml.token_type")?.unwrap_or_default();
        if !kinds.is_empty() && kinds.len() != tokens.len() {
            return Err(file.malformed("tokenizer.ggml.token_type and tokenizer.ggml.tokens differ in length"));
        }
        let sentencepiece = model == "llama";
        let role = |name: &str, default: usize| {
            let key = format!("tokenizer.ggml.{name}_token_id");
            match file.integer(&key)? {
                Some(id) if id < tokens.len() as u64 => Ok(Some(id as usize)),
                // No encoding has these two: nothing is lost without them.
                Some(id) if id == NO_TOKEN || matches!(name, "padding" | "unknown") => {
                    tracing::warn!("{key} is {id}, outside the vocabulary: it is left out");
                    Ok(None)
                }
                Some(id) => Err(file.malformed(format!("{key} is {id}, outside the vocabulary"))),
                None => Ok(Some(default).filter(|&id| sentencepiece && id < tokens.len())),
            }
        };
        let (bos, eos, unk) = (role("bos", 1)?, role("eos", 2)?, role("unknown", 0)?);
        let adds_bos = sentencepiece || file.text("tokenizer.ggml.pre")?.is_some_and(|pre| ADDS_BOS.contains(&pre));
        Ok(Self {
            bos,
            eos,
            unk,
            pad: role("padding", usize::MAX)?,
            // Files do not say so of Phi-3, whose folders do; Phi-4 has another kind of tokenizer.
            strips: sentencepiece && file.text("general.architecture")? == Some("phi3"),
            add_bos: file.flag("tokenizer.ggml.add_bos_token")?.unwrap_or(adds_bos) && bos.is_some(),
            add_eos: file.flag("tokenizer.ggml.add_eos_token")?.unwrap_or(false) && eos.is_some(),
            tokens,
            kinds,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Token to id, as `tokenizer.json` has it.
    pub(super) fn ids(&self) -> Map<String, Value> {
        self.tokens.iter().enumerate().map(|(id, &token)| (token.to_owned(), id.into())).collect()
    }

    /// Ids and texts of the tokens that merges may produce.
    pub(super) fn normal(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let of_kind = |&(id, _): &(usize, &str)| self.kinds.get(id).is_none_or(|&kind| kind == NORMAL);
        self.tokens.iter().copied().enumerate().filter(of_kind)
    }

    /// Whether an added token takes the space after it.
    pub(super) fn strips(&self, token: &str) -> bool {
        self.strips && !["<unk>", "<s>", "<|endoftext|>"].contains(&token)
    }

    /// Tokens that are found in a text before all else: id, text, and whether decoding may skip it.
    pub(super) fn added(&self) -> impl Iterator<Item = (usize, &'a str, bool)> {
        let unk = self.unk;
        self.tokens.iter().copied().enumerate().filter_map(move |(id, token)| match self.kinds.get(id) {
            Some(&CONTROL) => Some((id, token, true)),
            Some(&USER_DEFINED) => Some((id, token, false)),
            _ if unk == Some(id) => Some((id, token, true)),
            _ => None,
        })
    }

    pub(super) fn unknown(&self) -> Option<&'a str> {
        self.text(self.unk)
    }

    /// The tokens `bos_token`, `eos_token`, `unk_token` and `pad_token`; a missing one is null.
    pub(super) fn roles(&self) -> Value {
        json!({
            "bos_token": self.text(self.bos),
            "eos_token": self.text(self.eos),
            "unk_token": self.text(self.unk),
            "pad_token": self.text(self.pad),
        })
    }

    /// The processor that adds `bos` and `eos`, if either is added.
    pub(super) fn template(&self) -> Option<Value> {
        let bos = self.bos.filter(|_| self.add_bos);
        let eos = self.eos.filter(|_| self.add_eos);
        if bos.is_none() && eos.is_none() {
            return None;
        }
        let special = |id, segment: u32| Some(json!({"SpecialToken": {"id": self.text(id)?, "type_id": segment}}));
        let part = |name: &str, segment: u32| {
            let sequence = json!({"Sequence": {"id": name, "type_id": segment}});
            special(bos, segment).into_iter().chain([sequence]).chain(special(eos, segment)).collect::<Vec<_>>()
        };
        let pair = [part("A", 0), part("B", 1)].concat();
        let mut specials = Map::new();
        for id in [bos, eos].into_iter().flatten() {
            let token = self.tokens[id];
            specials.insert(token.to_owned(), json!({"id": token, "ids": [id], "tokens": [token]}));
        }
        Some(json!({
            "type": "TemplateProcessing",
            "single": part("A", 0),
            "pair": pair,
            "special_tokens": specials,
        }))
    }

    fn text(&self, id: Option<usize>) -> Option<&'a str> {
        id.and_then(|id| self.tokens.get(id).copied())
    }
}

/// The merges of the file as pairs; `None` if it has none.
pub(super) fn merges(file: &GgufFile) -> Result<Option<Vec<Value>>, LoadError> {
    const KEY: &str = "tokenizer.ggml.merges";
    if file.value(KEY).is_none() {
        return Ok(None);
    }
    let pair = |merge: &str| {
        // The first part is never empty, so a space that starts it belongs to it.
        let start = merge.chars().next().map_or(0, char::len_utf8);
        let at = start + merge.get(start..)?.find(' ')?;
        Some(json!([&merge[..at], &merge[at + 1..]]))
    };
    let merges = texts(file, KEY)?;
    let pairs = merges.iter().map(|merge| pair(merge).ok_or_else(|| file.malformed(format!("{KEY} has {merge:?}"))));
    pairs.collect::<Result<_, _>>().map(Some)
}

fn texts<'a>(file: &'a GgufFile, key: &str) -> Result<Vec<&'a str>, LoadError> {
    file.texts(key)?.ok_or_else(|| file.malformed(format!("metadata key {key} is missing")))
}

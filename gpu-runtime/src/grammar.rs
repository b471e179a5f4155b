//! Output that follows a JSON schema: after each token, the set of tokens that may come next.
//!
//! `llguidance` compiles a schema to a grammar over bytes and walks the vocabulary's prefix tree along it. Both are bounded here,
//! and what exceeds a bound is the user's error: a schema of a few bytes may stand for an enormous grammar.

use std::fmt;
use std::sync::Arc;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, TokRxInfo, TokTrie};
use llguidance::{JsonCompileOptions, Matcher, ParserFactory, token_bytes_from_tokenizer_json};
use serde_json::Value;
use trainyard_protocol::{CallMarks, OpError};

use crate::fault::guarded;
use crate::sampling::TokenMask;
use crate::stop::Detokenizer;

/// White space between the parts of a value: enough for common layouts, but no blank lines and an end to it, so that no sample is
/// filled with it.
const WHITE_SPACE: &str = r"\n?[ \t]{0,16}";
/// Maximum number of symbols of a grammar.
const MAX_GRAMMAR: usize = 100_000;
/// Maximum number of states of its lexer, of one to two kilobytes each.
const MAX_LEXER_STATES: usize = 10_000;
/// Work to build the lexer: about 10 ms.
const LEXER_FUEL: u64 = 500_000;
/// Maximum bytes of the library's reasons in an error.
const MAX_REASON: usize = 300;

/// Bytes of stack of a thread that compiles schemas. The library follows values, and references from one to another, by recursion:
/// at most as many as a schema may have ([`MAX_SCHEMA_VALUES`](trainyard_protocol::limits::MAX_SCHEMA_VALUES)). Only what is used
/// takes memory.
pub(crate) const COMPILE_STACK: usize = 256 << 20;

/// Compiles schemas for the vocabulary of a model.
pub(crate) struct GrammarCompiler {
    factory: ParserFactory,
    eos: Arc<[u32]>,
}

impl fmt::Debug for GrammarCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarCompiler").finish_non_exhaustive()
    }
}

/// What an error of a schema names: the setting of a sample, or that of the APIs with tools.
const SCHEMA: &str = "sampling_params.json_schema";
const TOOLS: &str = "tools";

fn refused(reason: impl fmt::Display) -> OpError {
    refused_in(SCHEMA, reason)
}

fn refused_in(field: &str, reason: impl fmt::Display) -> OpError {
    let text = reason.to_string();
    // The library catches its own panics, whose texts say nothing to a client.
    let mut reason = match text.lines().next() {
        Some(line) if !line.starts_with("panic") => line.to_owned(),
        _ => "it can't be compiled".to_owned(),
    };
    reason.truncate(reason.floor_char_boundary(MAX_REASON));
    OpError::user(format!("{field}: {reason}"))
}

/// Parses a schema, and sets the white space of values.
fn laid_out(schema: &str) -> Result<Value, OpError> {
    let mut schema: Value = serde_json::from_str(schema).map_err(refused)?;
    if !schema.is_object() {
        return Err(refused("must be an object"));
    }
    let layout = JsonCompileOptions {
        whitespace_flexible: true,
        whitespace_pattern: Some(WHITE_SPACE.to_owned()),
        ..JsonCompileOptions::default()
    };
    // Also where the schema brings settings of its own.
    layout.apply_to(&mut schema);
    Ok(schema)
}

impl GrammarCompiler {
    /// Makes a compiler for a model with this tokenizer, `vocab_size` token ids and the end tokens `eos`.
    ///
    /// # Errors
    /// An error of the user, if the bytes of the model's tokens are unknown.
    pub(crate) fn new(detokenizer: &Detokenizer, vocab_size: usize, eos: &[u32]) -> Result<Self, OpError> {
        let unsuitable = |reason: String| refused(format_args!("this model's tokenizer does not allow it: {reason}"));
        let json = detokenizer.to_json().map_err(unsuitable)?;
        let bytes = guarded("token bytes", || token_bytes_from_tokenizer_json(&json));
        let mut words = bytes.map_err(|fault| fault.error())?.map_err(|error| unsuitable(error.to_string()))?;
        words.resize(vocab_size, Vec::new());
        let size = u32::try_from(vocab_size).map_err(|error| unsuitable(error.to_string()))?;
        let first_eos = eos.first().copied().unwrap_or(llguidance::toktrie::INVALID_TOKEN);
        let trie = guarded("token tree", || TokTrie::from(&TokRxInfo::new(size, first_eos), &words));
        let env = Arc::new(ApproximateTokEnv::new(trie.map_err(|fault| fault.error())?));
        let mut factory = ParserFactory::new_simple(&(env as _)).map_err(|error| unsuitable(error.to_string()))?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.max_grammar_size = MAX_GRAMMAR;
        limits.max_lexer_states = MAX_LEXER_STATES;
        limits.initial_lexer_fuel = LEXER_FUEL;
        limits.precompute_large_lexemes = false;
        limits.verbose_errors = false;
        Ok(Self { factory, eos: eos.into() })
    }

    /// Compiles a schema. A `$ref` leads to a part of the schema itself; nothing is fetched. The thread has [`COMPILE_STACK`].
    ///
    /// # Errors
    /// The user's: the schema is wrong, uses a keyword that is not supported, can't be satisfied or is too large.
    pub(crate) fn compile(&self, schema: &str) -> Result<Grammar, OpError> {
        self.start(SCHEMA, TopLevelGrammar::from_json_schema(laid_out(schema)?))
    }

    /// Compiles the schema of calls between marks.
    ///
    /// # Errors
    /// As [`GrammarCompiler::compile`].
    pub(crate) fn compile_calls(&self, schema: &str, marks: &CallMarks) -> Result<Grammar, OpError> {
        let quoted = |text: &str| Value::from(text).to_string();
        let more = marks.between.as_deref().map(|text| format!(" ({} call)*", quoted(text))).unwrap_or_default();
        let lark = format!("start: call{more}\ncall: {} @value {}\n", quoted(&marks.before), quoted(&marks.after));
        let value = GrammarWithLexer {
            name: Some("value".to_owned()),
            ..GrammarWithLexer::from_json_schema(laid_out(schema)?)
        };
        let grammars = vec![GrammarWithLexer::from_lark(lark), value];
        self.start(TOOLS, TopLevelGrammar { grammars, max_tokens: None })
    }

    fn start(&self, field: &'static str, grammar: TopLevelGrammar) -> Result<Grammar, OpError> {
        let parser = guarded("schema", || self.factory.create_parser(grammar));
        let parser = parser.map_err(|_| refused_in(field, "it can't be compiled"))?;
        let parser = parser.map_err(|error| refused_in(field, error))?;
        let mut grammar =
            Grammar { field, matcher: Matcher::new(Ok(parser)), eos: Arc::clone(&self.eos), allowed: Arc::default() };
        grammar.advance()?;
        Ok(grammar)
    }
}

/// A grammar, and where one sequence is in it.
#[derive(Clone)]
pub(crate) struct Grammar {
    /// Setting that errors name.
    field: &'static str,
    matcher: Matcher,
    eos: Arc<[u32]>,
    allowed: Arc<TokenMask>,
}

impl Grammar {
    /// The tokens that may come next: end tokens where the output is complete.
    pub(crate) fn allowed(&self) -> &TokenMask {
        &self.allowed
    }

    /// Appends an allowed token; whether the output is complete and nothing can follow.
    ///
    /// # Errors
    /// The user's, when the grammar takes too much work.
    pub(crate) fn push(&mut self, token: u32) -> Result<bool, OpError> {
        if self.eos.contains(&token) {
            return Ok(true);
        }
        self.matcher.consume_token(token).map_err(|error| refused_in(self.field, error))?;
        if self.matcher.is_stopped() {
            return Ok(true);
        }
        self.advance()?;
        Ok(false)
    }

    fn advance(&mut self) -> Result<(), OpError> {
        let mask = self.matcher.compute_mask_or_eos().map_err(|error| refused_in(self.field, error))?;
        let mut allowed = TokenMask::new(mask.as_slice().to_vec());
        if self.eos.iter().any(|&eos| allowed.allows(eos)) {
            self.eos.iter().for_each(|&eos| allowed.allow(eos));
        }
        if allowed.is_empty() {
            return Err(refused_in(self.field, "no token of the vocabulary continues the output"));
        }
        self.allowed = Arc::new(allowed);
        Ok(())
    }
}

#[cfg(test)]
#[path = "grammar_fuzz.rs"]
mod fuzz;
#[cfg(test)]
#[path = "grammar_tests.rs"]
mod tests;

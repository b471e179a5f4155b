//! The base models: their files, whether they can be served, and their tokenizers.

use std::fs;
use std::path::Path;

use trainyard_gpu_runtime::config::{LoadError, ModelSource};
use trainyard_gpu_runtime::load;
use trainyard_gpu_runtime::tokenizer::{RoundTrip, round_trip};

use super::Check;
use crate::config::{Config, NamedPath};

const MODELS: &str = "models";
const TOKENIZERS: &str = "tokenizers";
/// A text with letters, digits, a line feed and multi-byte characters.
const TEXT: &str = "Trains leave at 10:45,\nnot before. Größe: 3 µm";

/// Checks all models; returns those that can be loaded.
pub(super) fn check(config: &Config) -> (Vec<Check>, Vec<ModelSource>) {
    let (mut checks, mut tokenizers, mut sources) = (Vec::new(), Vec::new(), Vec::new());
    for NamedPath { name, path } in &config.models {
        match load::open(path) {
            Ok(source) => {
                checks.push(Check::ok(MODELS, name, describe(&source, path, config)));
                tokenizers.push(tokenizer(name, tried(&source), &source));
                sources.push(source);
            }
            Err(error) => checks.push(Check::failure(MODELS, name, error.to_string(), advice(&error))),
        }
    }
    checks.extend(tokenizers);
    (checks, sources)
}

fn describe(source: &ModelSource, path: &Path, config: &Config) -> String {
    let size = load::location(path).map_or(0, |path| bytes(&path));
    let experts = source.config.blocks.iter().filter_map(|block| block.experts.as_ref()).map(|experts| experts.count);
    // Ranks that do not divide them are reported with the memory.
    let experts = experts.max().map_or_else(String::new, |count| match config.parallel.replica() {
        ranks if ranks > 1 && count.is_multiple_of(ranks) => {
            format!(", {count} experts, {} on each rank", count / ranks)
        }
        _ => format!(", {count} experts"),
    });
    format!(
        "{}, {} layers{experts}, {} tokens of context, {} MiB of files, computed in {}",
        source.config.arch,
        source.config.num_layers(),
        source.config.max_position_embeddings,
        size.div_ceil(1 << 20),
        config.dtype.name()
    )
}

/// Returns the size of a file, or of the files in a folder.
fn bytes(path: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| if file.is_file() { file.len() } else { 0 });
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| size(&entry.path())).sum(),
        Err(_) => size(path),
    }
}

fn advice(error: &LoadError) -> &'static str {
    match error {
        LoadError::Io { .. } => {
            "pass --model NAME=PATH with a Hugging Face folder or a .gguf file that this user can read"
        }
        LoadError::Unsupported(_) => {
            "this family or format is not supported: docs/users/compatibility.md lists those that are"
        }
        LoadError::Blocks(_) => "pass --weights bf16, or --device cpu and --parallel without tp and ep",
        LoadError::Memory { .. } => "pass a larger --memory-mib",
        LoadError::Device => "pass another --device, such as cpu",
        LoadError::DeviceMemory => "pass fewer models, or another --device, such as cpu",
        LoadError::Layout(_) | LoadError::Rank { .. } => {
            "pass --parallel with fewer ranks, or with a number that divides the model's dimensions"
        }
        LoadError::Malformed { .. } | LoadError::MissingTensor(_) | LoadError::WrongShape { .. } => {
            "the file is damaged or incomplete: download it again and compare its digest"
        }
    }
}

/// What became of [`TEXT`], or why the tokenizer can't be read; `None` for a model without a file of one.
fn tried(source: &ModelSource) -> Option<Result<RoundTrip, LoadError>> {
    match source.files.get("tokenizer.json") {
        Some(json) => Some(round_trip(json, TEXT)),
        None => load::tokenizer_of_ranks(&source.files, source.config.vocab_size).err().map(Err),
    }
}

fn tokenizer(name: &str, tried: Option<Result<RoundTrip, LoadError>>, source: &ModelSource) -> Check {
    const NO_TOKENIZER: &str = "clients need a tokenizer of their own, and stop strings are refused: put tokenizer.json \
                                beside the weights";
    match tried {
        None => Check::warning(TOKENIZERS, name, "missing", NO_TOKENIZER),
        Some(Err(error)) => {
            let advice = "the model would be served without text: replace the file with the model's, or put a tokenizer.json beside it";
            Check::warning(TOKENIZERS, name, error.to_string(), advice)
        }
        Some(Ok(trip)) => judge(name, &trip, source.config.vocab_size),
    }
}

fn judge(name: &str, trip: &RoundTrip, vocab_size: usize) -> Check {
    let RoundTrip { tokens, text, vocabulary } = trip;
    if *vocabulary > vocab_size {
        let value = format!("{vocabulary} tokens, but the model has {vocab_size}");
        return Check::warning(TOKENIZERS, name, value, "the tokenizer may belong to another model");
    }
    if text.trim() != TEXT {
        let value = format!("a text is decoded as {text:?}");
        return Check::warning(TOKENIZERS, name, value, "expected only from tokenizers that normalize text");
    }
    Check::ok(TOKENIZERS, name, format!("{vocabulary} tokens; a text of {tokens} tokens is decoded unchanged"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::super::Status;
    use super::*;
    use crate::config::{ServeFlags, SharedFlags};

    fn checked(path: &Path) -> Vec<Check> {
        let models = vec![NamedPath { name: "m".to_owned(), path: path.to_owned() }];
        let shared = SharedFlags { models, ..SharedFlags::default() };
        check(&Config::resolve(ServeFlags { shared, ..ServeFlags::default() }).unwrap()).0
    }

    #[test]
    fn a_missing_file_and_a_damaged_one_are_failures() {
        let dir = tempfile::tempdir().unwrap();
        let missing = &checked(&dir.path().join("none"))[0];
        assert_eq!(missing.status, Status::Failure);
        assert!(missing.value.contains("none"), "{missing:?}");
        let file = dir.path().join("m.gguf");
        fs::write(&file, "GGUF and nothing more").unwrap();
        let damaged = &checked(&file)[0];
        assert_eq!(damaged.status, Status::Failure);
        assert!(damaged.advice.as_ref().unwrap().contains("download"), "{damaged:?}");
    }

    /// A `tiktoken.model` is tried like a `tokenizer.json`, and what is wrong with it is told with its line.
    #[test]
    fn ranks_are_tried_too() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama");
        let dir = tempfile::tempdir().unwrap();
        for name in ["config.json", "model.safetensors"] {
            fs::copy(golden.join(name), dir.path().join(name)).unwrap();
        }
        let tried = || checked(dir.path()).pop().unwrap();
        assert_eq!((tried().status, tried().value.as_str()), (Status::Warning, "missing"));
        let class = r#"{"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]}}"#;
        fs::write(dir.path().join("tokenizer_config.json"), class).unwrap();
        fs::write(dir.path().join("tiktoken.model"), "AA== 0\nAA== 1\n").unwrap();
        let damaged = tried();
        assert_eq!(damaged.status, Status::Warning);
        assert_eq!(damaged.value, "tiktoken.model: line 2: its token is in line 1 already");
        let ranks = (0..=u8::MAX).map(|byte| format!("{} {byte}\n", STANDARD.encode([byte])));
        fs::write(dir.path().join("tiktoken.model"), ranks.collect::<String>()).unwrap();
        assert_eq!(tried().status, Status::Ok, "{}", tried().value);
    }

    #[test]
    fn tokenizers_are_judged() {
        let trip = |text: &str, vocabulary| RoundTrip { tokens: 9, text: text.to_owned(), vocabulary };
        assert_eq!(judge("m", &trip(TEXT, 10), 10).status, Status::Ok);
        assert_eq!(judge("m", &trip(&format!(" {TEXT}"), 10), 10).status, Status::Ok);
        assert_eq!(judge("m", &trip("trains", 10), 10).status, Status::Warning);
        assert_eq!(judge("m", &trip(TEXT, 11), 10).status, Status::Warning);
        assert!(round_trip(b"{}", TEXT).is_err());
    }
}

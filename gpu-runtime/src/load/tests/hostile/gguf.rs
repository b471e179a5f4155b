//! GGUF headers, byte by byte.

use std::fs;

use candle_core::quantized::gguf_file::Value;
use proptest::prelude::*;

use super::{attempt, refusal};
use crate::load::tests::gguf::write_llama;

/// Numbers of value types in the format.
const U8: u32 = 0;
const U32: u32 = 4;
const F32: u32 = 6;
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

/// Keys that the loader reads, without the architecture.
const KEYS: &[&str] = &[
    "general.alignment",
    "general.architecture",
    "llama.attention.head_count",
    "llama.attention.head_count_kv",
    "llama.attention.key_length",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.attention.value_length",
    "llama.block_count",
    "llama.context_length",
    "llama.embedding_length",
    "llama.expert_count",
    "llama.feed_forward_length",
    "llama.rope.dimension_count",
    "llama.rope.freq_base",
    "llama.rope.scaling.factor",
    "llama.rope.scaling.type",
    "split.count",
    "tokenizer.chat_template",
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.merges",
    "tokenizer.ggml.model",
    "tokenizer.ggml.pre",
    "tokenizer.ggml.scores",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.tokens",
];

/// A file that is written as nobody checks it.
struct Bytes(Vec<u8>);

impl Bytes {
    /// Magic, version 3 and the counts.
    fn new(tensors: u64, keys: u64) -> Self {
        Self(b"GGUF".to_vec()).u32(3).u64(tensors).u64(keys)
    }

    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    fn text(self, text: &[u8]) -> Self {
        self.u64(text.len() as u64).raw(text)
    }

    /// Type and length of an array whose elements follow.
    fn array(self, kind: u32, count: u64) -> Self {
        self.u32(ARRAY).u32(kind).u64(count)
    }

    fn tensor(self, name: &[u8], extents: &[u64], dtype: u32, offset: u64) -> Self {
        let start = self.text(name).u32(extents.len() as u32);
        extents.iter().fold(start, |bytes, &extent| bytes.u64(extent)).u32(dtype).u64(offset)
    }

    /// Loads it as a file.
    fn attempt(&self) -> Result<(), crate::config::LoadError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        fs::write(&path, &self.0).unwrap();
        attempt(&path, self.0.len())
    }

    #[track_caller]
    fn refused_with(&self, expected: &str) {
        let found = self.attempt().unwrap_err().to_string();
        assert!(found.contains("model.gguf") && found.contains(expected), "{expected}: {found}");
    }
}

/// The bytes of a model that loads, with a tokenizer.
fn valid() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let texts = |all: &[&str]| Value::Array(all.iter().map(|&text| Value::String(text.into())).collect());
    let key = |name: &str, value| (format!("tokenizer.ggml.{name}"), value);
    write_llama(
        &path,
        &[
            key("model", Value::String("llama".into())),
            key("tokens", texts(&["<unk>", "<s>", "</s>", "a", "b", "ab"])),
            key("token_type", Value::Array([2, 3, 3, 1, 1, 1].map(Value::I32).into())),
            key("scores", Value::Array([0.0, 0.0, 0.0, -1.0, -2.0, -3.0].map(Value::F32).into())),
        ],
    );
    let bytes = fs::read(&path).unwrap();
    attempt(&path, bytes.len()).unwrap();
    bytes
}

#[test]
fn counts_and_lengths_beyond_the_file_are_refused() {
    for huge in [1 << 20, 1 << 40, u64::MAX] {
        Bytes::new(huge, 0).refused_with(&format!("tensor 0 of {huge}: truncated"));
        Bytes::new(0, huge).refused_with(&format!("metadata key 0 of {huge}: truncated"));
        Bytes::new(0, 1).u64(huge).raw(b"name").refused_with(&format!("truncated GGUF file: {huge} more bytes"));
        Bytes::new(0, 1).text(b"k").u32(TEXT).u64(huge).refused_with("metadata key k: truncated");
        for kind in [U8, F32, TEXT, ARRAY] {
            let array = Bytes::new(0, 1).text(b"k").array(kind, huge).u64(0);
            array.refused_with(&format!("metadata key k: {huge} elements, with 8 bytes left"));
        }
        Bytes::new(0, 1).text(b"k").array(ARRAY, 1).u32(U8).u64(huge).refused_with("metadata key k: ");
    }
}

#[test]
fn large_arrays_take_a_few_times_their_size() {
    const COUNT: usize = 1 << 20;
    let key = |kind, count| Bytes::new(0, 1).text(b"tokenizer.ggml.token_type").array(kind, count);
    key(U8, 4 * COUNT as u64).raw(&vec![1; 4 * COUNT]).refused_with("general.architecture is missing");
    key(TEXT, COUNT as u64).raw(&vec![0; 8 * COUNT]).refused_with("general.architecture is missing");
    let array = Bytes(Vec::new()).u32(U8).u64(0).0;
    key(ARRAY, COUNT as u64).raw(&array.repeat(COUNT)).refused_with("general.architecture is missing");
    let keys = (0..COUNT as u64 / 8).fold(Bytes::new(0, COUNT as u64 / 8), |bytes, key| {
        bytes.text(&format!("{key:06}").into_bytes()).u32(BOOL).raw(&[0])
    });
    keys.refused_with("general.architecture is missing");
    let tensors = (0..COUNT as u64 / 8).fold(Bytes::new(COUNT as u64 / 8, 0), |bytes, name| {
        bytes.tensor(&format!("{name:06}").into_bytes(), &[], 0, 0)
    });
    tensors.refused_with("general.architecture is missing");
}

#[test]
fn nested_arrays_are_skipped_to_a_depth() {
    let nested = |depth| {
        let key = Bytes::new(0, 1).text(b"k").u32(ARRAY);
        (0..depth).fold(key, |bytes, _| bytes.u32(ARRAY).u64(1)).u32(U8).u64(1).raw(&[7])
    };
    nested(16).refused_with("general.architecture is missing");
    for depth in [17, 100_000] {
        nested(depth).refused_with("metadata key k: arrays are nested more than 16 deep");
    }
}

#[test]
fn damaged_keys_are_refused_by_name() {
    Bytes(b"GGML".to_vec()).u32(3).refused_with("does not begin with \"GGUF\"");
    Bytes(b"GGUF".to_vec()).u32(4).refused_with("version 4");
    Bytes::new(0, 1).text(&[b'k', 0xff]).u32(U8).raw(&[1]).refused_with("metadata key 0 of 1: its name is not UTF-8");
    Bytes::new(0, 1).text(b"k").u32(13).u64(0).refused_with("metadata key k: value type 13 is unknown");
    Bytes::new(0, 1).text(b"k").u32(BOOL).raw(&[2]).refused_with("metadata key k: truth value 2");
    Bytes::new(0, 1).text(b"k").array(BOOL, 2).raw(&[1, 9]).refused_with("metadata key k: truth value 9");
    let twice = Bytes::new(0, 2).text(b"k").u32(U8).raw(&[1]).text(b"k").u32(U8).raw(&[1]);
    twice.refused_with("metadata key k occurs twice");
    for alignment in [0, u64::MAX] {
        let key = Bytes::new(0, 1).text(b"general.alignment").u32(10).u64(alignment);
        assert!(key.attempt().is_err());
    }
}

#[test]
fn damaged_tensors_are_refused_by_name() {
    let llama = |tensors| Bytes::new(tensors, 1).text(b"general.architecture").u32(TEXT).text(b"llama");
    let tensor = |extents: &[u64], dtype, offset| llama(1).tensor(b"output.weight", extents, dtype, offset);
    tensor(&[1; 5], 0, 0).refused_with("tensor output.weight: 5 dimensions, at most 4");
    tensor(&[1], 4, 0).refused_with("tensor output.weight: element type Q4_2 is not supported");
    tensor(&[1], 20, 0).refused_with("tensor output.weight: element type IQ4_NL is not supported");
    tensor(&[1], 99, 0).refused_with("tensor output.weight: element type number 99 is not supported");
    let unsupported = tensor(&[256], 15, 0).attempt().unwrap_err().to_string();
    assert!(unsupported.contains("GGUF tensor output.weight of type Q8_K"), "{unsupported}");
    tensor(&[], 0, 0).refused_with("tensor output.weight has shape []");
    tensor(&[31], 2, 0).refused_with("tensor output.weight has shape [31]");
    for extents in [&[1 << 32, 1 << 32][..], &[u64::MAX], &[1 << 62, 4], &[u64::MAX; 4]] {
        tensor(extents, 0, 0).refused_with("tensor output.weight has shape [");
    }
    for (extent, offset) in [(1 << 20, 0), (1, 1 << 20), (1, u64::MAX), (0, u64::MAX)] {
        tensor(&[extent], 0, offset).refused_with("truncated GGUF file: tensor output.weight ends at byte");
    }
    let name = llama(1).tensor(&[0xc3, 0x28], &[1], 0, 0);
    name.refused_with("tensor 0 of 1: its name is not UTF-8");
    let twice = llama(2).tensor(b"output.weight", &[0], 0, 0).tensor(b"output.weight", &[0], 0, 0);
    twice.refused_with("tensor output.weight occurs twice");
    let twice = llama(2).tensor(b"blk.1.ffn_up.bias", &[0], 0, 0).tensor(b"blk.01.ffn_up.bias", &[0], 0, 0);
    let twice = twice.raw(&[0; 64]);
    twice.refused_with("tensor blk.1.ffn_up.bias occurs twice");
}

#[test]
fn scores_that_imply_a_merge_for_every_character_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let tokens: Vec<_> = (1..400).map(|length| Value::String("a".repeat(length))).collect();
    let key = |name: &str, value| (format!("tokenizer.ggml.{name}"), value);
    let scores = tokens.iter().map(|_| Value::F32(0.0)).collect();
    let model = key("model", Value::String("llama".into()));
    write_llama(&path, &[model, key("tokens", Value::Array(tokens)), key("scores", Value::Array(scores))]);
    let found = refusal(&path, fs::metadata(&path).unwrap().len() as usize);
    assert!(found.contains("tokenizer.ggml.scores imply more than 8 merges"), "{found}");
}

/// A value of any type, as the file has it.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    let scalar = |kind, size| {
        prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(0xff), any::<u8>()], size)
            .prop_map(move |bytes| Bytes(Vec::new()).u32(kind).raw(&bytes).0)
    };
    let array = |kind, size: usize| {
        (0..4_usize).prop_flat_map(move |count| {
            prop::collection::vec(any::<u8>(), count * size)
                .prop_map(move |bytes| Bytes(Vec::new()).array(kind, count as u64).raw(&bytes).0)
        })
    };
    let text = prop_oneof![Just("llama".to_owned()), Just("gpt2".to_owned()), "\\PC{0,8}"];
    let texts = prop::collection::vec("\\PC{0,4}", 0..600).prop_map(|texts| {
        let array = Bytes(Vec::new()).array(TEXT, texts.len() as u64);
        texts.iter().fold(array, |bytes, text| bytes.text(text.as_bytes())).0
    });
    prop_oneof![
        scalar(U8, 1),
        scalar(U32, 4),
        scalar(5, 4),
        scalar(F32, 4),
        scalar(10, 8),
        scalar(11, 8),
        scalar(12, 8),
        any::<bool>().prop_map(|flag| Bytes(Vec::new()).u32(BOOL).raw(&[u8::from(flag)]).0),
        text.prop_map(|text| Bytes(Vec::new()).u32(TEXT).text(text.as_bytes()).0),
        array(U8, 1),
        array(5, 4),
        array(F32, 4),
        texts,
    ]
}

/// The first bytes of the model with the value under a key that it may have already, which then is renamed.
fn with_key(model: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let mut model = model.to_vec();
    let written = Bytes(Vec::new()).text(key.as_bytes()).0;
    if let Some(at) = model.windows(written.len()).position(|window| window == written) {
        model[at + 8] = b'~';
    }
    let count = u64::from_le_bytes(*model[16..].first_chunk().unwrap()) + 1;
    let start = Bytes(model[..16].to_vec()).u64(count).raw(&written).raw(value);
    // The tensors begin a few bytes later after alignment.
    start.raw(&model[24..]).raw(&[0; 64]).0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_headers_are_refused(version in 1..4_u32, body in prop::collection::vec(any::<u8>(), 0..512)) {
        let bytes = Bytes(b"GGUF".to_vec()).u32(version).raw(&body);
        prop_assert!(bytes.attempt().is_err());
    }

    #[test]
    fn small_counts_with_random_bodies_are_refused(
        tensors in 0..4_u64, keys in 0..4_u64, body in prop::collection::vec(prop_oneof![0..16_u8, any::<u8>()], 0..512),
    ) {
        prop_assert!(Bytes::new(tensors, keys).raw(&body).attempt().is_err());
    }

    #[test]
    fn truncated_files_are_refused(part in 0.0..1.0) {
        let model = valid();
        let length = (model.len() as f64 * part * 0.999) as usize;
        prop_assert!(Bytes(model[..length].to_vec()).attempt().is_err());
    }

    #[test]
    fn changed_bytes_load_or_are_refused(changes in prop::collection::vec((0..2048_usize, any::<u8>()), 1..4)) {
        let mut model = valid();
        for (at, byte) in changes {
            model[at] = byte;
        }
        let _ = Bytes(model).attempt();
    }

    #[test]
    fn values_of_any_type_load_or_are_refused(key in prop::sample::select(KEYS), value in any_value()) {
        let _ = Bytes(with_key(&valid(), key, &value)).attempt();
    }
}

//! GGUF files of families whose converters change more than names, written here from Hugging Face's folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use candle_core::{Device, Tensor};
use safetensors::SafeTensors;
use serde_json::json;
use tempfile::TempDir;

use super::gguf::{gguf_name, metadata, write};
use super::{assert_same_tensors, config_of, folder, golden, refusal};
use crate::config::{ModelConfig, RopeScaling};
use crate::load::load;

pub(super) type Metadata = Vec<(String, Value)>;
pub(super) type Tensors = Vec<(String, Tensor)>;

/// The tensors of a folder as its files have them.
pub(super) fn raw(folder: &Path) -> BTreeMap<String, Tensor> {
    let bytes = fs::read(folder.join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        let values: Vec<f32> = view.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        (name, Tensor::from_vec(values, view.shape(), &Device::Cpu).unwrap())
    };
    file.tensors().into_iter().map(tensor).collect()
}

/// A folder of some blocks of a golden model, in this order, with a changed configuration.
pub(super) fn with_blocks(
    family: &str,
    blocks: &[usize],
    change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
) -> TempDir {
    let mut config = config_of(family);
    change(&mut config);
    let folder = folder(family, &config);
    let mut all = BTreeMap::new();
    for (name, tensor) in raw(folder.path()) {
        let Some((before, rest)) = name.split_once("layers.") else {
            all.insert(name, tensor);
            continue;
        };
        let (block, rest) = rest.split_once('.').unwrap();
        for (to, _) in blocks.iter().enumerate().filter(|(_, from)| from.to_string() == block) {
            all.insert(format!("{before}layers.{to}.{rest}"), tensor.clone());
        }
    }
    candle_core::safetensors::save(&all.into_iter().collect(), folder.path().join("model.safetensors")).unwrap();
    folder
}

/// Interleaves the halves of each head's rows.
pub(super) fn interleaved(tensor: &Tensor, heads: usize) -> Tensor {
    let rows = tensor.dim(0).unwrap();
    let split = tensor.reshape((heads, 2, rows / heads / 2, tensor.elem_count() / rows)).unwrap();
    split.transpose(1, 2).unwrap().contiguous().unwrap().reshape(tensor.dims()).unwrap()
}

pub(super) fn set(keys: &mut Metadata, key: &str, value: Value) {
    keys.retain(|(found, _)| found != key);
    keys.push((key.to_owned(), value));
}

pub(super) fn count(value: usize) -> Value {
    Value::U32(value as u32)
}

/// Files of families without experts and recurrences.
fn converted(arch: &str, folder: &Path) -> (Metadata, Tensors) {
    let source = load(folder).unwrap();
    let config = &source.config;
    let permutes = ["smollm3", "mistral3"].contains(&arch);
    let convert = |(name, tensor): (String, Tensor)| {
        let tensor = match name.rsplit('.').nth(1) {
            Some("q_proj") if permutes => interleaved(&tensor, config.num_heads),
            Some("k_proj") if permutes => interleaved(&tensor, config.num_kv_heads),
            _ => tensor,
        };
        let own = match arch {
            "olmo2" => name
                .replace("post_attention_layernorm", "post_attention_norm")
                .replace("post_feedforward_layernorm", "post_ffw_norm"),
            _ => name.replace("self_attn.qkv_proj", "attn_qkv").replace("mlp.gate_up_proj", "ffn_up"),
        };
        (gguf_name(&own), tensor)
    };
    let mut tensors: Tensors = raw(folder).into_iter().map(convert).collect();
    let mut keys = metadata(arch, &source);
    let mut own = |key: &str, value: Value| set(&mut keys, &format!("{arch}.{key}"), value);
    own("rope.dimension_count", count(config.rope_dim()));
    match &config.ropes[0].scaling {
        RopeScaling::Yarn { factor, beta_fast, beta_slow, original_max_position_embeddings: original, .. } => {
            own("rope.scaling.type", Value::String("yarn".into()));
            own("rope.scaling.factor", Value::F32(*factor as f32));
            own("rope.scaling.original_context_length", count(*original));
            own("rope.scaling.yarn_beta_fast", Value::F32(*beta_fast as f32));
            own("rope.scaling.yarn_beta_slow", Value::F32(*beta_slow as f32));
        }
        RopeScaling::Long { factors, attention_factor, original_max_position_embeddings: original } => {
            // The context beyond that of pre-training, which the configuration does not keep.
            own("context_length", Value::U32(512));
            own("rope.scaling.original_context_length", count(*original));
            own("rope.scaling.attn_factor", Value::F32(*attention_factor as f32));
            let short: Vec<f32> = factors.iter().map(|&factor| factor as f32).collect();
            let long = Tensor::new(&[1_f32, 1.5, 2.0, 4.0, 8.0, 16.0], &Device::Cpu).unwrap();
            tensors.push(("rope_factors_long.weight".into(), long));
            tensors.push(("rope_factors_short.weight".into(), Tensor::new(short, &Device::Cpu).unwrap()));
        }
        _ => {}
    }
    let windows: Vec<_> = config.blocks.iter().map(|block| block.attention().unwrap().window).collect();
    match arch {
        "phi3" => own("attention.sliding_window", count(windows[0].unwrap_or(0))),
        "olmo2" => {
            own("attention.sliding_window", count(windows.iter().flatten().next().copied().unwrap()));
            let slides = windows.iter().map(|window| Value::Bool(window.is_some()));
            own("attention.sliding_window_pattern", Value::Array(slides.collect()));
            own("rope.scaling.yarn_attn_factor", Value::F32(1.207_944_2));
        }
        "mistral3" => {
            if let Some(scaling) = config.query_scaling {
                own("rope.scaling.yarn_log_multiplier", Value::F32(1.0));
                own("attention.temperature_scale", Value::F32(scaling.beta as f32));
            }
        }
        _ => {}
    }
    (keys, tensors)
}

/// The file of a folder after a change.
fn changed(arch: &str, folder: &Path, change: impl FnOnce(&mut Metadata, &mut Tensors)) -> TempDir {
    let (mut keys, mut tensors) = converted(arch, folder);
    change(&mut keys, &mut tensors);
    let file = tempfile::tempdir().unwrap();
    write(&file.path().join("model.gguf"), &keys, &tensors);
    file
}

fn assert_is(file: &Path, reference: &Path) -> ModelConfig {
    let (source, mut reference) = (load(file).unwrap(), load(reference).unwrap());
    reference.config.eos_token_ids = vec![2];
    assert_eq!(source.config, reference.config);
    assert_same_tensors(&source, &reference);
    source.config
}

/// llama.cpp knows no other interval of blocks without positions than four.
fn smollm3() -> TempDir {
    with_blocks("smollm3", &[0, 1, 2, 0, 1], |config| {
        config.remove("no_rope_layers");
        config.remove("layer_types");
        config.insert("num_hidden_layers".into(), json!(5));
    })
}

#[test]
fn a_converted_model_is_the_model() {
    let smollm3 = smollm3();
    let config = assert_is(changed("smollm3", smollm3.path(), |_, _| {}).path(), smollm3.path());
    let rotated: Vec<_> = config.blocks.iter().map(|block| block.attention().unwrap().rope.is_some()).collect();
    assert_eq!(rotated, [true, true, true, false, true]);
    for (arch, family) in [("phi3", "phi3"), ("olmo2", "olmo3"), ("mistral3", "ministral3")] {
        assert_is(changed(arch, &golden(family), |_, _| {}).path(), &golden(family));
    }
}

/// Phi-4 has neither a window nor stretched contexts, and rotates whole heads.
#[test]
fn phi_without_factors_and_window_is_read() {
    let mut config = config_of("phi3");
    config.insert("rope_parameters".into(), json!({"rope_theta": 250_000.0, "rope_type": "default"}));
    config.insert("sliding_window".into(), json!(null));
    let reference = folder("phi3", &config);
    let file = changed("phi3", reference.path(), |keys, _| {
        // It is written for every model of the family.
        set(keys, "phi3.rope.scaling.original_context_length", Value::U32(512));
    });
    let config = assert_is(file.path(), reference.path());
    assert_eq!((config.rotary_dim, config.blocks[0].attention().unwrap().window), (None, None));
}

#[test]
fn factors_of_phi_are_served_with_its_configuration() {
    let read = |factor: Option<f32>| {
        let file = changed("phi3", &golden("phi3"), |keys, _| {
            keys.retain(|(key, _)| key != "phi3.rope.scaling.attn_factor");
            keys.extend(factor.map(|factor| ("phi3.rope.scaling.attn_factor".into(), Value::F32(factor))));
        });
        let source = load(file.path()).unwrap();
        let RopeScaling::Long { attention_factor, .. } = source.config.ropes[0].scaling else { panic!("LongRoPE") };
        let json: serde_json::Value = serde_json::from_slice(&source.files["config.json"]).unwrap();
        (attention_factor, json)
    };
    let (factor, json) = read(Some(1.25));
    assert_eq!((factor, &json["rope_scaling"]["attention_factor"]), (1.25, &json!(1.25)));
    assert_eq!(json["rope_scaling"]["long_factor"], json!([1.0, 1.5, 2.0, 4.0, 8.0, 16.0]));
    assert_eq!(json["rope_scaling"]["short_factor"], json!([1.0, 1.1, 1.3, 1.7, 2.2, 3.0]));
    assert_eq!((&json["partial_rotary_factor"], &json["max_position_embeddings"]), (&json!(0.75), &json!(512)));
    assert_eq!(read(None).0, 1.0);
}

/// Special tokens of Phi-3 take the line break that its chat template puts after them.
#[test]
fn special_tokens_of_phi_take_the_space_after_them() {
    let texts = |items: &[&str]| Value::Array(items.iter().map(|&item| Value::String(item.into())).collect());
    let file = changed("phi3", &golden("phi3"), |keys, _| {
        let tokens = ["<unk>", "<s>", "</s>", "▁", "a", "<|endoftext|>", "<|user|>", "<0x0A>"];
        let kinds = [2, 3, 3, 1, 1, 3, 3, 6].map(Value::I32).to_vec();
        set(keys, "tokenizer.ggml.model", Value::String("llama".into()));
        set(keys, "tokenizer.ggml.tokens", texts(&tokens));
        set(keys, "tokenizer.ggml.token_type", Value::Array(kinds));
        set(keys, "tokenizer.ggml.scores", Value::Array((0..8).map(|id| Value::F32(-(id as f32))).collect()));
        set(keys, "tokenizer.ggml.add_bos_token", Value::Bool(false));
    });
    let files = load(file.path()).unwrap().files;
    let tokenizer = tokenizers::Tokenizer::from_bytes(&files["tokenizer.json"]).unwrap();
    let ids = |text: &str| tokenizer.encode(text, true).unwrap().get_ids().to_vec();
    assert_eq!(ids("<|user|>\na"), ids("<|user|>a"));
    assert_eq!(ids("<|endoftext|>\na").len(), ids("<|endoftext|>a").len() + 1);
}

/// Mistral Small 3 has the architecture of Ministral 3 in GGUF files, but scales no queries.
#[test]
fn mistral_with_images_is_mistral() {
    let mut config = config_of("mistral_swa");
    config.insert("sliding_window".into(), json!(null));
    let reference = folder("mistral_swa", &config);
    let config = assert_is(changed("mistral3", reference.path(), |_, _| {}).path(), reference.path());
    assert_eq!(config.arch, "mistral");
}

/// Files give a period of blocks in place of a list.
#[test]
fn windows_of_olmo_may_have_a_period() {
    let with = |value: Option<Value>| {
        let file = changed("olmo2", &golden("olmo3"), |keys, _| {
            keys.retain(|(key, _)| key != "olmo2.attention.sliding_window_pattern");
            keys.extend(value.map(|value| ("olmo2.attention.sliding_window_pattern".into(), value)));
        });
        let config = load(file.path()).unwrap().config;
        config.blocks.iter().map(|block| block.attention().unwrap().window.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(with(Some(Value::U32(2))), [true, false]);
    assert_eq!(with(Some(Value::U32(1))), [false, false]);
    assert_eq!(with(None), [true, true]);
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let (smollm3, phi3, olmo3, ministral3) = (smollm3(), golden("phi3"), golden("olmo3"), golden("ministral3"));
    let of = |arch: &str| match arch {
        "smollm3" => smollm3.path(),
        "phi3" => phi3.as_path(),
        "olmo2" => olmo3.as_path(),
        _ => ministral3.as_path(),
    };
    let refused = |arch: &str, change: &dyn Fn(&mut Metadata, &mut Tensors)| {
        refusal(changed(arch, of(arch), |keys, tensors| change(keys, tensors)).path())
    };
    let bools = |values: &[bool]| Some(Value::Array(values.iter().map(|&value| Value::Bool(value)).collect()));
    let cases = [
        (
            "smollm3",
            "rope.dimension_count",
            Some(Value::U32(8)),
            "smollm3.rope.dimension_count 8 with heads of width 16",
        ),
        ("smollm3", "attention.head_count_kv", Some(Value::U32(0)), "smollm3.attention.head_count_kv is 0"),
        ("phi3", "attention.sliding_window", None, "phi3.attention.sliding_window is missing"),
        ("phi3", "rope.scaling.original_context_length", None, "phi3.rope.scaling.original_context_length is missing"),
        (
            "phi3",
            "rope.scaling.original_context_length",
            Some(Value::U32(0)),
            "phi3.rope.scaling.original_context_length is zero",
        ),
        ("phi3", "rope.dimension_count", Some(Value::U32(8)), "short_factor has 6 entries for 4 frequencies"),
        ("phi3", "rope.scaling.attn_factor", Some(Value::F32(-1.0)), "attention_factor is -1"),
        (
            "phi3",
            "attention.head_count_kv",
            Some(Value::U32(4)),
            "qkv_proj.weight has shape [128, 64], expected [192, 64]",
        ),
        ("olmo2", "attention.sliding_window", None, "without olmo2.attention.sliding_window, which is OLMo 2"),
        ("olmo2", "rope.freq_base_swa", Some(Value::F32(1e4)), "olmo2.rope.freq_base_swa 10000 (supported: 500000)"),
        ("olmo2", "rope.scaling.yarn_attn_factor", Some(Value::F32(1.5)), "yarn_attn_factor 1.5 (supported: 1)"),
        (
            "olmo2",
            "attention.sliding_window_pattern",
            bools(&[true]),
            "olmo2.attention.sliding_window_pattern has 1 entries for 2 blocks",
        ),
        (
            "olmo2",
            "attention.sliding_window_pattern",
            Some(Value::String("sssf".into())),
            "olmo2.attention.sliding_window_pattern is not a list of truth values",
        ),
        ("mistral3", "rope.scaling.type", None, "mistral3.attention.temperature_scale 0.1 without yarn"),
        ("mistral3", "rope.scaling.factor", None, "mistral3.rope.scaling.factor is missing"),
    ];
    for (arch, key, value, expected) in cases {
        let key = format!("{arch}.{key}");
        let found = refused(arch, &|keys, _| {
            keys.retain(|(found, _)| *found != key && (value.is_some() || found != "mistral3.rope.scaling.factor"));
            keys.extend(value.clone().map(|value| (key.clone(), value)));
        });
        assert!(found.contains(expected), "{key}: {found}");
    }
    let without = |arch: &str, name: &str| refused(arch, &|_, tensors| tensors.retain(|(found, _)| found != name));
    assert_eq!(without("phi3", "rope_factors_short.weight"), "tensor rope_factors_short.weight is missing");
    assert_eq!(without("phi3", "rope_factors_long.weight"), "tensor rope_factors_long.weight is missing");
    assert_eq!(without("phi3", "blk.1.attn_qkv.weight"), "tensor model.layers.1.self_attn.qkv_proj.weight is missing");
    let missing = without("olmo2", "blk.0.post_ffw_norm.weight");
    assert_eq!(missing, "tensor model.layers.0.post_feedforward_layernorm.weight is missing");
    let found = refused("smollm3", &|_, tensors| tensors[0].0 = "rope_factors_long.weight".into());
    assert!(found.contains("GGUF tensor rope_factors_long.weight"), "{found}");
}

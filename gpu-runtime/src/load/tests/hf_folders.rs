//! Loading of Hugging Face folders.

use std::collections::BTreeMap;
use std::fs;

use half::{bf16, f16};
use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::{Dtype, serialize};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{assert_same_tensors, config_of, families, folder, golden, refusal};
use crate::config::{Biases, HeadNorms, ModelConfig, RopeScaling};
use crate::load::load;

/// The sliding window of every block.
fn windows(config: &ModelConfig) -> Vec<Option<usize>> {
    config.blocks.iter().map(|block| block.attention().unwrap().window).collect()
}

#[test]
fn every_golden_folder_loads() {
    for family in &families() {
        let source = load(&golden(family)).unwrap();
        let bytes = fs::read(golden(family).join("model.safetensors")).unwrap();
        for (in_file, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            let name = source.config.spelling.canonical(&in_file).unwrap();
            let expected: Vec<f32> = view.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
            assert_eq!(source.tensors.shape(&name).unwrap(), view.shape());
            assert!(source.tensors.read(&name).unwrap() == expected, "{family} {name}");
        }
        assert_eq!(source.files.keys().collect::<Vec<_>>(), ["config.json"]);
    }
}

#[test]
fn configurations_say_what_the_families_are() {
    let of = |family| load(&golden(family)).unwrap().config;
    let llama = of("llama");
    assert_eq!((llama.arch, llama.num_kv_heads, llama.head_dim, llama.vocab_size), ("llama", 2, 16, 512));
    assert_eq!((llama.rms_norm_eps, llama.ropes[0].theta, &llama.eos_token_ids[..]), (1e-5, 1e4, &[2][..]));
    assert!(!llama.tie_word_embeddings && !llama.blocks[0].biases.qkv);
    let head_norms = |config: &ModelConfig| config.blocks[0].attention().unwrap().head_norms;
    assert_eq!(head_norms(&llama), HeadNorms::None);
    let expected = RopeScaling::Llama3 {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_max_position_embeddings: 64,
    };
    assert_eq!(of("llama3_rope").ropes[0].scaling, expected);
    assert!(of("llama_tied").tie_word_embeddings);
    assert_eq!(windows(&of("mistral_swa")), [Some(16); 2]);
    let qwen2 = of("qwen2");
    assert!(
        qwen2.blocks[0].biases == Biases { qkv: true, ..Biases::default() }
            && windows(&qwen2) == [None; 2]
            && qwen2.eos_token_ids.is_empty()
    );
    let qwen3 = of("qwen3");
    assert!(head_norms(&qwen3) == HeadNorms::Heads && !qwen3.blocks[0].biases.qkv && qwen3.head_dim == 32);
}

#[test]
fn old_spellings_load_the_same() {
    for family in &families() {
        let mut config = config_of(family);
        // Models with images are newer.
        if config.contains_key("text_config") {
            continue;
        }
        // Attention without positions has none.
        let Some(Value::Object(mut rope)) = config.remove("rope_parameters") else {
            assert!(family.starts_with("nemotron_h"), "{family}");
            continue;
        };
        // Families with a rotary embedding for each layer type have other old keys.
        let Some(theta) = rope.remove("rope_theta") else { continue };
        config.insert("rope_theta".into(), theta);
        if let Some(part) = rope.remove("partial_rotary_factor") {
            config.insert("partial_rotary_factor".into(), part);
        }
        let kind = rope.remove("rope_type").unwrap();
        config.insert("rope_scaling".into(), Value::Null);
        if kind != "default" {
            rope.insert("type".into(), kind);
            config.insert("rope_scaling".into(), Value::Object(rope));
        }
        let dtype = config.remove("dtype").unwrap();
        config.insert("torch_dtype".into(), dtype);
        if family == "qwen3_moe" {
            let count = config.remove("num_local_experts").unwrap();
            config.insert("num_experts".into(), count);
        }
        if !matches!(
            &family[..],
            "qwen3"
                | "qwen3_5"
                | "qwen3_5_moe"
                | "gpt_oss"
                | "granitemoehybrid"
                | "granitemoehybrid_moe"
                | "lfm2"
                | "ministral3"
                | "smollm3"
        ) {
            // Old files leave out what follows from other keys.
            config.remove("head_dim");
            config.remove("layer_types");
        }
        let folder = folder(family, &config);
        assert_eq!(load(folder.path()).unwrap().config, load(&golden(family)).unwrap().config, "{family}");
    }
}

#[test]
fn end_tokens_of_both_files_are_merged() {
    let mut config = config_of("llama");
    config.insert("eos_token_id".into(), json!([5, 2]));
    let folder = folder("llama", &config);
    fs::write(folder.path().join("generation_config.json"), r#"{"eos_token_id": [2, 7], "temperature": 0.6}"#).unwrap();
    fs::write(folder.path().join("pytorch_model.bin"), "never served").unwrap();
    let source = load(folder.path()).unwrap();
    assert_eq!(source.config.eos_token_ids, [5, 2, 7]);
    assert_eq!(source.files.keys().collect::<Vec<_>>(), ["config.json", "generation_config.json"]);
}

#[test]
fn qwen_windows_follow_the_switch_and_the_layers() {
    let mut config = config_of("qwen2");
    config.remove("layer_types");
    config.insert("sliding_window".into(), json!(8));
    config.insert("max_window_layers".into(), json!(1));
    assert_eq!(windows(&load(folder("qwen2", &config).path()).unwrap().config), [None, None]);
    config.insert("use_sliding_window".into(), json!(true));
    assert_eq!(windows(&load(folder("qwen2", &config).path()).unwrap().config), [None, Some(8)]);
    config.insert("layer_types".into(), json!(["sliding_attention", "full_attention"]));
    assert_eq!(windows(&load(folder("qwen2", &config).path()).unwrap().config), [Some(8), None]);
    config.insert("layer_types".into(), json!(["sliding_attention"]));
    assert!(refusal(folder("qwen2", &config).path()).contains("layer_types has 1 entries for 2 layers"));
}

#[test]
fn mistral_windows_distinguish_null_from_unwritten() {
    let mut config = config_of("mistral_swa");
    config.insert("sliding_window".into(), Value::Null);
    assert_eq!(windows(&load(folder("mistral_swa", &config).path()).unwrap().config), [None; 2]);
    config.remove("sliding_window");
    assert_eq!(windows(&load(folder("mistral_swa", &config).path()).unwrap().config), [Some(4096); 2]);
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let cases = [
        ("model_type", json!("falcon"), "model_type \"falcon\" (supported: "),
        ("hidden_act", json!("gelu"), "hidden_act \"gelu\" (supported: silu, gelu_pytorch_tanh)"),
        ("rope_parameters", json!({"rope_type": "dynamic", "factor": 4.0}), "rope scaling \"dynamic\""),
        ("rope_parameters", json!({"rope_type": "longrope"}), "short_factor is missing"),
        ("partial_rotary_factor", json!(0.5), "partial_rotary_factor 0.5"),
        ("quantization_config", json!({"quant_method": "fp8"}), "quantization_config"),
        ("num_key_value_heads", json!(3), "num_key_value_heads 3 does not divide 4 heads"),
        ("hidden_size", json!("64"), "hidden_size is \"64\""),
        ("hidden_size", Value::Null, "hidden_size is missing"),
        ("num_hidden_layers", json!(1_000_000), "the model has 1000000 layers, above 4096"),
        ("head_dim", json!(15), "head_dim is 15"),
        ("num_hidden_layers", json!(3), "tensor model.layers.2.input_layernorm.weight is missing"),
        ("attention_bias", json!(true), "tensor model.layers.0.self_attn.q_proj.bias is missing"),
        ("vocab_size", json!(500), "model.embed_tokens.weight has shape [512, 64], expected [500, 64]"),
    ];
    for (key, value, expected) in cases {
        let mut config = config_of("llama");
        config.insert(key.into(), value);
        let found = refusal(folder("llama", &config).path());
        assert!(found.contains(expected), "{key}: {found}");
    }
}

#[test]
fn an_output_projection_is_needed_unless_tied() {
    let mut config = config_of("llama_tied");
    config.insert("tie_word_embeddings".into(), json!(false));
    assert_eq!(refusal(folder("llama_tied", &config).path()), "tensor lm_head.weight is missing");
}

#[test]
fn damaged_safetensors_are_refused() {
    let whole = fs::read(golden("llama").join("model.safetensors")).unwrap();
    for (bytes, expected) in [
        (&whole[..whole.len() - 1], "truncated safetensors file"),
        (&whole[..100], "truncated safetensors file: the header ends after the file"),
        (&whole[..4], "truncated safetensors file: no header"),
        (b"{\"not\": \"a safetensors file\"}", "not a safetensors file"),
    ] {
        let folder = folder("llama", &config_of("llama"));
        let path = folder.path().join("model.safetensors");
        fs::write(&path, bytes).unwrap();
        let found = refusal(folder.path());
        assert!(found.contains(expected) && found.contains("model.safetensors"), "{found}");
    }
}

/// Rewrites a golden checkpoint as two shards without the `model.` prefix.
#[test]
fn shards_and_bare_names_load_the_same() {
    let folder = folder("llama_tied", &config_of("llama_tied"));
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let (mut shards, mut map) = ([BTreeMap::new(), BTreeMap::new()], BTreeMap::new());
    for (index, (name, view)) in tensors.tensors().into_iter().enumerate() {
        let name = name.strip_prefix("model.").unwrap().to_owned();
        map.insert(name.clone(), format!("model-{}.safetensors", index % 2));
        shards[index % 2].insert(name, view);
    }
    for (index, shard) in shards.iter().enumerate() {
        let file = folder.path().join(format!("model-{index}.safetensors"));
        fs::write(file, serialize(shard, None).unwrap()).unwrap();
    }
    let index = folder.path().join("model.safetensors.index.json");
    fs::write(&index, json!({"weight_map": map}).to_string()).unwrap();
    assert_same_tensors(&load(folder.path()).unwrap(), &load(&golden("llama_tied")).unwrap());

    fs::write(&index, r#"{"weight_map": {"a": "../model.safetensors"}}"#).unwrap();
    assert!(refusal(folder.path()).contains("weight_map of a is not a file name"));
}

#[test]
fn narrow_and_wide_floats_are_widened_and_others_refused() {
    let golden_folder = golden("llama_tied");
    let reference = load(&golden_folder).unwrap();
    let bytes = fs::read(golden_folder.join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let name = "model.layers.0.mlp.up_proj.weight";
    let values = reference.tensors.read(name).unwrap();
    type Encode = fn(f32) -> Vec<u8>;
    type Round = fn(f32) -> f32;
    let cases: [(Dtype, Encode, Round); 3] = [
        (Dtype::F16, |v| f16::from_f32(v).to_le_bytes().to_vec(), |v| f16::from_f32(v).to_f32()),
        (Dtype::BF16, |v| bf16::from_f32(v).to_le_bytes().to_vec(), |v| bf16::from_f32(v).to_f32()),
        (Dtype::F64, |v| f64::from(v).to_le_bytes().to_vec(), |v| v),
    ];
    let with = |dtype, data: &[u8], shape: &[usize]| {
        let mut all: BTreeMap<String, TensorView<'_>> = tensors.tensors().into_iter().collect();
        all.insert(name.to_owned(), TensorView::new(dtype, shape.to_vec(), data).unwrap());
        let folder = folder("llama_tied", &config_of("llama_tied"));
        fs::write(folder.path().join("model.safetensors"), serialize(all, None).unwrap()).unwrap();
        folder
    };
    for (dtype, encode, expected) in cases {
        let data: Vec<u8> = values.iter().flat_map(|&v| encode(v)).collect();
        let folder = with(dtype, &data, &[160, 64]);
        let expected: Vec<f32> = values.iter().map(|&v| expected(v)).collect();
        assert!(load(folder.path()).unwrap().tensors.read(name).unwrap() == expected, "{dtype:?}");
    }
    let found = refusal(with(Dtype::I8, &vec![0; 160 * 64], &[160, 64]).path());
    assert!(found.contains(&format!("tensor {name} has dtype I8")), "{found}");
    let found = refusal(with(Dtype::BF16, &vec![0; 160 * 64 * 2], &[64, 160]).path());
    assert_eq!(found, format!("tensor {name} has shape [64, 160], expected [160, 64]"));
}

/// A golden folder whose weights have these tensors beside their own.
fn with_tensors(family: &str, config: &Map<String, Value>, more: &[(&str, Dtype, &[usize], Vec<u8>)]) -> TempDir {
    let folder = folder(family, config);
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut all: BTreeMap<String, TensorView<'_>> = file.tensors().into_iter().collect();
    for (name, dtype, shape, data) in more {
        all.insert((*name).to_owned(), TensorView::new(*dtype, shape.to_vec(), data).unwrap());
    }
    fs::write(path, serialize(all, None).unwrap()).unwrap();
    folder
}

#[test]
fn an_unused_tensor_may_have_any_type_and_a_used_one_not() {
    let reference = load(&golden("llama")).unwrap();
    for (dtype, bytes) in
        [(Dtype::I64, 8), (Dtype::BOOL, 1), (Dtype::U8, 1), (Dtype::I32, 4), (Dtype::F8_E4M3, 1), (Dtype::U16, 2)]
    {
        let data = vec![1; 6 * bytes];
        let ids = ("model.embed_tokens.position_ids", dtype, &[1, 6][..], data);
        let source = load(with_tensors("llama", &config_of("llama"), &[ids]).path()).unwrap();
        assert!(source.config == reference.config);
        let error = source.tensors.read("model.embed_tokens.position_ids").unwrap_err().to_string();
        assert!(error.contains(&format!("position_ids has dtype {dtype:?} (supported: [F32,")), "{error}");
        assert!(source.tensors.read_part("model.embed_tokens.position_ids", 0..1).is_err());
        let norm = ("model.norm.weight", dtype, &[64][..], vec![0; 64 * bytes]);
        let found = refusal(with_tensors("llama", &config_of("llama"), &[norm]).path());
        assert!(found.contains(&format!("tensor model.norm.weight has dtype {dtype:?}")), "{found}");
    }
}

#[test]
fn an_output_projection_that_differs_is_used_although_the_configuration_ties_it() {
    let config = config_of("llama_tied");
    let embedding = load(&golden("llama_tied")).unwrap().tensors.read("model.embed_tokens.weight").unwrap();
    let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let with = |shape: &[usize], values: &[f32]| {
        with_tensors("llama_tied", &config, &[("lm_head.weight", Dtype::F32, shape, bytes(values))])
    };
    let same = load(with(&[512, 64], &embedding).path()).unwrap();
    assert!(same.config.tie_word_embeddings);
    assert_eq!(same.files["config.json"], serde_json::to_vec(&config).unwrap());
    let mut other = embedding.clone();
    *other.last_mut().unwrap() += 0.5;
    let source = load(with(&[512, 64], &other).path()).unwrap();
    assert!(!source.config.tie_word_embeddings);
    let described: Value = serde_json::from_slice(&source.files["config.json"]).unwrap();
    assert_eq!(described["tie_word_embeddings"], false);
    let table = crate::model::ParamTable::new(&source.config);
    assert!(table.specs.iter().any(|spec| spec.name == "lm_head.weight"));
    assert!(source.tensors.read("lm_head.weight").unwrap() == other);
    let found = refusal(with(&[511, 64], &embedding[64..]).path());
    assert_eq!(found, "tensor lm_head.weight has shape [511, 64], expected [512, 64]");
}

#[test]
fn chat_templates_beside_the_default_one_are_read() {
    let folder = folder("llama", &config_of("llama"));
    let templates = folder.path().join("additional_chat_templates");
    fs::create_dir(&templates).unwrap();
    for name in ["tool_use.jinja", "rag.jinja", "notes.txt"] {
        fs::write(templates.join(name), name).unwrap();
    }
    fs::create_dir(templates.join("folder.jinja")).unwrap();
    let files = load(folder.path()).unwrap().files;
    let names: Vec<_> = files.keys().collect();
    assert_eq!(
        names,
        ["additional_chat_templates/rag.jinja", "additional_chat_templates/tool_use.jinja", "config.json"]
    );
    assert_eq!(files["additional_chat_templates/tool_use.jinja"], b"tool_use.jinja");
    // A checkpoint has them not: it is a flat folder.
    let target = tempfile::tempdir().unwrap();
    crate::checkpoint::write_model_files(target.path(), &files).unwrap();
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 1);
}

#[test]
fn a_path_without_a_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(refusal(folder.path()).contains("neither config.json nor a .gguf file"));
    assert!(refusal(&folder.path().join("absent")).contains("absent"));
    fs::write(folder.path().join("config.json"), "{").unwrap();
    assert!(refusal(folder.path()).contains("config.json"));
}

//! Gemma 3 in both spellings of its folder, and as a GGUF file.

use candle_core::quantized::gguf_file::Value as GgufValue;
use candle_core::{Device, Tensor};
use serde_json::{Value, json};

use super::gguf::{gguf_name, metadata, write};
use super::{config_of, folder, golden, refusal};
use crate::config::{Activation, Attention, HeadNorms, RopeScaling};
use crate::load::load;

#[test]
fn a_folder_says_what_the_family_is() {
    let config = load(&golden("gemma3")).unwrap().config;
    assert_eq!((config.arch, config.norm_offset, config.embedding_scale), ("gemma3_text", 1.0, 8.0));
    assert_eq!((config.attention_scale, config.tie_word_embeddings), (0.25, true));
    let [local, global] = &config.blocks[..] else { panic!("two blocks") };
    let [attends, attends_globally] = [local, global].map(|block| block.attention().unwrap());
    assert_eq!((attends.window, attends_globally.window), (Some(16), None));
    let theta = |attention: &Attention| config.ropes[attention.rope.unwrap()].theta;
    assert_eq!((theta(attends), theta(attends_globally)), (1e4, 1e6));
    assert!(attends.head_norms == HeadNorms::Heads && local.activation == Activation::GeluTanh);
    assert_eq!(local.norms.post_mlp, Some("post_feedforward_layernorm"));
}

#[test]
fn the_old_spelling_loads_the_same() {
    let mut config = config_of("gemma3");
    config.remove("rope_parameters");
    config.remove("layer_types");
    config.remove("hidden_activation");
    config.insert("rope_theta".into(), json!(1e6));
    config.insert("rope_local_base_freq".into(), json!(1e4));
    config.insert("sliding_window_pattern".into(), json!(2));
    let folder = folder("gemma3", &config);
    assert_eq!(load(folder.path()).unwrap().config, load(&golden("gemma3")).unwrap().config);
}

#[test]
fn scaling_concerns_full_attention_alone() {
    let mut config = config_of("gemma3");
    config.remove("rope_parameters");
    config.insert("rope_scaling".into(), json!({"rope_type": "linear", "factor": 8.0}));
    let config = load(folder("gemma3", &config).path()).unwrap().config;
    let scaling = |layer: usize| {
        let rope = config.blocks[layer].attention().unwrap().rope.unwrap();
        config.ropes[rope].scaling.clone()
    };
    assert_eq!((scaling(1), scaling(0)), (RopeScaling::Linear { factor: 8.0 }, RopeScaling::None));
}

#[test]
fn other_variants_are_refused_by_name() {
    let cases = [
        ("attn_logit_softcapping", json!(50.0), "attn_logit_softcapping 50"),
        ("final_logit_softcapping", json!(30.0), "final_logit_softcapping 30"),
        ("use_bidirectional_attention", json!(true), "use_bidirectional_attention true"),
        ("query_pre_attn_scalar", json!(0), "query_pre_attn_scalar is 0"),
        ("hidden_activation", json!("relu"), "hidden_activation \"relu\""),
        ("layer_types", json!(["full_attention"]), "layer_types has 1 entries for 2 layers"),
        ("model_type", json!("gemma3"), "model_type \"gemma3\" (supported: deepseek_v3, deepseek_v32, gemma3_text, "),
    ];
    for (key, value, expected) in cases {
        let mut config = config_of("gemma3");
        config.insert(key.into(), value);
        let found = refusal(folder("gemma3", &config).path());
        assert!(found.contains(expected), "{key}: {found}");
    }
    let mut config = config_of("gemma3");
    config.remove("layer_types");
    config.insert("sliding_window_pattern".into(), Value::from(0));
    assert!(refusal(folder("gemma3", &config).path()).contains("sliding_window_pattern is zero"));
}

/// Renames a tensor as llama.cpp's converter does, and adds 1 to weights of norms.
fn converted(name: &str, values: Vec<f32>, shape: Vec<usize>) -> (String, Tensor) {
    let values = match name.ends_with("norm.weight") {
        true => values.iter().map(|x| x + 1.0).collect(),
        false => values,
    };
    let own = name
        .replace("post_attention_layernorm", "post_attention_norm")
        .replace("pre_feedforward_layernorm", "ffn_norm")
        .replace("post_feedforward_layernorm", "post_ffw_norm");
    (gguf_name(&own), Tensor::from_vec(values, shape, &Device::Cpu).unwrap())
}

#[test]
fn a_gguf_file_is_the_folder() {
    let mut reference = load(&golden("gemma3")).unwrap();
    let names = reference.tensors.names();
    let tensor =
        |name: &String| converted(name, reference.tensors.read(name).unwrap(), reference.tensors.shape(name).unwrap());
    let tensors: Vec<_> = names.iter().map(tensor).collect();
    let mut metadata = metadata("gemma3", &reference);
    metadata.push(("gemma3.attention.sliding_window".into(), GgufValue::U32(16)));
    metadata.push(("gemma3.attention.sliding_window_pattern".into(), GgufValue::U32(2)));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write(&path, &metadata, &tensors);
    let source = load(&path).unwrap();
    reference.config.eos_token_ids = vec![2];
    assert_eq!(source.config, reference.config);
    assert_eq!(source.tensors.names(), names);
    for name in names {
        let (found, expected) = (source.tensors.read(&name).unwrap(), reference.tensors.read(&name).unwrap());
        // Adding 1 has cost a weight its last bits.
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{name}");
    }
    metadata.retain(|(key, _)| key != "gemma3.attention.sliding_window");
    write(&path, &metadata, &tensors);
    assert!(refusal(&path).contains("gemma3.attention.sliding_window is missing"));
}

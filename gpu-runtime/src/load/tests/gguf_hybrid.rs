//! GGUF files of Granite 4 and LFM2, written here from Hugging Face's folders as llama.cpp's converter would.

use std::path::{Path, PathBuf};

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use serde_json::json;
use tempfile::TempDir;

use super::gguf::{gguf_name, metadata};
use super::gguf_experts::write;
use super::gguf_newer::{Metadata, Tensors, count, interleaved, raw, set, with_blocks};
use super::gguf_recurrent::assert_is;
use super::{assert_same_tensors, golden, refusal};
use crate::config::ModelConfig;
use crate::load::load;

/// Names in folders and in files, within a block; the first that fits counts.
const NAMES: [(&str, &str); 24] = [
    ("mamba.in_proj", "ssm_in"),
    ("mamba.conv1d", "ssm_conv1d"),
    ("mamba.A_log", "ssm_a"),
    ("mamba.D", "ssm_d"),
    ("mamba.dt_bias", "ssm_dt.bias"),
    ("mamba.norm", "ssm_norm"),
    ("mamba.out_proj", "ssm_out"),
    ("block_sparse_moe.router.layer", "ffn_gate_inp"),
    ("block_sparse_moe.output_linear", "ffn_down_exps"),
    ("operator_norm", "attn_norm"),
    ("ffn_norm", "ffn_norm"),
    ("conv.conv", "shortconv.conv"),
    ("conv.in_proj", "shortconv.in_proj"),
    ("conv.out_proj", "shortconv.out_proj"),
    ("feed_forward.w1", "ffn_gate"),
    ("feed_forward.w2", "ffn_down"),
    ("feed_forward.w3", "ffn_up"),
    ("self_attn.q_layernorm", "attn_q_norm"),
    ("self_attn.k_layernorm", "attn_k_norm"),
    ("self_attn.out_proj", "attn_output"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
];

fn name_of(name: &str) -> String {
    let name = name.replace("model.embedding_norm", "token_embd_norm");
    let Some((layer, rest)) = name.strip_prefix("model.layers.").and_then(|name| name.split_once('.')) else {
        return gguf_name(&name);
    };
    match NAMES.iter().find_map(|(from, to)| Some(format!("{to}{}", rest.strip_prefix(from)?))) {
        Some(own) => format!("blk.{layer}.{own}"),
        None => gguf_name(&name),
    }
}

/// Tensors of a file that one of a folder becomes.
fn converted(name: &str, tensor: Tensor, config: &ModelConfig) -> Tensors {
    let has_experts = config.has_experts();
    let halves = |dimension: usize, names: [&str; 2], block: &str| {
        let halves = tensor.chunk(2, dimension).unwrap();
        let named =
            |(name, half): (&str, Tensor)| (name_of(&format!("{block}{name}")), half.force_contiguous().unwrap());
        names.into_iter().zip(halves).map(named).collect()
    };
    if let Some(block) = name.strip_suffix("shared_mlp.input_linear.weight") {
        let names = ["ffn_gate_shexp.weight", "ffn_up_shexp.weight"];
        return halves(0, if has_experts { names } else { ["ffn_gate.weight", "ffn_up.weight"] }, block);
    }
    if let Some(block) = name.strip_suffix("block_sparse_moe.input_linear.weight") {
        return halves(1, ["ffn_gate_exps.weight", "ffn_up_exps.weight"], block);
    }
    let down = if has_experts { "ffn_down_shexp" } else { "ffn_down" };
    let name = name.replace("shared_mlp.output_linear", down);
    let is_granite = config.logit_scale != 1.0;
    let tensor = match name.split('.').skip(3).collect::<Vec<_>>().join(".").as_str() {
        "mamba.A_log" => tensor.exp().unwrap().neg().unwrap().unsqueeze(1).unwrap(),
        "mamba.D" => tensor.unsqueeze(1).unwrap(),
        "mamba.conv1d.weight" | "conv.conv.weight" => tensor.squeeze(1).unwrap(),
        "mamba.norm.weight" => tensor.unsqueeze(0).unwrap(),
        "self_attn.q_proj.weight" if is_granite => interleaved(&tensor, config.num_heads),
        "self_attn.k_proj.weight" if is_granite => interleaved(&tensor, config.num_kv_heads),
        _ => tensor,
    };
    vec![(name_of(&name), tensor)]
}

fn tensors(folder: &Path, config: &ModelConfig) -> Tensors {
    raw(folder).into_iter().flat_map(|(name, tensor)| converted(&name, tensor, config)).collect()
}

fn keys(arch: &str, folder: &Path) -> (Metadata, ModelConfig) {
    let source = load(folder).unwrap();
    let (mut keys, config) = (metadata(arch, &source), source.config);
    let mut own = |key: &str, value: Value| set(&mut keys, &format!("{arch}.{key}"), value);
    own("rope.dimension_count", count(config.head_dim));
    let heads = |attends: bool| count(if attends { config.num_kv_heads } else { 0 });
    let attends: Vec<_> = config.blocks.iter().map(|block| block.attention().is_some()).collect();
    if attends.contains(&false) {
        own("attention.head_count_kv", Value::Array(attends.into_iter().map(heads).collect()));
    }
    if arch == "lfm2" {
        own("shortconv.l_cache", count(3));
        return (keys, config);
    }
    own("embedding_scale", Value::F32(config.embedding_scale));
    own("residual_scale", Value::F32(config.residual_scale));
    own("attention.scale", Value::F32(config.attention_scale));
    own("logit_scale", Value::F32(1.0 / config.logit_scale));
    own("rope.scaling.finetuned", Value::Bool(!config.ropes.is_empty()));
    if let Some(experts) = config.blocks[0].experts.as_ref() {
        own("expert_count", count(experts.count));
        own("expert_used_count", count(experts.rule.per_token));
        own("feed_forward_length", count(experts.width));
        own("expert_shared_feed_forward_length", count(experts.shared.unwrap()));
    }
    if let Some(shape) = config.recurrences().next() {
        own("ssm.conv_kernel", count(shape.kernel));
        own("ssm.state_size", count(shape.key_dim));
        own("ssm.group_count", count(shape.key_heads));
        own("ssm.time_step_rank", count(shape.value_heads));
        own("ssm.inner_size", count(shape.value_width()));
    }
    (keys, config)
}

fn changed(arch: &str, folder: &Path, change: impl FnOnce(&mut Metadata, &mut Tensors)) -> TempDir {
    let (mut keys, config) = keys(arch, folder);
    let mut tensors = tensors(folder, &config);
    change(&mut keys, &mut tensors);
    let file = tempfile::tempdir().unwrap();
    write(&file.path().join("model.gguf"), &keys, &tensors, |_| GgmlDType::F32);
    file
}

/// Granite with attention in both of its blocks, and positions.
fn attention_only(family: &str) -> TempDir {
    with_blocks(family, &[1, 1], |config| {
        config.insert("num_hidden_layers".into(), 2.into());
        config.insert("layer_types".into(), json!(["full_attention", "full_attention"]));
        config.insert("position_embedding_type".into(), "rope".into());
    })
}

/// Architectures, and folders that they are the architecture of.
fn all() -> (Vec<(&'static str, PathBuf)>, [TempDir; 2]) {
    let (dense, mixture) = (attention_only("granitemoehybrid"), attention_only("granitemoehybrid_moe"));
    let of = vec![
        ("granitehybrid", golden("granitemoehybrid")),
        ("granitehybrid", golden("granitemoehybrid_moe")),
        ("granite", dense.path().to_owned()),
        ("granitemoe", mixture.path().to_owned()),
        ("lfm2", golden("lfm2")),
    ];
    (of, [dense, mixture])
}

#[test]
fn a_converted_model_is_the_model() {
    let (all, _folders) = all();
    for (arch, folder) in all {
        assert_is(changed(arch, &folder, |_, _| {}).path(), &folder);
    }
}

/// Gate and up of one type stay in their blocks when they are joined; those of two types are dequantized.
#[test]
fn quantized_halves_are_joined() {
    let folder = golden("granitemoehybrid");
    let (keys, config) = keys("granitehybrid", &folder);
    let tensors = tensors(&folder, &config);
    for (up, is_kept) in [(GgmlDType::Q8_0, true), (GgmlDType::Q4_0, false)] {
        let dtype = |name: &str| match name {
            _ if name.ends_with("ffn_up.weight") => up,
            _ if name.ends_with("ffn_gate.weight") => GgmlDType::Q8_0,
            _ => GgmlDType::F32,
        };
        let rounded = |(name, tensor): &(String, Tensor)| {
            let quantized = QTensor::quantize(tensor, dtype(name)).unwrap();
            (name.clone(), quantized.dequantize(&candle_core::Device::Cpu).unwrap())
        };
        let (quantized, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(&quantized.path().join("model.gguf"), &keys, &tensors, dtype);
        write(&plain.path().join("model.gguf"), &keys, &tensors.iter().map(rounded).collect(), |_| GgmlDType::F32);
        let (found, expected) = (load(quantized.path()).unwrap(), load(plain.path()).unwrap());
        assert_same_tensors(&found, &expected);
        let name = "model.layers.0.mlp.gate_up_proj.weight";
        assert!(found.tensors.quantized_type(name).is_some());
        assert_eq!(found.tensors.block_format(name).is_some(), is_kept);
        let blocks = found.tensors.read_blocks(name).unwrap();
        assert_eq!(blocks.map(|rows| rows.values(0..rows.rows())), is_kept.then(|| found.tensors.read(name).unwrap()));
    }
}

/// Factors that llama.cpp takes for absent: its default for scores is the usual one.
#[test]
fn factors_may_be_absent() {
    let file = changed("granite", attention_only("granitemoehybrid").path(), |keys, _| {
        let absent = ["granite.attention.scale", "granite.residual_scale", "granite.embedding_scale"];
        keys.retain(|(key, _)| !absent.contains(&key.as_str()));
        keys.retain(|(key, _)| key != "granite.rope.scaling.finetuned");
    });
    let config = load(file.path()).unwrap().config;
    assert_eq!((config.attention_scale, config.residual_scale, config.embedding_scale), (0.25, 1.0, 1.0));
    assert!(!config.ropes.is_empty());
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let (all, _folders) = all();
    let refused = |at: usize, change: &dyn Fn(&mut Metadata, &mut Tensors)| {
        let (arch, folder) = &all[at];
        refusal(changed(arch, folder, |keys, tensors| change(keys, tensors)).path())
    };
    let number = |value: u32| Some(Value::U32(value));
    let heads = |values: &[usize]| Some(Value::Array(values.iter().map(|&value| count(value)).collect()));
    let cases = [
        (0, "granitehybrid.ssm.inner_size", number(65), "granitehybrid.ssm.inner_size is 65 with 8 heads"),
        (
            0,
            "granitehybrid.ssm.inner_size",
            number(64),
            "mamba.conv1d.weight has shape [160, 1, 4], expected [96, 1, 4]",
        ),
        (0, "granitehybrid.ssm.group_count", number(0), "granitehybrid.ssm.group_count is zero"),
        (0, "granitehybrid.logit_scale", None, "granitehybrid.logit_scale is missing"),
        (0, "granitehybrid.attention.head_count_kv", heads(&[0, 2]), "head_count_kv has 2 entries for 3 blocks"),
        (0, "granitehybrid.attention.head_count_kv", heads(&[0, 2, 1]), "head_count_kv 2 and 1 (supported: one"),
        (1, "granitehybrid.expert_used_count", None, "granitehybrid.expert_used_count is missing"),
        (1, "granitehybrid.expert_shared_feed_forward_length", None, "shared_feed_forward_length is missing"),
        (2, "granite.expert_count", number(4), "granite.expert_count 4 (a mixture of experts)"),
        (4, "lfm2.shortconv.l_cache", number(0), "lfm2.shortconv.l_cache is zero"),
        (4, "lfm2.shortconv.l_cache", number(4), "model.layers.0.conv.conv.weight has shape [64, 1, 3]"),
        (4, "lfm2.attention.causal", Some(Value::Bool(false)), "lfm2.attention.causal false (supported: true)"),
        (4, "lfm2.attention.sliding_window", number(8), "lfm2.attention.sliding_window 8 (supported: 0)"),
        (4, "lfm2.attention.head_count_kv", number(2), "model.layers.0.self_attn.q_proj.weight is missing"),
    ];
    for (at, key, value, expected) in cases {
        let found = refused(at, &|keys, _| {
            keys.retain(|(found, _)| found != key);
            keys.extend(value.clone().map(|value| (key.to_owned(), value)));
        });
        assert!(found.contains(expected), "{key}: {found}");
    }
    let without = |at: usize, name: &str| refused(at, &|_, tensors| tensors.retain(|(found, _)| found != name));
    assert!(without(0, "blk.0.ffn_up.weight").contains("mlp.up_proj.weight is missing"));
    assert!(without(0, "blk.0.ffn_gate.weight").contains("shared_mlp.input_linear.weight is missing"));
    assert!(without(4, "token_embd_norm.weight").contains("model.embedding_norm.weight is missing"));
    let found = refused(4, &|_, tensors| tensors[0].0 = "output_norm.weight".into());
    assert_eq!(found, "unsupported model: GGUF tensor output_norm.weight");
    // A norm of embeddings is a part of other models.
    let found = refused(2, &|_, tensors| tensors[0].0 = "token_embd_norm.weight".into());
    assert_eq!(found, "unsupported model: GGUF tensor token_embd_norm.weight");
    let found = refused(0, &|_, tensors| {
        let (_, up) = tensors.iter_mut().find(|(name, _)| name == "blk.0.ffn_up.weight").unwrap();
        *up = up.narrow(1, 0, 32).unwrap().force_contiguous().unwrap();
    });
    assert!(found.contains("mlp.up_proj.weight has shape [48, 32], expected [48, 64]"), "{found}");
}

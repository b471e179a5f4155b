//! GGUF files of families with recurrences, written here from Hugging Face's folders as llama.cpp's converter would.

use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use serde_json::json;
use tempfile::TempDir;

use super::gguf::{gguf_name, metadata};
use super::gguf_experts::write;
use super::gguf_newer::{Metadata, Tensors, count, interleaved, raw, set, with_blocks};
use super::{assert_reads_parts, golden, refusal};
use crate::config::{Block, ModelConfig, RecurrentShape, RouterScores};
use crate::load::load;

/// Names in folders and in files, within a block; the first that fits counts.
const NAMES: [(&str, &str); 38] = [
    ("linear_attn.in_proj_qkv", "attn_qkv"),
    ("linear_attn.in_proj_z", "attn_gate"),
    ("linear_attn.in_proj_a", "ssm_alpha"),
    ("linear_attn.in_proj_b", "ssm_beta"),
    ("linear_attn.conv1d", "ssm_conv1d"),
    ("linear_attn.A_log", "ssm_a"),
    ("linear_attn.dt_bias", "ssm_dt.bias"),
    ("linear_attn.norm", "ssm_norm"),
    ("linear_attn.out_proj", "ssm_out"),
    ("post_attention_layernorm", "post_attention_norm"),
    ("mlp.shared_expert_gate", "ffn_gate_inp_shexp"),
    ("mlp.shared_expert.gate_proj", "ffn_gate_shexp"),
    ("mlp.shared_expert.up_proj", "ffn_up_shexp"),
    ("mlp.shared_expert.down_proj", "ffn_down_shexp"),
    ("mlp.gate.", "ffn_gate_inp."),
    ("mlp.experts.down_proj", "ffn_down_exps.weight"),
    ("mixer.in_proj", "ssm_in"),
    ("mixer.conv1d", "ssm_conv1d"),
    ("mixer.A_log", "ssm_a"),
    ("mixer.D", "ssm_d"),
    ("mixer.dt_bias", "ssm_dt.bias"),
    ("mixer.norm", "ssm_norm"),
    ("mixer.out_proj", "ssm_out"),
    ("mixer.q_proj", "attn_q"),
    ("mixer.k_proj", "attn_k"),
    ("mixer.v_proj", "attn_v"),
    ("mixer.o_proj", "attn_output"),
    ("mixer.shared_experts.up_proj", "ffn_up_shexp"),
    ("mixer.shared_experts.down_proj", "ffn_down_shexp"),
    ("mixer.gate.e_score_correction_bias", "exp_probs_b.bias"),
    ("mixer.gate.", "ffn_gate_inp."),
    ("mixer.experts.0.up_proj", "ffn_up_exps"),
    ("mixer.experts.0.down_proj", "ffn_down_exps"),
    ("mixer.fc1_latent_proj", "ffn_latent_down"),
    ("mixer.fc2_latent_proj", "ffn_latent_up"),
    ("mixer.up_proj", "ffn_up"),
    ("mixer.down_proj", "ffn_down"),
    ("norm.weight", "attn_norm.weight"),
];

fn name_of(name: &str) -> String {
    let name = name.replace("backbone.embeddings", "model.embed_tokens").replace("backbone.norm_f", "model.norm");
    let name = name.replace("backbone.", "model.");
    let Some((layer, rest)) = name.strip_prefix("model.layers.").and_then(|name| name.split_once('.')) else {
        return gguf_name(&name);
    };
    match NAMES.iter().find_map(|(from, to)| Some(format!("{to}{}", rest.strip_prefix(from)?))) {
        Some(own) => format!("blk.{layer}.{own}"),
        None => gguf_name(&name),
    }
}

fn shape(config: &ModelConfig) -> RecurrentShape {
    *config.recurrences().next().unwrap()
}

/// The first value heads of all key heads, then the second ones; `rows` before them stay.
fn tiled(tensor: &Tensor, config: &ModelConfig, rows: usize) -> Tensor {
    let RecurrentShape { key_heads, value_heads, .. } = shape(config);
    let values = tensor.narrow(0, rows, tensor.dim(0).unwrap() - rows).unwrap();
    let width = values.elem_count() / value_heads;
    let heads = values.contiguous().unwrap().reshape((key_heads, value_heads / key_heads, width)).unwrap();
    let values = heads.transpose(0, 1).unwrap().contiguous().unwrap().reshape(values.dims()).unwrap();
    Tensor::cat(&[tensor.narrow(0, 0, rows).unwrap(), values], 0).unwrap()
}

/// A tensor of Qwen3.5 in files.
fn of_qwen(name: &str, tensor: Tensor, config: &ModelConfig) -> Tensor {
    let keys = 2 * shape(config).key_width();
    let module = name.split('.').skip(3).collect::<Vec<_>>().join(".");
    match module.as_str() {
        "linear_attn.in_proj_qkv.weight" => tiled(&tensor, config, keys),
        "linear_attn.conv1d.weight" => tiled(&tensor.squeeze(1).unwrap(), config, keys),
        "linear_attn.in_proj_z.weight"
        | "linear_attn.in_proj_a.weight"
        | "linear_attn.in_proj_b.weight"
        | "linear_attn.dt_bias" => tiled(&tensor, config, 0),
        "linear_attn.A_log" => tiled(&tensor.exp().unwrap().neg().unwrap(), config, 0),
        "linear_attn.out_proj.weight" => {
            let columns = tiled(&tensor.t().unwrap().contiguous().unwrap(), config, 0);
            columns.t().unwrap().contiguous().unwrap()
        }
        "linear_attn.norm.weight" => tensor,
        "mlp.shared_expert_gate.weight" => tensor.squeeze(0).unwrap(),
        _ if name.ends_with("norm.weight") => (tensor + 1.0).unwrap(),
        _ => tensor,
    }
}

/// A tensor of Nemotron-H in files.
fn of_nemotron(name: &str, tensor: Tensor, config: &ModelConfig) -> Tensor {
    match name.split('.').skip(3).collect::<Vec<_>>().join(".").as_str() {
        "mixer.A_log" => tensor.exp().unwrap().neg().unwrap().unsqueeze(1).unwrap(),
        "mixer.D" => tensor.unsqueeze(1).unwrap(),
        "mixer.conv1d.weight" => tensor.squeeze(1).unwrap(),
        "mixer.norm.weight" => tensor.reshape((shape(config).key_heads, ())).unwrap(),
        "mixer.q_proj.weight" => interleaved(&tensor, config.num_heads),
        "mixer.k_proj.weight" => interleaved(&tensor, config.num_kv_heads),
        _ => tensor,
    }
}

fn tensors(arch: &str, folder: &Path, config: &ModelConfig) -> Tensors {
    let all = raw(folder);
    let mut tensors = Tensors::new();
    for (name, tensor) in &all {
        if let Some(block) = name.strip_suffix("mlp.experts.gate_up_proj") {
            let halves = tensor.chunk(2, 1).unwrap();
            for (part, half) in ["gate", "up"].into_iter().zip(halves) {
                tensors.push((name_of(&format!("{block}ffn_{part}_exps.weight")), half.contiguous().unwrap()));
            }
            continue;
        }
        let Some((block, rest)) = name.split_once("mixer.experts.") else {
            let of = if arch.starts_with("qwen") { of_qwen } else { of_nemotron };
            tensors.push((name_of(name), of(name, tensor.clone(), config)));
            continue;
        };
        let Some(part) = rest.strip_prefix("0.") else { continue };
        let each: Vec<_> = (0..8).map(|expert| &all[&format!("{block}mixer.experts.{expert}.{part}")]).collect();
        tensors.push((name_of(name), Tensor::stack(&each, 0).unwrap()));
    }
    tensors
}

fn keys(arch: &str, folder: &Path) -> (Metadata, ModelConfig) {
    let source = load(folder).unwrap();
    let (mut keys, config) = (metadata(arch, &source), source.config);
    let mut own = |key: &str, value: Value| set(&mut keys, &format!("{arch}.{key}"), value);
    let recurrent = shape(&config);
    own("ssm.conv_kernel", count(recurrent.kernel));
    own("ssm.state_size", count(recurrent.key_dim));
    own("ssm.group_count", count(recurrent.key_heads));
    own("ssm.time_step_rank", count(recurrent.value_heads));
    own("ssm.inner_size", count(recurrent.value_width()));
    let experts = config.blocks.iter().find_map(|block| block.experts.as_ref());
    if let Some(experts) = experts {
        own("expert_count", count(experts.count));
        own("expert_used_count", count(experts.rule.per_token));
        own("expert_feed_forward_length", count(experts.width));
        own("expert_shared_feed_forward_length", count(experts.shared.unwrap()));
        if let RouterScores::Sigmoid { groups, scaling, .. } = experts.rule.scores {
            own("expert_shared_count", Value::U32(1));
            own("expert_group_count", count(groups));
            own("expert_weights_norm", Value::Bool(experts.rule.normalised));
            own("expert_weights_scale", Value::F32(scaling));
        }
        if let Some(latent) = experts.latent {
            own("moe_latent_size", count(latent));
        }
    }
    if arch.starts_with("qwen") {
        own("rope.dimension_count", count(config.rope_dim()));
        own("rope.dimension_sections", Value::Array([4, 2, 2, 0].map(Value::I32).to_vec()));
        own("full_attention_interval", count(config.num_layers()));
        return (keys, config);
    }
    // It is written for models without positions too, and need not be the width of a head.
    own("rope.dimension_count", Value::U32(99));
    let width = |block: &Block| match &block.experts {
        _ if !block.has_mlp => 0,
        Some(experts) => experts.width,
        None => config.intermediate_size,
    };
    own("feed_forward_length", Value::Array(config.blocks.iter().map(|block| count(width(block))).collect()));
    let heads = |block: &Block| if block.attention().is_some() { config.num_kv_heads } else { 0 };
    own("attention.head_count_kv", Value::Array(config.blocks.iter().map(|block| count(heads(block))).collect()));
    (keys, config)
}

fn changed(arch: &str, folder: &Path, change: impl FnOnce(&mut Metadata, &mut Tensors)) -> TempDir {
    let (mut keys, config) = keys(arch, folder);
    let mut tensors = tensors(arch, folder, &config);
    change(&mut keys, &mut tensors);
    let file = tempfile::tempdir().unwrap();
    write(&file.path().join("model.gguf"), &keys, &tensors, |_| GgmlDType::F32);
    file
}

/// Nemotron-H as llama.cpp has it: with MLPs or with experts.
fn nemotron(blocks: &[usize]) -> TempDir {
    const KINDS: [&str; 6] = ["linear_attention", "moe", "full_attention", "mlp", "linear_attention", "moe"];
    with_blocks("nemotron_h", blocks, |config| {
        let kinds: Vec<_> = blocks.iter().map(|&block| KINDS[block]).collect();
        config.insert("layers_block_type".into(), json!(kinds));
    })
}

/// Architectures, and folders that they are the architecture of.
fn all() -> (Vec<(&'static str, PathBuf)>, [TempDir; 2]) {
    let (dense, mixture) = (nemotron(&[0, 2, 3, 4]), nemotron(&[0, 1, 2, 4, 5]));
    let of = vec![
        ("qwen35", golden("qwen3_5")),
        ("qwen35moe", golden("qwen3_5_moe")),
        ("nemotron_h", dense.path().to_owned()),
        ("nemotron_h_moe", mixture.path().to_owned()),
        ("nemotron_h_moe", golden("nemotron_h_latent")),
    ];
    (of, [dense, mixture])
}

/// The same model. Adding 1 cost weights of norms their last bits, and exponentiating cost decays theirs; all else is the same to
/// the bit.
pub(super) fn assert_is(file: &Path, folder: &Path) {
    let (source, mut reference) = (load(file).unwrap(), load(folder).unwrap());
    reference.config.eos_token_ids = vec![2];
    assert_eq!(source.config, reference.config);
    assert_eq!(source.tensors.names(), reference.tensors.names());
    let is_qwen = source.config.norm_offset == 1.0;
    for name in source.tensors.names() {
        assert_eq!(source.tensors.shape(&name), reference.tensors.shape(&name), "{name}");
        let (found, expected) = (source.tensors.read(&name).unwrap(), reference.tensors.read(&name).unwrap());
        let has_one_added = is_qwen && name.ends_with("norm.weight") && !name.ends_with(".linear_attn.norm.weight");
        if has_one_added || name.ends_with(".A_log") {
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{name}: {found:?} {expected:?}");
        } else {
            assert!(found == expected, "{name}");
        }
    }
    assert_reads_parts(&source);
}

#[test]
fn a_converted_model_is_the_model() {
    let (all, _folders) = all();
    for (arch, folder) in all {
        assert_is(changed(arch, &folder, |_, _| {}).path(), &folder);
    }
}

#[test]
fn quantized_heads_are_put_in_order() {
    let (all, _folders) = all();
    for (arch, folder) in all {
        let (keys, config) = keys(arch, &folder);
        let tensors = tensors(arch, &folder, &config);
        let fits = |tensor: &Tensor| tensor.rank() == 2 && tensor.dim(1).unwrap().is_multiple_of(32);
        let dtype = |name: &str| {
            let tensor = &tensors.iter().find(|(found, _)| found == name).unwrap().1;
            if fits(tensor) { GgmlDType::Q8_0 } else { GgmlDType::F32 }
        };
        let rounded = |(name, tensor): &(String, Tensor)| {
            let rounded = QTensor::quantize(tensor, dtype(name)).unwrap().dequantize(&Device::Cpu).unwrap();
            (name.clone(), rounded)
        };
        let (quantized, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(&quantized.path().join("model.gguf"), &keys, &tensors, dtype);
        let rounded = tensors.iter().map(rounded).collect();
        write(&plain.path().join("model.gguf"), &keys, &rounded, |_| GgmlDType::F32);
        super::assert_same_tensors(&load(quantized.path()).unwrap(), &load(plain.path()).unwrap());
    }
}

/// Files may list the blocks with a recurrence, and have blocks for multi-token prediction after the last block.
#[test]
fn blocks_of_qwen_may_be_listed() {
    let with = |list: &[bool]| {
        let list = Value::Array(list.iter().map(|&recurs| Value::Bool(recurs)).collect());
        changed("qwen35", &golden("qwen3_5"), |keys, tensors| {
            set(keys, "qwen35.full_attention_interval", Value::U32(2));
            set(keys, "qwen35.attention.recurrent_layers", list);
            set(keys, "qwen35.block_count", Value::U32(5));
            set(keys, "qwen35.nextn_predict_layers", Value::U32(1));
            let norm = tensors.iter().find(|(name, _)| name == "output_norm.weight").unwrap().1.clone();
            tensors.push(("blk.4.nextn.enorm.weight".into(), norm));
        })
    };
    assert_is(with(&[true, true, true, false, false]).path(), &golden("qwen3_5"));
    let found = refusal(with(&[true, true, true]).path());
    assert!(found.contains("qwen35.attention.recurrent_layers has 3 entries for 4 blocks"), "{found}");
}

/// Files have the score of the shared expert's gate as a vector or as a matrix with one row.
#[test]
fn a_gate_of_one_row_is_a_matrix() {
    let file = changed("qwen35moe", &golden("qwen3_5_moe"), |_, tensors| {
        for (_, tensor) in tensors.iter_mut().filter(|(name, _)| name.ends_with("ffn_gate_inp_shexp.weight")) {
            *tensor = tensor.unsqueeze(0).unwrap();
        }
    });
    assert_is(file.path(), &golden("qwen3_5_moe"));
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let (all, _folders) = all();
    let refused = |arch: &str, change: &dyn Fn(&mut Metadata, &mut Tensors)| {
        let (_, folder) = all.iter().find(|(found, _)| *found == arch).unwrap();
        refusal(changed(arch, folder, |keys, tensors| change(keys, tensors)).path())
    };
    let numbers = |values: &[usize]| Some(Value::Array(values.iter().map(|&value| count(value)).collect()));
    let number = |value: u32| Some(Value::U32(value));
    let cases = [
        ("qwen35", "ssm.group_count", number(3), "qwen35.ssm.group_count is 3, which does not divide 4 value heads"),
        ("qwen35", "ssm.group_count", number(0), "qwen35.ssm.group_count is zero"),
        ("qwen35", "ssm.time_step_rank", None, "qwen35.ssm.time_step_rank is missing"),
        ("qwen35", "ssm.inner_size", number(65), "qwen35.ssm.inner_size is 65 with 4 heads"),
        ("qwen35", "ssm.state_size", number(u32::MAX), "qwen35.ssm.* are out of range"),
        ("qwen35", "ssm.state_size", number(8), "in_proj_qkv.weight has shape [128, 64], expected [96, 64]"),
        ("qwen35", "full_attention_interval", number(0), "qwen35.full_attention_interval is zero"),
        ("qwen35", "full_attention_interval", number(2), "tensor model.layers.1.self_attn.q_proj.weight is missing"),
        ("qwen35", "rope.dimension_count", number(33), "qwen35.rope.dimension_count 33 with heads of width 32"),
        ("qwen35", "attention.recurrent_layers", Some(Value::String("x".into())), "is not a list of truth values"),
        ("qwen35", "nextn_predict_layers", number(4), "qwen35.nextn_predict_layers is 4 of 4 blocks"),
        ("qwen35moe", "expert_count", number(7), "has shape [8, 16, 64], expected [7, 16, 64]"),
        ("qwen35moe", "expert_weights_norm", Some(Value::Bool(false)), "qwen35moe.expert_weights_norm false"),
        ("qwen35moe", "expert_gating_func", number(2), "qwen35moe.expert_gating_func 2 (supported: 1)"),
        ("qwen35moe", "expert_shared_feed_forward_length", None, "expert_shared_feed_forward_length is missing"),
        ("nemotron_h", "expert_count", number(8), "nemotron_h.expert_count 8 (a mixture of experts)"),
        ("nemotron_h", "feed_forward_length", numbers(&[0, 0, 160]), "feed_forward_length has 3 entries for 4 blocks"),
        ("nemotron_h", "feed_forward_length", None, "nemotron_h.feed_forward_length is missing"),
        ("nemotron_h", "attention.head_count_kv", numbers(&[0, 2, 4, 0]), "head_count_kv 2 and 4 (supported: one"),
        ("nemotron_h", "attention.head_count_kv", number(2), "tensor backbone.layers.0.mixer.q_proj.weight is missing"),
        (
            "nemotron_h",
            "attention.layer_norm_rms_epsilon",
            None,
            "nemotron_h.attention.layer_norm_rms_epsilon is missing",
        ),
        ("nemotron_h", "ssm.inner_size", number(0), "nemotron_h.ssm.inner_size is 0 with 4 heads"),
        ("nemotron_h", "ssm.conv_kernel", number(0), "nemotron_h.ssm.conv_kernel is zero"),
        ("nemotron_h_moe", "expert_gating_func", number(1), "nemotron_h_moe.expert_gating_func 1 (supported: 2)"),
        ("nemotron_h_moe", "moe_latent_size", number(8), "up_proj.weight has shape [8, 24, 64], expected [8, 24, 8]"),
    ];
    for (arch, key, value, expected) in cases {
        let key = format!("{arch}.{key}");
        let found = refused(arch, &|keys, _| {
            keys.retain(|(found, _)| *found != key);
            keys.extend(value.clone().map(|value| (key.clone(), value)));
        });
        assert!(found.contains(expected), "{key}: {found}");
    }
    let without = |arch: &str, name: &str| refused(arch, &|_, tensors| tensors.retain(|(found, _)| found != name));
    let missing = |name: &str| format!("tensor {name} is missing");
    assert_eq!(without("qwen35", "blk.0.ssm_a"), missing("model.layers.0.linear_attn.A_log"));
    assert_eq!(without("qwen35", "blk.2.ssm_conv1d.weight"), missing("model.layers.2.linear_attn.conv1d.weight"));
    assert_eq!(without("nemotron_h", "blk.0.ssm_conv1d.bias"), missing("backbone.layers.0.mixer.conv1d.bias"));
    assert_eq!(
        without("nemotron_h_moe", "blk.1.ffn_up_exps.weight"),
        missing("model.layers.1.mlp.experts.up_proj.weight")
    );
    let found = refused("nemotron_h", &|_, tensors| tensors[0].0 = "blk.0.ssm_x.weight".into());
    assert_eq!(found, "unsupported model: GGUF tensor blk.0.ssm_x.weight");
}

/// A decay that no exponential is, and none that is not a number.
#[test]
fn decays_that_are_not_negative_are_refused() {
    let file = changed("qwen35", &golden("qwen3_5"), |_, tensors| {
        let (_, decays) = tensors.iter_mut().find(|(name, _)| name == "blk.1.ssm_a").unwrap();
        *decays = decays.neg().unwrap();
    });
    let source = load(file.path()).unwrap();
    let error = source.tensors.read("model.layers.1.linear_attn.A_log").unwrap_err().to_string();
    assert!(error.contains("tensor model.layers.1.linear_attn.A_log with element "), "{error}");
    assert!(error.contains("expected finite negative numbers"), "{error}");
}

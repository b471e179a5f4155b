//! GGUF files of families with experts, written here from the golden models as llama.cpp's converter would.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use safetensors::SafeTensors;
use tempfile::TempDir;

use super::gguf::{gguf_name, metadata};
use super::{assert_reads_parts, assert_same_tensors, golden, mxfp4, refusal, without_query_latent};
use crate::config::{Experts, ModelConfig, ModelSource, RopeScaling, RouterScores};
use crate::load::load;

type Metadata = Vec<(String, Value)>;
type Tensors = Vec<(String, Tensor)>;

/// Architecture and golden folder of each family.
const FAMILIES: [(&str, &str); 4] =
    [("qwen3moe", "qwen3_moe"), ("gpt-oss", "gpt_oss"), ("deepseek2", "deepseek_v3"), ("glm4moe", "glm4_moe")];

fn experts(config: &ModelConfig) -> &Experts {
    config.blocks.iter().find_map(|block| block.experts.as_ref()).unwrap()
}

fn count(value: usize) -> Value {
    Value::U32(value as u32)
}

/// The metadata of a family with experts.
fn keys(arch: &str, config: &ModelConfig, source: &ModelSource) -> Metadata {
    let mut keys = metadata(arch, source);
    let experts = experts(config);
    let mut set = |key: &str, value: Value| {
        let key = format!("{arch}.{key}");
        keys.retain(|(found, _)| *found != key);
        keys.push((key, value));
    };
    set("expert_count", count(experts.count));
    set("expert_used_count", count(experts.rule.per_token));
    set("expert_feed_forward_length", count(experts.width));
    if let Some(rotated) = config.rotary_dim {
        set("rope.dimension_count", count(rotated));
    }
    if let Some(window) = config.blocks.iter().find_map(|block| block.attention()?.window) {
        set("attention.sliding_window", count(window));
    }
    if let RopeScaling::Yarn { factor, beta_fast, beta_slow, original_max_position_embeddings, .. } =
        config.ropes[0].scaling
    {
        set("rope.scaling.type", Value::String("yarn".into()));
        set("rope.scaling.factor", Value::F32(factor as f32));
        set("rope.scaling.original_context_length", count(original_max_position_embeddings));
        set("rope.scaling.yarn_beta_fast", Value::F32(beta_fast as f32));
        set("rope.scaling.yarn_beta_slow", Value::F32(beta_slow as f32));
    }
    if let RouterScores::Sigmoid { groups, chosen_groups, scaling } = experts.rule.scores {
        set("expert_gating_func", Value::U32(2));
        set("expert_group_count", count(groups));
        set("expert_group_used_count", count(chosen_groups));
        set("expert_weights_scale", Value::F32(scaling));
        set("expert_weights_norm", Value::Bool(experts.rule.normalised));
        set("expert_shared_count", count(experts.shared.unwrap_or(0) / experts.width));
        let dense = config.blocks.iter().take_while(|block| block.experts.is_none()).count();
        set("leading_dense_block_count", count(dense));
    }
    if let Some(latent) = config.latent {
        set("attention.head_count_kv", Value::U32(1));
        if let Some(rank) = latent.query_rank {
            set("attention.q_lora_rank", count(rank));
        }
        set("attention.kv_lora_rank", count(latent.kv_rank));
        set("attention.key_length", count(latent.kv_rank + latent.rope_dim));
        set("attention.value_length", count(latent.kv_rank));
        set("attention.key_length_mla", count(latent.query_dim()));
        set("attention.value_length_mla", count(latent.value_dim));
        set("rope.dimension_count", count(latent.rope_dim));
    }
    keys
}

/// llama.cpp's name of a tensor, with all experts in one.
fn name_of(arch: &str, name: &str) -> String {
    let post_attention = if ["gpt-oss", "glm4moe"].contains(&arch) { "post_attention_norm" } else { "ffn_norm" };
    let own = [
        ("mlp.gate.e_score_correction_bias", "exp_probs_b.bias"),
        ("self_attn.sinks", "attn_sinks.weight"),
        ("post_attention_layernorm", post_attention),
        ("mlp.gate.", "ffn_gate_inp."),
        ("mlp.router.", "ffn_gate_inp."),
        ("mlp.shared_experts.gate_proj", "ffn_gate_shexp"),
        ("mlp.shared_experts.up_proj", "ffn_up_shexp"),
        ("mlp.shared_experts.down_proj", "ffn_down_shexp"),
        ("mlp.experts.gate_proj", "ffn_gate_exps"),
        ("mlp.experts.up_proj", "ffn_up_exps"),
        ("mlp.experts.down_proj", "ffn_down_exps"),
        ("self_attn.q_a_proj", "attn_q_a"),
        ("self_attn.q_a_layernorm", "attn_q_a_norm"),
        ("self_attn.q_b_proj", "attn_q_b"),
        ("self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"),
        ("self_attn.kv_a_layernorm", "attn_kv_a_norm"),
        ("self_attn.kv_b_proj", "attn_kv_b"),
    ];
    gguf_name(&own.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to)))
}

fn tensor(source: &ModelSource, name: &str) -> Tensor {
    let shape = source.tensors.shape(name).unwrap();
    Tensor::from_vec(source.tensors.read(name).unwrap(), shape, &Device::Cpu).unwrap()
}

/// All tensors, those of experts stacked.
fn tensors(arch: &str, source: &ModelSource) -> Tensors {
    let mut all = Tensors::new();
    for name in source.tensors.names() {
        let Some((block, rest)) = name.split_once(".mlp.experts.") else {
            all.push((name_of(arch, &name), tensor(source, &name)));
            continue;
        };
        let Some(part) = rest.strip_prefix("0.") else { continue };
        let each: Vec<Tensor> = (0..experts(&source.config).count)
            .map(|expert| tensor(source, &format!("{block}.mlp.experts.{expert}.{part}")))
            .collect();
        all.push((name_of(arch, &format!("{block}.mlp.experts.{part}")), Tensor::stack(&each, 0).unwrap()));
    }
    all
}

/// Latent attention as newer files have it: the halves of `kv_b` apart, keys transposed.
fn split_latents(config: &ModelConfig, tensors: Tensors) -> Tensors {
    let latent = config.latent.unwrap();
    let (heads, width) = (config.num_heads, latent.nope_dim + latent.value_dim);
    let split = |(name, tensor): (String, Tensor)| {
        let Some(block) = name.strip_suffix("attn_kv_b.weight") else { return vec![(name, tensor)] };
        let whole = tensor.reshape((heads, width, latent.kv_rank)).unwrap();
        let keys = whole.narrow(1, 0, latent.nope_dim).unwrap().transpose(1, 2).unwrap().contiguous().unwrap();
        let values = whole.narrow(1, latent.nope_dim, latent.value_dim).unwrap().contiguous().unwrap();
        vec![(format!("{block}attn_k_b.weight"), keys), (format!("{block}attn_v_b.weight"), values)]
    };
    tensors.into_iter().flat_map(split).collect()
}

pub(super) fn write(path: &Path, metadata: &Metadata, tensors: &Tensors, dtype: impl Fn(&str) -> GgmlDType) {
    let tensors: Vec<_> =
        tensors.iter().map(|(name, tensor)| (name, QTensor::quantize(tensor, dtype(name)).unwrap())).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

/// The golden model of a family as a GGUF file in f32, after a change.
fn changed(arch: &str, folder: &Path, change: impl FnOnce(&mut Metadata, &mut Tensors)) -> TempDir {
    let source = load(folder).unwrap();
    let mut keys = keys(arch, &source.config, &source);
    let mut tensors = tensors(arch, &source);
    if arch == "deepseek2" {
        tensors = split_latents(&source.config, tensors);
    }
    change(&mut keys, &mut tensors);
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("model.gguf"), &keys, &tensors, |_| GgmlDType::F32);
    folder
}

/// The golden model in a folder, whose architecture this is in llama.cpp, as a GGUF file in f32.
pub(crate) fn in_gguf(arch: &str, folder: &Path) -> TempDir {
    changed(arch, folder, |_, _| {})
}

fn assert_is(found: &Path, reference: &Path) {
    let (source, mut reference) = (load(found).unwrap(), load(reference).unwrap());
    reference.config.eos_token_ids = vec![2];
    assert_eq!(source.config, reference.config);
    assert_same_tensors(&source, &reference);
}

#[test]
fn a_converted_model_is_the_model() {
    for (arch, family) in FAMILIES {
        assert_is(in_gguf(arch, &golden(family)).path(), &golden(family));
    }
    let other = without_query_latent();
    assert_is(in_gguf("deepseek2", other.path()).path(), other.path());
}

#[test]
fn kimi_is_deepseek_without_groups() {
    let (file, reference) = (in_gguf("deepseek2", &golden("kimi_k25")), load(&golden("kimi_k25")).unwrap());
    let source = load(file.path()).unwrap();
    assert_same_tensors(&source, &reference);
    let spelled = ModelConfig {
        arch: reference.config.arch,
        spelling: reference.config.spelling.clone(),
        eos_token_ids: reference.config.eos_token_ids.clone(),
        ..source.config
    };
    assert_eq!(spelled, reference.config);
}

/// The first files of Kimi-K2 do not say how experts are grouped, and neither do those of DeepSeek-V3.
#[test]
fn groups_of_known_models_need_not_be_written() {
    let with = |experts: usize| {
        refusal(
            changed("deepseek2", &golden("kimi_k25"), |keys, _| {
                keys.retain(|(key, _)| !key.contains("expert_group_") && key != "deepseek2.expert_count");
                keys.push(("deepseek2.expert_count".into(), count(experts)));
            })
            .path(),
        )
    };
    assert!(with(8).contains("deepseek2.expert_group_count is missing"));
    assert!(with(384).contains("gate_proj.weight has shape [8, 32, 64], expected [384, 32, 64]"));
}

/// Files have blocks for multi-token prediction after the last block, and count them.
#[test]
fn blocks_that_predict_further_tokens_are_left_out() {
    let with = |further: u32, blocks: u32| {
        changed("glm4moe", &golden("glm4_moe"), |keys, tensors| {
            keys.retain(|(key, _)| key != "glm4moe.block_count");
            keys.push(("glm4moe.block_count".into(), Value::U32(blocks)));
            keys.push(("glm4moe.nextn_predict_layers".into(), Value::U32(further)));
            let norm = tensors.iter().find(|(name, _)| name == "blk.1.attn_norm.weight").unwrap().1.clone();
            tensors.push(("blk.2.nextn.enorm.weight".into(), norm.clone()));
            tensors.push(("blk.2.attn_norm.weight".into(), norm));
        })
    };
    assert_is(with(1, 3).path(), &golden("glm4_moe"));
    assert!(refusal(with(0, 3).path()).contains("GGUF tensor blk.2.nextn.enorm.weight"));
    for further in [3, 4] {
        let found = refusal(with(further, 3).path());
        assert!(found.contains(&format!("glm4moe.nextn_predict_layers is {further} of 3 blocks")), "{found}");
    }
}

/// Files of before the halves of `kv_b` were stored apart, and of the time when they had both.
#[test]
fn latent_attention_is_read_in_its_older_forms() {
    let source = load(&golden("deepseek_v3")).unwrap();
    let latent = source.config.latent.unwrap();
    let mut keys = keys("deepseek2", &source.config, &source);
    keys.retain(|(key, _)| !key.ends_with("_mla"));
    for (key, value) in [
        ("head_count_kv", source.config.num_heads),
        ("key_length", latent.query_dim()),
        ("value_length", latent.value_dim),
    ] {
        let key = format!("deepseek2.attention.{key}");
        keys.retain(|(found, _)| *found != key);
        keys.push((key, count(value)));
    }
    let whole = tensors("deepseek2", &source);
    let mut both = split_latents(&source.config, whole.clone());
    both.extend(whole.iter().filter(|(name, _)| name.ends_with("attn_kv_b.weight")).cloned());
    for tensors in [whole, both] {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("model.gguf"), &keys, &tensors, |_| GgmlDType::F32);
        assert_is(folder.path(), &golden("deepseek_v3"));
    }
}

#[test]
fn quantized_experts_are_dequantized_one_by_one() {
    for (arch, family) in FAMILIES {
        let source = load(&golden(family)).unwrap();
        let (keys, tensors) = (keys(arch, &source.config, &source), tensors(arch, &source));
        for dtype in [GgmlDType::Q8_0, GgmlDType::Q4_0, GgmlDType::BF16] {
            let folder = tempfile::tempdir().unwrap();
            // Blocks lie within rows; those of widths that they do not divide stay as they are.
            let fits = |name: &str| {
                let tensor = &tensors.iter().find(|(found, _)| found == name).unwrap().1;
                tensor.dims().last().unwrap().is_multiple_of(dtype.block_size())
            };
            let of = |name: &str| if name.contains("_exps.weight") && fits(name) { dtype } else { GgmlDType::F32 };
            write(&folder.path().join("model.gguf"), &keys, &tensors, of);
            let loaded = load(folder.path()).unwrap();
            let (_, stack) = tensors.iter().find(|(name, _)| name == "blk.1.ffn_up_exps.weight").unwrap();
            let expected = QTensor::quantize(stack, dtype).unwrap().dequantize(&Device::Cpu).unwrap();
            for expert in 0..experts(&source.config).count {
                let expected = expected.get(expert).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
                let name = format!("model.layers.1.mlp.experts.{expert}.up_proj.weight");
                assert!(loaded.tensors.read(&name).unwrap() == expected, "{arch}, {dtype:?}, {expert}");
            }
            assert_reads_parts(&loaded);
        }
    }
}

/// Writes a file with tensors in their bytes: candle has no MXFP4.
fn write_raw(path: &Path, metadata: &Metadata, tensors: &[(String, Vec<usize>, u32, Vec<u8>)]) {
    fn text(to: &mut Vec<u8>, text: &str) {
        to.extend((text.len() as u64).to_le_bytes());
        to.extend(text.as_bytes());
    }
    let mut head = b"GGUF".to_vec();
    head.extend(3_u32.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    head.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        text(&mut head, key);
        match value {
            Value::U32(value) => head.extend([4_u32.to_le_bytes(), value.to_le_bytes()].concat()),
            Value::F32(value) => head.extend([6_u32.to_le_bytes(), value.to_le_bytes()].concat()),
            Value::String(value) => {
                head.extend(8_u32.to_le_bytes());
                text(&mut head, value);
            }
            other => panic!("{key} is {other:?}"),
        }
    }
    let (mut offset, mut data) = (0_u64, Vec::new());
    for (name, shape, number, bytes) in tensors {
        text(&mut head, name);
        head.extend((shape.len() as u32).to_le_bytes());
        shape.iter().rev().for_each(|&extent| head.extend((extent as u64).to_le_bytes()));
        head.extend(number.to_le_bytes());
        head.extend(offset.to_le_bytes());
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(32), 0);
        offset = data.len() as u64;
    }
    head.resize(head.len().next_multiple_of(32), 0);
    let mut file = File::create(path).unwrap();
    file.write_all(&head).unwrap();
    file.write_all(&data).unwrap();
}

/// The outputs of a stack of MXFP4 that a projection has, in the bytes of GGUF.
fn repacked(file: &SafeTensors<'_>, name: &str, first: usize, step: usize) -> (Vec<usize>, Vec<u8>) {
    let (blocks, scales) =
        (file.tensor(&format!("{name}_blocks")).unwrap(), file.tensor(&format!("{name}_scales")).unwrap());
    let [experts, outputs, row, 16] = blocks.shape()[..] else { panic!("{:?}", blocks.shape()) };
    let mut bytes = Vec::new();
    for (expert, output) in (0..experts).flat_map(|e| (first..outputs).step_by(step).map(move |output| (e, output))) {
        for block in 0..row {
            let at = (expert * outputs + output) * row + block;
            bytes.push(scales.data()[at]);
            let pairs = &blocks.data()[16 * at..16 * (at + 1)];
            let element =
                |index: usize| if index.is_multiple_of(2) { pairs[index / 2] & 15 } else { pairs[index / 2] >> 4 };
            bytes.extend((0..16).map(|index| element(index) | (element(index + 16) << 4)));
        }
    }
    (vec![experts, outputs / step, 32 * row], bytes)
}

#[test]
fn mxfp4_is_that_of_the_checkpoint() {
    let reference = mxfp4();
    let source = load(reference.path()).unwrap();
    let bytes = fs::read(reference.path().join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut packed = BTreeMap::new();
    for layer in 0..2 {
        let stack = |part: &str| format!("model.layers.{layer}.mlp.experts.{part}");
        for (own, part, first, step) in
            [("gate", "gate_up_proj", 0, 2), ("up", "gate_up_proj", 1, 2), ("down", "down_proj", 0, 1)]
        {
            let name = format!("blk.{layer}.ffn_{own}_exps.weight");
            packed.insert(name, repacked(&file, &stack(part), first, step));
        }
    }
    let all: Vec<_> = tensors("gpt-oss", &source)
        .into_iter()
        .map(|(name, tensor)| match packed.remove(&name) {
            Some((shape, bytes)) => {
                assert_eq!(shape, tensor.dims());
                (name, shape, 39, bytes)
            }
            None => {
                let values = tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                (name, tensor.dims().to_vec(), 0, values.iter().flat_map(|value| value.to_le_bytes()).collect())
            }
        })
        .collect();
    assert!(packed.is_empty());
    let folder = tempfile::tempdir().unwrap();
    write_raw(&folder.path().join("model.gguf"), &keys("gpt-oss", &source.config, &source), &all);
    assert_is(folder.path(), reference.path());
}

#[test]
fn stretched_latent_attention_is_scaled_as_the_file_says() {
    let with = |tenth: Option<f32>| {
        let folder = changed("deepseek2", &golden("deepseek_v3"), |keys, _| {
            keys.push(("deepseek2.rope.scaling.type".into(), Value::String("yarn".into())));
            keys.push(("deepseek2.rope.scaling.factor".into(), Value::F32(40.0)));
            keys.push(("deepseek2.rope.scaling.original_context_length".into(), Value::U32(64)));
            keys.extend(tenth.map(|tenth| ("deepseek2.rope.scaling.yarn_log_multiplier".into(), Value::F32(tenth))));
        });
        let config = load(folder.path()).unwrap().config;
        let RopeScaling::Yarn { attention_factor, .. } = config.ropes[0].scaling else { panic!("YaRN") };
        (attention_factor, f64::from(config.attention_scale) * 24f64.sqrt())
    };
    let recommended = |scale: f64| 0.1 * scale * 40f64.ln() + 1.0;
    let close = |found: (f64, f64), expected: (f64, f64)| {
        assert!((found.0 - expected.0).abs() < 1e-12 && (found.1 - expected.1).abs() < 1e-6, "{found:?} {expected:?}");
    };
    close(with(Some(0.1)), (1.0, recommended(1.0).powi(2)));
    close(with(Some(0.0707)), (1.0, recommended(0.707).powi(2)));
    close(with(None), (recommended(1.0), 1.0));
}

#[test]
fn what_is_unsupported_is_refused_by_name() {
    let refused = |arch: &str, change: &dyn Fn(&mut Metadata, &mut Tensors)| {
        let (_, family) = FAMILIES.into_iter().find(|(found, _)| *found == arch).unwrap();
        refusal(changed(arch, &golden(family), |keys, tensors| change(keys, tensors)).path())
    };
    let set = |arch: &str, key: &str, value: Option<Value>| {
        let key = format!("{arch}.{key}");
        refused(arch, &|keys, _| {
            keys.retain(|(found, _)| *found != key);
            keys.extend(value.clone().map(|value| (key.clone(), value)));
        })
    };
    let cases = [
        ("qwen3moe", "expert_count", None, "metadata key qwen3moe.expert_count is missing"),
        (
            "qwen3moe",
            "expert_count",
            Some(Value::U32(7)),
            "gate_proj.weight has shape [8, 48, 64], expected [7, 48, 64]",
        ),
        ("qwen3moe", "expert_count", Some(Value::U32(1 << 30)), "num_local_experts is 1073741824"),
        ("qwen3moe", "expert_used_count", Some(Value::U32(9)), "num_experts_per_tok 9"),
        ("qwen3moe", "expert_gating_func", Some(Value::U32(2)), "qwen3moe.expert_gating_func 2 (supported: 1)"),
        ("qwen3moe", "expert_weights_scale", Some(Value::F32(2.5)), "qwen3moe.expert_weights_scale 2.5 (supported: 1)"),
        ("qwen3moe", "expert_shared_count", Some(Value::U32(1)), "qwen3moe.expert_shared_count 1 (supported: 0)"),
        ("gpt-oss", "expert_gating_func", Some(Value::U32(1)), "gpt-oss.expert_gating_func 1 (supported: 3)"),
        (
            "gpt-oss",
            "rope.freq_base_swa",
            Some(Value::F32(1e4)),
            "gpt-oss.rope.freq_base_swa 10000 (supported: 150000)",
        ),
        ("gpt-oss", "attention.sliding_window", None, "gpt-oss.attention.sliding_window is missing"),
        ("gpt-oss", "attention.value_length", Some(Value::U32(8)), "gpt-oss.attention.value_length 8"),
        ("deepseek2", "expert_gating_func", None, "deepseek2.expert_gating_func 1 (supported: 2, a sigmoid)"),
        ("deepseek2", "expert_group_count", None, "deepseek2.expert_group_count is missing"),
        ("glm4moe", "expert_gating_func", Some(Value::U32(1)), "glm4moe.expert_gating_func 1 (supported: 2)"),
        ("glm4moe", "expert_feed_forward_length", None, "glm4moe.expert_feed_forward_length is missing"),
        (
            "glm4moe",
            "rope.dimension_count",
            Some(Value::U32(17)),
            "glm4moe.rope.dimension_count 17 with heads of width 16",
        ),
        (
            "glm4moe",
            "rope.dimension_count",
            Some(Value::U32(0)),
            "glm4moe.rope.dimension_count 0 with heads of width 16",
        ),
        (
            "deepseek2",
            "rope.dimension_count",
            Some(Value::U32(99)),
            "deepseek2.rope.dimension_count 99 in heads of width 24",
        ),
        (
            "deepseek2",
            "attention.temperature_scale",
            Some(Value::F32(0.1)),
            "deepseek2.attention.temperature_scale 0.1 (supported: 0)",
        ),
        ("deepseek2", "nextn_predict_layers", Some(Value::U32(1)), "deepseek2.nextn_predict_layers 1 (supported: 0)"),
        (
            "deepseek2",
            "expert_shared_feed_forward_length",
            Some(Value::U32(99)),
            "deepseek2.expert_shared_feed_forward_length 99 (supported: 32)",
        ),
    ];
    for (arch, key, value, expected) in cases {
        let found = set(arch, key, value);
        assert!(found.contains(expected), "{key}: {found}");
    }
    let without = |arch: &str, name: &str| refused(arch, &|_, tensors| tensors.retain(|(found, _)| found != name));
    let missing = |name: &str| format!("tensor {name} is missing");
    assert_eq!(without("gpt-oss", "blk.1.attn_sinks.weight"), missing("model.layers.1.self_attn.sinks"));
    assert_eq!(without("gpt-oss", "blk.1.ffn_up_exps.weight"), missing("model.layers.1.mlp.experts.up_proj.weight"));
    assert_eq!(without("gpt-oss", "blk.1.ffn_up_exps.bias"), missing("model.layers.1.mlp.experts.0.up_proj.bias"));
    assert_eq!(
        without("deepseek2", "blk.1.exp_probs_b.bias"),
        missing("model.layers.1.mlp.gate.e_score_correction_bias")
    );
    assert_eq!(without("glm4moe", "blk.1.attn_q.bias"), missing("model.layers.1.self_attn.q_proj.bias"));
    assert_eq!(without("deepseek2", "blk.0.attn_v_b.weight"), missing("model.layers.0.self_attn.v_b_proj.weight"));
    let renamed = |arch: &str, from: &str, to: &str| {
        refused(arch, &|_, tensors| {
            tensors.iter_mut().filter(|(name, _)| name == from).for_each(|(name, _)| *name = to.to_owned());
        })
    };
    let found = renamed("qwen3moe", "blk.0.ffn_up_exps.weight", "blk.0.ffn_gate_up_exps.weight");
    assert_eq!(found, "unsupported model: GGUF tensor blk.0.ffn_gate_up_exps.weight");
    let found = refused("deepseek2", &|_, tensors| {
        let keys = tensors.iter_mut().find(|(name, _)| name == "blk.0.attn_k_b.weight").unwrap();
        keys.1 = keys.1.flatten(0, 1).unwrap();
    });
    assert!(found.contains("kv_b_proj.weight of attn_k_b with shape [64, 16]"), "{found}");
}

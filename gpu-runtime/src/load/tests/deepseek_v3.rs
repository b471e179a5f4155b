//! Configurations and tensors of DeepSeek-V3.

use std::collections::BTreeMap;
use std::fs;

use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::{Dtype, serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{config_of, folder, golden, refusal, without_query_latent};
use crate::config::{Biases, LatentAttention, ModelConfig, RopeScaling, RouterRule, RouterScores};
use crate::load::load;
use crate::model::ParamTable;

const CORRECTION: &str = "model.layers.1.mlp.gate.e_score_correction_bias";

fn with(keys: &[(&str, Value)]) -> TempDir {
    let mut config = config_of("deepseek_v3");
    for (key, value) in keys {
        match value {
            Value::Null if *key != "q_lora_rank" => drop(config.remove(*key)),
            value => drop(config.insert((*key).into(), value.clone())),
        }
    }
    folder("deepseek_v3", &config)
}

fn config(keys: &[(&str, Value)]) -> ModelConfig {
    load(with(keys).path()).unwrap().config
}

/// The golden model with another tensor in its file, or without it.
fn with_tensor(name: &str, tensor: Option<(Vec<usize>, Vec<f32>)>) -> TempDir {
    let folder = with(&[]);
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut all: BTreeMap<String, TensorView<'_>> = file.tensors().into_iter().collect();
    assert!(all.remove(name).is_some());
    let data: Vec<u8> = tensor.iter().flat_map(|(_, values)| values).flat_map(|value| value.to_le_bytes()).collect();
    if let Some((shape, _)) = tensor {
        all.insert(name.to_owned(), TensorView::new(Dtype::F32, shape, &data).unwrap());
    }
    let file = serialize(all, None).unwrap();
    fs::write(path, file).unwrap();
    folder
}

#[test]
fn the_configuration_says_what_is_latent_and_what_is_routed() {
    let c = load(&golden("deepseek_v3")).unwrap().config;
    let latent = LatentAttention {
        query_rank: Some(24),
        kv_rank: 16,
        nope_dim: 16,
        rope_dim: 8,
        value_dim: 16,
        interleaved: true,
        norm_eps: 1e-6,
    };
    assert_eq!((c.arch, c.latent), ("deepseek_v3", Some(latent)));
    assert_eq!((c.num_heads, c.num_kv_heads, c.head_dim, c.rope_dim(), c.attended_width()), (4, 4, 24, 8, 64));
    assert!((c.attention_scale - 1.0 / 24f32.sqrt()).abs() < 1e-7);
    assert!(c.blocks[0].experts.is_none() && c.blocks[0].biases == Biases::default());
    let experts = c.blocks[1].experts.as_ref().unwrap();
    assert_eq!((experts.count, experts.width, experts.shared, experts.router), (8, 32, Some(32), "mlp.gate"));
    let scores = RouterScores::Sigmoid { groups: 2, chosen_groups: 1, scaling: 2.5 };
    assert_eq!(experts.rule, RouterRule { per_token: 2, normalised: true, scores });
    assert_eq!(experts.correction, [0.0; 8]);
    assert!(!config(&[("rope_interleave", json!(false))]).latent.unwrap().interleaved);
    assert!(config(&[("n_shared_experts", json!(0))]).blocks[1].experts.as_ref().unwrap().shared.is_none());
}

#[test]
fn queries_may_have_no_latent() {
    let folder = without_query_latent();
    let source = load(folder.path()).unwrap();
    assert_eq!(source.config.latent.unwrap().query_rank, None);
    let names: Vec<String> = ParamTable::new(&source.config).specs.into_iter().map(|spec| spec.name).collect();
    let own = names.iter().filter(|name| name.starts_with("model.layers.0.self_attn.q_")).collect::<Vec<_>>();
    assert_eq!(own, ["model.layers.0.self_attn.q_proj.weight"]);
}

/// Rotated vectors are scaled by the quotient of both scales, and scores by the square of that of all dimensions, as in
/// the model's code.
#[test]
fn yarn_scales_scores_as_mscale_says() {
    let yarn = |mscale: f64, all: f64| {
        json!({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40, "beta_fast": 32, "beta_slow": 1,
            "mscale": mscale, "mscale_all_dim": all, "original_max_position_embeddings": 64})
    };
    let of = |rope: Value| {
        let c = config(&[("rope_parameters", rope)]);
        let RopeScaling::Yarn { attention_factor, .. } = c.ropes[0].scaling else { panic!("YaRN") };
        (f64::from(c.attention_scale) * 24f64.sqrt(), attention_factor)
    };
    let scale = |mscale: f64| 0.1 * mscale * 40f64.ln() + 1.0;
    let close = |(a, b): (f64, f64), (c, d): (f64, f64)| assert!((a - c).abs() + (b - d).abs() < 1e-5, "{a} {b}");
    close(of(yarn(1.0, 1.0)), (scale(1.0).powi(2), 1.0));
    close(of(yarn(0.5, 0.707)), (scale(0.707).powi(2), scale(0.5) / scale(0.707)));
    close(of(yarn(1.0, 0.0)), (1.0, scale(1.0)));
    // The older spelling.
    let mut rope = yarn(1.0, 1.0);
    let kind = rope.as_object_mut().unwrap().remove("rope_type").unwrap();
    rope["type"] = kind;
    let c = config(&[("rope_parameters", Value::Null), ("rope_scaling", rope)]);
    assert!((f64::from(c.attention_scale) * 24f64.sqrt() - scale(1.0).powi(2)).abs() < 1e-5);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let cases = [
        ("num_key_value_heads", json!(2), "num_key_value_heads 2 (supported: 4"),
        ("qk_rope_head_dim", json!(7), "qk_rope_head_dim is 7"),
        ("q_lora_rank", json!(0), "q_lora_rank is zero"),
        ("q_lora_rank", Value::Null, "tensor model.layers.0.self_attn.q_proj.weight is missing"),
        ("kv_lora_rank", json!(17), "kv_a_proj_with_mqa.weight has shape [24, 64], expected [25, 64]"),
        ("v_head_dim", json!(15), "kv_b_proj.weight has shape [128, 16], expected [124, 16]"),
        ("n_group", json!(3), "n_group is 3, topk_group 1"),
        ("topk_group", json!(3), "topk_group 3"),
        ("num_experts_per_tok", json!(5), "num_experts_per_tok 5"),
        ("n_routed_experts", json!(10), "tensor model.layers.1.mlp.experts.8.gate_proj.weight is missing"),
        ("n_shared_experts", json!(2), "shared_experts.gate_proj.weight has shape [32, 64], expected [64, 64]"),
        ("first_k_dense_replace", json!(2), "tensor model.layers.1.mlp.gate_proj.weight is missing"),
        ("attention_bias", json!(true), "tensor model.layers.0.self_attn.q_a_proj.bias is missing"),
        ("scoring_func", json!("softmax"), "scoring_func \"softmax\" (supported: sigmoid)"),
        ("topk_method", json!("greedy"), "topk_method \"greedy\" (supported: noaux_tc)"),
        ("moe_layer_freq", json!(2), "moe_layer_freq 2 (supported: 1)"),
        ("routed_scaling_factor", json!(1e300), "routed_scaling_factor is inf"),
        ("quantization_config", json!({"quant_method": "awq"}), "quantization_config awq (quantized safetensors)"),
        ("quantization_config", json!({"quant_method": "fp8"}), "fp8 without a weight_block_size of two extents"),
        (
            "quantization_config",
            json!({"quant_method": "fp8", "weight_block_size": [128, 0]}),
            "fp8 without a weight_block_size of two extents",
        ),
        (
            "quantization_config",
            json!({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e5m2"}),
            "fmt \"e5m2\" (supported: e4m3)",
        ),
    ];
    for (key, value, expected) in cases {
        let found = refusal(with(&[(key, value)]).path());
        assert!(found.contains(expected), "{key}: {found}");
    }
}

#[test]
fn corrections_are_read_checked_and_written() {
    let values: Vec<f32> = (0..8).map(|i| 0.01 * i as f32 - 0.03).collect();
    let source = load(with_tensor(CORRECTION, Some((vec![8], values.clone()))).path()).unwrap();
    assert_eq!(source.config.blocks[1].experts.as_ref().unwrap().correction, values);
    assert_eq!(source.config.corrections().collect::<Vec<_>>(), [(CORRECTION.to_owned(), &values[..])]);

    assert_eq!(refusal(with_tensor(CORRECTION, None).path()), format!("tensor {CORRECTION} is missing"));
    let found = refusal(with_tensor(CORRECTION, Some((vec![4, 2], values.clone()))).path());
    assert_eq!(found, format!("tensor {CORRECTION} has shape [4, 2], expected [8]"));
    let found = refusal(with_tensor(CORRECTION, Some((vec![8], vec![f32::INFINITY; 8]))).path());
    assert!(found.contains(&format!("tensor {CORRECTION} is not finite")), "{found}");
}

/// The golden model with a projection of each kind in 8 bits: bytes and scales are numbered.
fn quantized(change: impl Fn(&mut BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>)) -> TempDir {
    let config =
        json!({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [48, 10], "activation_scheme": "dynamic"});
    let folder = with(&[("quantization_config", config)]);
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut all = BTreeMap::new();
    for (name, view) in file.tensors() {
        let shape = view.shape().to_vec();
        let is_projection = name.contains("_proj") && shape.len() == 2;
        if !is_projection {
            all.insert(name, (Dtype::F32, shape, view.data().to_vec()));
            continue;
        }
        // No NaN, which is 127 and 255.
        let packed = (0..shape[0] * shape[1]).map(|i| (i * 31 % 127) as u8).collect();
        let blocks = vec![shape[0].div_ceil(48), shape[1].div_ceil(10)];
        let scales = (0..blocks[0] * blocks[1]).flat_map(|i| (0.01 * (i + 1) as f32).to_le_bytes()).collect();
        all.insert(format!("{name}_scale_inv"), (Dtype::F32, blocks, scales));
        all.insert(name, (Dtype::F8_E4M3, shape, packed));
    }
    change(&mut all);
    let views = all
        .iter()
        .map(|(name, (dtype, shape, data))| (name.clone(), TensorView::new(*dtype, shape.clone(), data).unwrap()));
    let written = serialize(views.collect::<BTreeMap<_, _>>(), None).unwrap();
    fs::write(path, written).unwrap();
    folder
}

/// A folder with the quantized model, unchanged.
pub(crate) fn fp8() -> TempDir {
    quantized(|_| {})
}

#[test]
fn blocks_of_8_bit_floats_are_dequantized() {
    let folder = fp8();
    let source = load(folder.path()).unwrap();
    let name = "model.layers.0.mlp.gate_proj.weight";
    let found = source.tensors.read(name).unwrap();
    for (row, column) in (0..160).flat_map(|row| (0..64).map(move |column| (row, column))) {
        let at = row * 64 + column;
        let bits = at * 31 % 127;
        let (exponent, mantissa) = (bits / 8, (bits % 8) as f32);
        let value = match exponent {
            0 => mantissa / 512.0,
            _ => (1.0 + mantissa / 8.0) * 2f32.powi(exponent as i32 - 7),
        };
        let scale = 0.01 * (row / 48 * 7 + column / 10 + 1) as f32;
        assert_eq!(found[at], value * scale, "{row}, {column}");
    }
    assert!(source.tensors.read_part(name, 70..90).unwrap() == found[70..90]);
    assert!(source.tensors.names().iter().all(|name| !name.ends_with("_scale_inv")));
    let plain = load(&golden("deepseek_v3")).unwrap();
    let norm = "model.norm.weight";
    assert!(source.tensors.read(norm).unwrap() == plain.tensors.read(norm).unwrap());
    assert_eq!(source.config, plain.config);
}

#[test]
fn damaged_blocks_are_refused_by_name() {
    let scales = "model.layers.0.mlp.gate_proj.weight_scale_inv";
    let found = refusal(quantized(|tensors| drop(tensors.remove(scales))).path());
    assert_eq!(found, format!("tensor {scales} is missing"));
    let found = refusal(
        quantized(|tensors| drop(tensors.insert(scales.into(), (Dtype::F32, vec![7, 4], vec![0; 112])))).path(),
    );
    assert_eq!(found, format!("tensor {scales} has shape [7, 4], expected [4, 7]"));
    let norm = "model.norm.weight";
    let found =
        refusal(quantized(|tensors| drop(tensors.insert(norm.into(), (Dtype::F8_E4M3, vec![64], vec![0; 64])))).path());
    assert!(found.contains(&format!("tensor {norm} in FP8 has shape Some([64])")), "{found}");
    // Without the configuration that says what they are.
    let folder = quantized(|_| {});
    fs::write(folder.path().join("config.json"), serde_json::to_vec(&config_of("deepseek_v3")).unwrap()).unwrap();
    assert!(refusal(folder.path()).contains("has dtype F8_E4M3"));
}

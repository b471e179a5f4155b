//! Configurations of families with experts.

use std::collections::BTreeMap;
use std::fs;

use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::{Dtype, serialize};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{config_of, folder, golden, refusal};
use crate::config::{Activation, Biases, Block, ExpertStorage, HeadNorms, RopeScaling, RouterRule};
use crate::load::load;
use crate::model::ParamTable;

#[test]
fn configurations_say_what_is_routed() {
    let qwen = load(&golden("qwen3_moe")).unwrap().config;
    let block = &qwen.blocks[1];
    let experts = block.experts.as_ref().unwrap();
    assert_eq!((experts.count, experts.width, experts.router), (8, 48, "mlp.gate"));
    assert_eq!(experts.rule, RouterRule::softmax(2, true));
    assert!(experts.correction.is_empty() && experts.shared.is_none());
    let attention = block.attention().unwrap();
    assert_eq!(experts.storage, ExpertStorage::Apart);
    assert_eq!((attention.sinks, attention.head_norms), (false, HeadNorms::Heads));

    let oss = load(&golden("gpt_oss")).unwrap().config;
    let window = |block: &Block| block.attention().unwrap().window;
    assert_eq!(oss.blocks.iter().map(window).collect::<Vec<_>>(), [Some(16), None]);
    let block = &oss.blocks[0];
    let experts = block.experts.as_ref().unwrap();
    assert_eq!((experts.count, experts.width, experts.router), (4, 48, "mlp.router"));
    assert_eq!(
        (experts.storage, block.attention().unwrap().sinks, block.activation),
        (ExpertStorage::Interleaved, true, Activation::ClampedSwish)
    );
    assert_eq!(block.biases, Biases { qkv: true, o: true, mlp: true, router: true });
    let RopeScaling::Yarn { factor, attention_factor, truncate, .. } = oss.ropes[0].scaling else { panic!("YaRN") };
    assert_eq!((factor, truncate), (32.0, false));
    assert!((attention_factor - (0.1 * 32f64.ln() + 1.0)).abs() < 1e-12);
}

#[test]
fn blocks_without_experts_are_dense() {
    let experts_of = |key: &str, value: Value| {
        let mut config = config_of("qwen3_moe");
        config.insert(key.into(), value);
        refusal(folder("qwen3_moe", &config).path())
    };
    let missing = "tensor model.layers.0.mlp.gate_proj.weight is missing";
    assert_eq!(experts_of("mlp_only_layers", json!([0])), missing);
    assert_eq!(experts_of("decoder_sparse_step", json!(2)), missing);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let cases = [
        ("qwen3_moe", "num_experts_per_tok", json!(9), "num_local_experts is 8 and num_experts_per_tok 9"),
        ("qwen3_moe", "num_experts_per_tok", json!(0), "num_experts_per_tok is zero"),
        ("qwen3_moe", "num_local_experts", json!(9), "tensor model.layers.0.mlp.experts.8.gate_proj.weight is missing"),
        (
            "qwen3_moe",
            "moe_intermediate_size",
            json!(47),
            "experts.0.gate_proj.weight has shape [48, 64], expected [47, 64]",
        ),
        ("gpt_oss", "num_local_experts", json!(5), "experts.gate_up_proj has shape [4, 64, 96], expected [5, 64, 96]"),
        ("gpt_oss", "swiglu_limit", json!(5.0), "swiglu_limit 5 (supported: 7)"),
        ("gpt_oss", "quantization_config", json!({"quant_method": "fp8"}), "quantization_config fp8"),
        ("qwen3_moe", "quantization_config", json!({"quant_method": "mxfp4"}), "quantization_config"),
        ("qwen3_moe", "model_type", json!("deepseek_v2"), "model_type \"deepseek_v2\" (supported: "),
    ];
    for (family, key, value, expected) in cases {
        let mut config = config_of(family);
        config.insert(key.into(), value);
        let found = refusal(folder(family, &config).path());
        assert!(found.contains(expected), "{key}: {found}");
    }
}

#[test]
fn stacked_experts_are_read_one_by_one() {
    let source = load(&golden("gpt_oss")).unwrap();
    for spec in ParamTable::new(&source.config).specs {
        assert_eq!(source.tensors.shape(&spec.name).as_ref(), Some(&spec.shape), "{}", spec.name);
        assert_eq!(source.tensors.read(&spec.name).unwrap().len(), spec.len());
    }
    let bytes = fs::read(golden("gpt_oss").join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let stack = file.tensor("model.layers.1.mlp.experts.gate_up_proj").unwrap();
    let stack: Vec<f32> = stack.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let read = |part: &str| source.tensors.read(&format!("model.layers.1.mlp.experts.3.{part}.weight")).unwrap();
    let (gate, up) = (read("gate_proj"), read("up_proj"));
    for (output, input) in (0..48).flat_map(|output| (0..64).map(move |input| (output, input))) {
        let pair = &stack[(3 * 64 + input) * 96 + 2 * output..][..2];
        assert_eq!(pair, [gate[output * 64 + input], up[output * 64 + input]]);
    }
}

/// A gpt-oss checkpoint with experts of width 64 in MXFP4: the bytes of a tensor are numbered.
fn quantized(change: impl Fn(&mut Map<String, Value>, &mut BTreeMap<String, (Vec<usize>, Vec<u8>)>)) -> TempDir {
    let mut config = config_of("gpt_oss");
    config.insert("intermediate_size".into(), json!(64));
    config.insert("quantization_config".into(), json!({"quant_method": "mxfp4"}));
    let bytes = fs::read(golden("gpt_oss").join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let (mut packed, mut floats) = (BTreeMap::new(), BTreeMap::new());
    for layer in 0..2 {
        let name = |part: &str| format!("model.layers.{layer}.mlp.experts.{part}");
        let numbered = |shape: &[usize], of: fn(usize) -> u8| {
            (shape.to_vec(), (0..shape.iter().product()).map(of).collect::<Vec<u8>>())
        };
        for (part, outputs) in [("gate_up_proj", 128), ("down_proj", 64)] {
            packed.insert(name(&format!("{part}_blocks")), numbered(&[4, outputs, 2, 16], |i| (i * 31 % 251) as u8));
            packed.insert(name(&format!("{part}_scales")), numbered(&[4, outputs, 2], |i| 120 + (i % 11) as u8));
        }
        for (part, width) in [("gate_up_proj_bias", 128), ("down_proj_bias", 64)] {
            floats.insert(name(part), (vec![4, width], vec![0u8; 16 * width]));
        }
    }
    change(&mut config, &mut packed);
    let mut all: BTreeMap<String, TensorView<'_>> =
        file.tensors().into_iter().filter(|(name, _)| !name.contains(".experts.")).collect();
    for (tensors, dtype) in [(&packed, Dtype::U8), (&floats, Dtype::F32)] {
        for (name, (shape, data)) in tensors {
            all.insert(name.clone(), TensorView::new(dtype, shape.clone(), data).unwrap());
        }
    }
    let folder = folder("gpt_oss", &config);
    fs::write(folder.path().join("model.safetensors"), serialize(all, None).unwrap()).unwrap();
    folder
}

/// A folder with the quantized model, unchanged.
pub(crate) fn mxfp4() -> TempDir {
    quantized(|_, _| {})
}

#[test]
fn mxfp4_is_dequantized() {
    let folder = mxfp4();
    let source = load(folder.path()).unwrap();
    let read = |name: &str| source.tensors.read(&format!("model.layers.1.mlp.experts.2.{name}.weight")).unwrap();
    const VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    // Element (output, input) of expert 2: the formats as their specification has them.
    let element = |outputs: usize, output: usize, input: usize| {
        let group = ((2 * outputs) + output) * 2 + input / 32;
        let byte = ((group * 16 + input % 32 / 2) * 31 % 251) as u8;
        let bits = if input.is_multiple_of(2) { byte % 16 } else { byte / 16 };
        let sign = if bits >= 8 { -1.0 } else { 1.0 };
        sign * VALUES[usize::from(bits % 8)] * 2f32.powi(120 + (group % 11) as i32 - 127)
    };
    let (gate, up, down) = (read("gate_proj"), read("up_proj"), read("down_proj"));
    for (output, input) in (0..64).flat_map(|output| (0..64).map(move |input| (output, input))) {
        let at = output * 64 + input;
        assert_eq!(gate[at], element(128, 2 * output, input));
        assert_eq!(up[at], element(128, 2 * output + 1, input));
        assert_eq!(down[at], element(64, output, input));
    }
}

#[test]
fn damaged_mxfp4_is_refused_by_name() {
    let scales = "model.layers.0.mlp.experts.down_proj_scales";
    let found = refusal(quantized(|_, tensors| drop(tensors.remove(scales))).path());
    assert_eq!(found, format!("tensor {scales} is missing"));
    let wrong = |_: &mut Map<String, Value>, tensors: &mut BTreeMap<String, (Vec<usize>, Vec<u8>)>| {
        tensors.insert(scales.to_owned(), (vec![4, 2, 64], vec![0; 512]));
    };
    let found = refusal(quantized(wrong).path());
    assert_eq!(found, format!("tensor {scales} has shape [4, 2, 64], expected [4, 64, 2]"));
    let narrow = |config: &mut Map<String, Value>, _: &mut BTreeMap<String, (Vec<usize>, Vec<u8>)>| {
        config.insert("intermediate_size".into(), json!(48));
    };
    let found = refusal(quantized(narrow).path());
    assert!(found.contains("experts.gate_up_proj has shape [4, 64, 128], expected [4, 64, 96]"), "{found}");
}

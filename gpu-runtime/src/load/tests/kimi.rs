//! Names, configurations and 4-bit experts of Kimi-K2 and its successors, in files that are made from the golden DeepSeek-V3.

use std::collections::BTreeMap;
use std::fs;

use safetensors::tensor::{SafeTensors, TensorView};
use safetensors::{Dtype, serialize};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{assert_reads_parts, config_of, golden, refusal};
use crate::config::ModelSource;
use crate::load::load;
use crate::model::ParamTable;

/// Type, extents and elements of tensors.
type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn write(config: &Map<String, Value>, tensors: &Tensors) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("config.json"), serde_json::to_vec(config).unwrap()).unwrap();
    let views = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| (name.clone(), TensorView::new(*dtype, shape.clone(), data).unwrap()));
    fs::write(folder.path().join("model.safetensors"), serialize(views.collect::<BTreeMap<_, _>>(), None).unwrap())
        .unwrap();
    folder
}

/// The golden DeepSeek-V3's tensors, renamed.
fn tensors(rename: impl Fn(&str) -> String) -> Tensors {
    let bytes = fs::read(golden("deepseek_v3").join("model.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors()
        .into_iter()
        .map(|(name, v)| (rename(&name), (v.dtype(), v.shape().to_vec(), v.data().to_vec())))
        .collect()
}

/// The configuration of a model with images around that of the golden DeepSeek-V3, whose files have no tower.
fn with_images(change: impl Fn(&mut Map<String, Value>)) -> Map<String, Value> {
    let mut text = config_of("deepseek_v3");
    text.insert("eos_token_id".into(), json!(7));
    change(&mut text);
    let keys = json!({"model_type": "kimi_k25", "eos_token_id": [5], "text_config": text, "vision_config": null});
    keys.as_object().unwrap().clone()
}

fn released(name: &str) -> String {
    format!("language_model.{name}")
}

fn newer(name: &str) -> String {
    name.strip_prefix("model.").map_or_else(|| name.to_owned(), |rest| format!("model.language_model.{rest}"))
}

fn parameters(source: &ModelSource) -> Vec<Vec<f32>> {
    ParamTable::new(&source.config).specs.iter().map(|spec| source.tensors.read(&spec.name).unwrap()).collect()
}

#[test]
fn both_spellings_of_models_with_images_are_read() {
    let plain = load(&golden("deepseek_v3")).unwrap();
    for rename in [released, newer] {
        let mut all = tensors(rename);
        for unused in ["vision_tower.patch_embed.proj.weight", "mm_projector.pre_norm.weight"] {
            all.insert(unused.to_owned(), (Dtype::F32, vec![1], vec![0; 4]));
        }
        let folder = write(&with_images(|_| {}), &all);
        let found = load(folder.path()).unwrap();
        assert_eq!((found.config.arch, &found.config.eos_token_ids[..]), ("kimi_k25", &[5, 7][..]));
        assert_eq!((&found.config.blocks, found.config.latent), (&plain.config.blocks, plain.config.latent));
        // The tower belongs to the model, and no parameter is in it.
        let mut names = found.tensors.names();
        names.retain(|name| !found.config.spelling.is_kept(name));
        assert_eq!(names.len() + 2, found.tensors.names().len());
        assert_eq!(names, plain.tensors.names());
        assert!(parameters(&found) == parameters(&plain));
    }
    let name = "language_model.model.layers.1.mlp.gate.weight";
    let mut all = tensors(released);
    all.remove(name);
    assert_eq!(refusal(write(&with_images(|_| {}), &all).path()), format!("tensor {name} is missing"));
    let found =
        refusal(write(&with_images(|text| drop(text.insert("model_type".into(), json!("llama")))), &all).path());
    assert!(found.contains("model_type \"llama\" in text_config (supported: kimi_k2, deepseek_v3)"), "{found}");
}

#[test]
fn kimi_k2_is_deepseek_v3_by_another_name() {
    let mut config = config_of("deepseek_v3");
    config.insert("model_type".into(), json!("kimi_k2"));
    let mut all = tensors(str::to_owned);
    // A block for multi-token prediction.
    all.insert("model.layers.2.eh_proj.weight".to_owned(), (Dtype::F32, vec![1], vec![0; 4]));
    let found = load(write(&config, &all).path()).unwrap();
    let plain = load(&golden("deepseek_v3")).unwrap();
    assert_eq!(found.config.arch, "kimi_k2");
    assert_eq!(found.tensors.names(), plain.tensors.names());
    assert!(parameters(&found) == parameters(&plain));
}

fn packing(change: impl Fn(&mut Value)) -> Value {
    let mut config = json!({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {
        "input_activations": null, "targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32, "strategy": "group",
        "symmetric": true, "type": "int", "actorder": null}}}, "ignore": ["lm_head", "re:.*self_attn.*"]});
    change(&mut config);
    config
}

/// Elements of experts are numbered: the value of the 4 bits at (row, column), and the scale of a group of 32.
fn bits(row: usize, column: usize) -> u32 {
    ((row * 7 + column * 3 + column / 8) % 16) as u32
}

fn scale(row: usize, group: usize) -> f32 {
    // Exact in bf16.
    (1 + (row + 2 * group) % 7) as f32 / 64.0
}

/// A model whose experts are packed.
fn packed(quantization: &Value, change: impl Fn(&mut Tensors)) -> TempDir {
    let mut all = Tensors::new();
    for (name, (dtype, shape, data)) in tensors(released) {
        let Some(module) = name.strip_suffix(".weight").filter(|name| name.contains(".mlp.experts.")) else {
            all.insert(name, (dtype, shape, data));
            continue;
        };
        let (rows, columns) = (shape[0], shape[1]);
        let word = |row, word| (0..8).fold(0u32, |all, i| all | bits(row, 8 * word + i) << (4 * i));
        let words = (0..rows).flat_map(|row| (0..columns / 8).flat_map(move |at| word(row, at).to_le_bytes()));
        let scales = (0..rows).flat_map(|row| {
            (0..columns / 32).flat_map(move |group| half::bf16::from_f32(scale(row, group)).to_le_bytes())
        });
        let extents = [rows as i32, columns as i32].into_iter().flat_map(i32::to_le_bytes).collect();
        all.insert(format!("{module}.weight_packed"), (Dtype::I32, vec![rows, columns / 8], words.collect()));
        all.insert(format!("{module}.weight_scale"), (Dtype::BF16, vec![rows, columns / 32], scales.collect()));
        all.insert(format!("{module}.weight_shape"), (Dtype::I32, vec![2], extents));
    }
    change(&mut all);
    write(&with_images(|text| drop(text.insert("quantization_config".into(), quantization.clone()))), &all)
}

#[test]
fn four_bit_integers_are_dequantized() {
    let folder = packed(&packing(|_| {}), |_| {});
    let source = load(folder.path()).unwrap();
    assert_eq!(source.tensors.names(), load(&golden("deepseek_v3")).unwrap().tensors.names());
    for (name, rows, columns) in [("up_proj", 32, 64), ("down_proj", 64, 32)] {
        let name = format!("model.layers.1.mlp.experts.3.{name}.weight");
        assert_eq!(source.tensors.shape(&name), Some(vec![rows, columns]));
        let found = source.tensors.read(&name).unwrap();
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let expected = (bits(row, column) as f32 - 8.0) * scale(row, column / 32);
            assert_eq!(found[row * columns + column], expected, "{row}, {column}");
        }
        for part in [3..9, 31..33, 40..41, 64..64, 7..rows * columns] {
            assert!(source.tensors.read_part(&name, part.clone()).unwrap() == found[part.clone()], "{part:?}");
        }
    }
    assert_reads_parts(&source);
}

#[test]
fn other_packings_are_refused_by_name() {
    let weights = |key: &'static str, value: Value| {
        move |config: &mut Value| config["config_groups"]["group_0"]["weights"][key] = value.clone()
    };
    let refused = |change: &dyn Fn(&mut Value)| refusal(packed(&packing(change), |_| {}).path());
    assert!(refused(&weights("num_bits", json!(8))).contains("num_bits Some(8) (supported: 4)"));
    assert!(refused(&weights("symmetric", json!(false))).contains("symmetric false (supported: true)"));
    assert!(refused(&weights("type", json!("float"))).contains("type \"float\" (supported: int)"));
    assert!(refused(&weights("strategy", json!("channel"))).contains("strategy \"channel\" (supported: group)"));
    assert!(refused(&weights("actorder", json!("group"))).contains("actorder \"group\""));
    assert!(refused(&weights("group_size", json!(0))).contains("group_size Some(0)"));
    assert!(refused(&weights("group_size", json!(48))).contains("whole groups of 48 inputs"));
    assert!(refused(&|config| config["format"] = json!("float-quantized")).contains("format \"float-quantized\""));
    assert!(refused(&|config| config["config_groups"] = json!({})).contains("0 config_groups (supported: 1)"));

    let module = "language_model.model.layers.1.mlp.experts.0.up_proj";
    let refused = |change: &dyn Fn(&mut Tensors)| refusal(packed(&packing(|_| {}), change).path());
    let scales = format!("{module}.weight_scale");
    assert_eq!(refused(&|all| drop(all.remove(&scales))), format!("tensor {scales} is missing"));
    let found = refused(&|all| drop(all.insert(scales.clone(), (Dtype::BF16, vec![32, 1], vec![0; 64]))));
    assert_eq!(found, format!("tensor {scales} has shape [32, 1], expected [32, 2]"));
    let found = refused(&|all| {
        if let Some((dtype, ..)) = all.get_mut(&format!("{module}.weight_packed")) {
            *dtype = Dtype::U32;
        }
    });
    assert!(found.contains("up_proj.weight_packed has dtype U32, expected packed elements"), "{found}");
}

//! Merged models of golden families against `W + (alpha / r) B A`.
#![allow(clippy::unwrap_used, reason = "tests")]

use tempfile::TempDir;

use super::*;
use crate::checkpoint::adapter::CONFIG_FILE;
use crate::checkpoint::{AdapterModule, write_adapter, written_name};
use crate::load::{describe, load};
use crate::rng::uniform;

const RANK: usize = 3;
const EVERY: LoraSpec = LoraSpec { latent_up: true, ..LoraSpec::on_all(RANK as u32, 0) };

fn golden(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(family)
}

fn values(stream: u64, count: usize) -> Vec<f32> {
    (0..count as u64).map(|at| (uniform(7, stream, at) as f32 - 0.5) * 0.1).collect()
}

/// Writes an adapter on all modules, and returns the changes by the names of parameters: `[outputs, inputs]`.
fn adapter(base: &ModelConfig, folder: &Path) -> BTreeMap<String, Vec<f32>> {
    let modules = ParamTable::adapted_modules(base, &EVERY);
    let names: Vec<String> = modules.iter().map(|module| written_name(base, module)).collect();
    let count = |shape: &Vec<usize>| shape.iter().product();
    let pairs: Vec<[Vec<f32>; 2]> = (0..)
        .zip(&modules)
        .map(|(at, module)| {
            let [a, b] = module.shapes(RANK);
            [values(2 * at, count(&a)), values(2 * at + 1, count(&b))]
        })
        .collect();
    let written = modules.iter().zip(&names).zip(&pairs).map(|((module, name), [a, b])| AdapterModule {
        name,
        shapes: module.shapes(RANK),
        a: &a[..],
        b: &b[..],
    });
    write_adapter(folder, "m", &EVERY, &[], false, written).unwrap();
    let mut changes = BTreeMap::new();
    for (module, [a, b]) in modules.iter().zip(&pairs) {
        let (outputs, inputs) = module.extents;
        let Some((layer, projection)) = module.slot else {
            changes.insert("lm_head.weight".to_owned(), product(a, b, [outputs, inputs]));
            continue;
        };
        let own = format!("model.layers.{layer}.{}", projection.module(&base.blocks[layer]));
        match &module.experts {
            None => drop(changes.insert(format!("{own}.weight"), product(a, b, [outputs, inputs]))),
            Some(experts) => {
                for expert in experts.clone() {
                    let name = own.replace("mlp.", &format!("mlp.experts.{expert}."));
                    let part = |all: &[f32], length: usize| match all.len() == length {
                        true => all.to_vec(),
                        false => all[expert * length..][..length].to_vec(),
                    };
                    let (a, b) = (part(a, RANK * inputs), part(b, outputs * RANK));
                    changes.insert(format!("{name}.weight"), product(&a, &b, [outputs, inputs]));
                }
            }
        }
    }
    changes
}

fn product(a: &[f32], b: &[f32], [outputs, inputs]: [usize; 2]) -> Vec<f32> {
    let scale = EVERY.scale();
    let of = |output: usize, input: usize| (0..RANK).map(|i| b[output * RANK + i] * a[i * inputs + input]).sum::<f32>();
    (0..outputs).flat_map(|output| (0..inputs).map(move |input| scale * of(output, input))).collect()
}

/// A base model, an adapter on it with its changes, and the merged model.
struct Folders {
    adapter: TempDir,
    to: TempDir,
    changes: BTreeMap<String, Vec<f32>>,
}

fn folders(base: &Path) -> Folders {
    let [adapter_folder, to] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let changes = adapter(&describe(base).unwrap(), adapter_folder.path());
    Folders { adapter: adapter_folder, to, changes }
}

#[test]
fn every_adapted_weight_changes_and_no_other() {
    for family in [
        "qwen2",
        "llama_tied",
        "qwen3_moe",
        "gpt_oss",
        "deepseek_v3",
        "kimi_k25",
        "phi3",
        "qwen3_5",
        "qwen3_5_moe",
        "nemotron_h",
        "nemotron_h_latent",
        "granitemoehybrid",
        "granitemoehybrid_moe",
        "lfm2",
    ] {
        let base = golden(family);
        let Folders { adapter, to, mut changes } = folders(&base);
        merge(adapter.path(), &base, to.path()).unwrap();
        let (before, after) = (load(&base).unwrap(), load(to.path()).unwrap());
        assert!(!after.config.tie_word_embeddings, "{family}");
        for spec in ParamTable::new(&after.config).specs {
            let is_head_of_tied = before.config.tie_word_embeddings && spec.name == HEAD;
            let of_base = if is_head_of_tied { EMBEDDING } else { &spec.name };
            let mut expected = before.tensors.read(of_base).unwrap();
            if let Some(change) = changes.remove(&spec.name) {
                expected.iter_mut().zip(&change).for_each(|(value, change)| *value += change);
                assert_ne!(expected, before.tensors.read(of_base).unwrap(), "{family} {}", spec.name);
            }
            let found = after.tensors.read(&spec.name).unwrap();
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(found.len() == expected.len() && worst < 1e-6, "{family} {}: {worst}", spec.name);
        }
        assert!(changes.is_empty(), "{family}: {:?}", changes.keys());
    }
}

#[test]
fn a_tied_table_is_copied_in_the_file_that_the_index_names() {
    let base = tempfile::tempdir().unwrap();
    fs::copy(golden("llama_tied").join("config.json"), base.path().join("config.json")).unwrap();
    let shard = "model-00001-of-00001.safetensors";
    fs::copy(golden("llama_tied").join("model.safetensors"), base.path().join(shard)).unwrap();
    fs::write(base.path().join("pytorch_model.bin"), "other weights").unwrap();
    let names = TensorFile::open(&base.path().join(shard)).unwrap().names().cloned().collect::<Vec<_>>();
    let map: Map<String, Value> = names.iter().map(|name| (name.clone(), json!(shard))).collect();
    fs::write(base.path().join(INDEX), json!({"metadata": {}, "weight_map": map}).to_string()).unwrap();
    let Folders { adapter, to, .. } = folders(base.path());
    merge(adapter.path(), base.path(), to.path()).unwrap();
    let index = read_object(&to.path().join(INDEX)).unwrap();
    assert_eq!(index["weight_map"][HEAD], shard);
    let config = read_object(&to.path().join("config.json")).unwrap();
    assert_eq!(config["tie_word_embeddings"], false);
    assert!(!to.path().join("pytorch_model.bin").exists());
    let merged = load(to.path()).unwrap();
    assert_ne!(merged.tensors.read(HEAD).unwrap(), merged.tensors.read(EMBEDDING).unwrap());
    // The base model is as before.
    let again = TensorFile::open(&base.path().join(shard)).unwrap();
    assert_eq!(again.names().cloned().collect::<Vec<_>>(), names);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let base = golden("qwen2");
    let refused = |Folders { adapter, to, .. }: Folders, base: &Path| {
        merge(adapter.path(), base, to.path()).unwrap_err().to_string()
    };
    // An adapter of a model with other modules, and one of other extents.
    let other = refused(folders(&golden("phi3")), &golden("lfm2"));
    assert!(other.contains("has no module model.layers.0.") || other.contains("has shape"), "{other}");
    let other = refused(folders(&golden("qwen3_moe")), &base);
    assert!(other.contains("has no module") || other.contains("has shape"), "{other}");
    // Variants of LoRA, and weights that cannot be changed.
    let own = folders(&base);
    let path = own.adapter.path().join(CONFIG_FILE);
    let mut config = read_object(&path).unwrap();
    config.insert("use_dora".to_owned(), json!(true));
    fs::write(&path, Value::Object(config).to_string()).unwrap();
    assert!(refused(own, &base).contains("use_dora"));
    let quantized = tempfile::tempdir().unwrap();
    let mut config = read_object(&golden("deepseek_v3").join("config.json")).unwrap();
    config.insert("quantization_config".to_owned(), json!({"quant_method": "fp8", "weight_block_size": [128, 128]}));
    fs::write(quantized.path().join("config.json"), Value::Object(config).to_string()).unwrap();
    assert!(refused(folders(&golden("deepseek_v3")), quantized.path()).contains("quantization_config"));
    let empty = tempfile::tempdir().unwrap();
    assert!(refused(folders(&base), empty.path()).contains("config.json"));
}

//! Configurations and tensors of families whose positions an indexer chooses.

use std::collections::BTreeMap;
use std::fs;

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{config_of, folder, golden, refusal};
use crate::config::{Indexer, ModelConfig};
use crate::load::load;

const GLM: &str = "indexed/glm_moe_dsa";

/// The golden model with other keys; `null` removes one.
fn with(keys: &[(&str, Value)]) -> TempDir {
    let mut config: Map<String, Value> = config_of(GLM);
    for (key, value) in keys {
        match value {
            Value::Null => drop(config.remove(*key)),
            value => drop(config.insert((*key).into(), value.clone())),
        }
    }
    folder(GLM, &config)
}

fn config(keys: &[(&str, Value)]) -> ModelConfig {
    load(with(keys).path()).unwrap().config
}

#[test]
fn the_configuration_says_how_positions_are_chosen() {
    let indexer = Indexer { count: 16, heads: 16, dim: 16, interleaved: true, layers: vec![true, false, true] };
    let c = config(&[]);
    assert_eq!((c.max_position_embeddings, c.indexer.as_ref()), (512, Some(&indexer)));
    assert_eq!([0, 1, 2].map(|layer| c.index_layer(layer)), [Some(0), None, Some(1)]);
    assert_eq!((c.index_keys().layers, c.index_keys().width), (2, 16));
    assert!(!config(&[("indexer_rope_interleave", json!(false))]).indexer.unwrap().interleaved);
    let deepseek = load(&golden("indexed/deepseek_v32")).unwrap().config.indexer.unwrap();
    assert_eq!((deepseek.interleaved, deepseek.layers), (false, vec![true, true]));
    // Within what is chosen there is nothing to choose.
    assert_eq!(config(&[("index_topk", json!(512))]).indexer, None);
    let dense = config(&[("index_topk", json!(511))]).without_indexer();
    assert_eq!((dense.max_position_embeddings, dense.indexer), (511, None));
}

/// Which of some layers have indexers, by the keys of a configuration whose file has those of layers 0 and 2 only.
fn schedule(keys: &[(&str, Value)], layers: usize) -> Result<Vec<bool>, String> {
    let mut json = config_of(GLM);
    for key in ["indexer_types", "mlp_layer_types"] {
        json.remove(key);
    }
    json.insert("num_hidden_layers".into(), json!(layers));
    keys.iter().for_each(|(key, value)| drop(json.insert((*key).into(), value.clone())));
    let found = crate::load::describe_json("config.json", &Value::Object(json).to_string());
    found.map(|config| config.indexer.unwrap().layers).map_err(|error| error.to_string())
}

#[test]
fn layers_with_indexers_are_listed_or_follow_from_a_frequency() {
    let of = |text: &str| Ok(text.chars().map(|kind| kind == 'F').collect::<Vec<_>>());
    assert_eq!(schedule(&[], 5), of("FFFFF"));
    assert_eq!(schedule(&[("indexer_types", json!(["full", "shared", "full"]))], 3), of("FSF"));
    assert_eq!(schedule(&[("index_topk_pattern", json!("FSS"))], 3), of("FSS"));
    // A list is before a pattern, and a pattern before a frequency.
    let all = [("indexer_types", json!(["full", "full"])), ("index_topk_pattern", json!("FS"))];
    assert_eq!(schedule(&all, 2), of("FF"));
    assert_eq!(schedule(&[all[1].clone(), ("index_topk_freq", json!(9))], 2), of("FS"));
    // max(layer - 1, 0) is a multiple of the frequency.
    assert_eq!(schedule(&[("index_topk_freq", json!(4))], 11), of("FFSSSFSSSFS"));
    assert_eq!(schedule(&[("index_topk_freq", json!(3)), ("index_skip_topk_offset", json!(4))], 9), of("FFFFSSFSS"));
}

#[test]
fn schedules_that_are_not_supported_are_refused_by_name() {
    for (key, value, layers, expected) in [
        ("indexer_types", json!(["full"]), 2, "config.json: indexer_types has 1 entries for 2 layers"),
        (
            "indexer_types",
            json!(["full", "none"]),
            2,
            "unsupported model: indexer_types \"none\" (supported: full, shared)",
        ),
        (
            "indexer_types",
            json!(["shared", "full"]),
            2,
            "config.json: indexer_types: layer 0 is shared, but a shared layer needs a full layer before it",
        ),
        ("index_topk_pattern", json!("FX"), 2, "unsupported model: index_topk_pattern 'X' (supported: F, S)"),
        ("index_topk_pattern", json!("F"), 2, "config.json: index_topk_pattern has 1 entries for 2 layers"),
        ("index_topk_freq", json!(0), 2, "config.json: index_topk_freq is zero"),
        ("index_skip_topk_offset", json!(0), 2, "ok"),
        ("index_topk", json!(0), 2, "config.json: index_topk is zero"),
        ("index_head_dim", json!(4), 2, "config.json: index_head_dim is 4, less than qk_rope_head_dim, 8"),
        ("q_lora_rank", Value::Null, 2, "unsupported model: q_lora_rank null (supported: a number, with index_topk)"),
    ] {
        let found = schedule(&[(key, value)], layers);
        assert_eq!(found.err().unwrap_or("ok".to_owned()), expected);
    }
}

#[test]
fn tensors_of_indexers_are_checked() {
    let without = |name: &str, keys: &[(&str, Value)]| {
        let folder = with(keys);
        let path = folder.path().join("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut all: BTreeMap<_, _> = file.tensors().into_iter().collect();
        assert!(all.remove(name).is_some());
        fs::write(&path, safetensors::serialize(all, None).unwrap()).unwrap();
        folder
    };
    let name = "model.layers.2.self_attn.indexer.k_norm.bias";
    assert_eq!(refusal(without(name, &[]).path()), format!("tensor {name} is missing"));
    // Nobody needs it in contexts in which attention is dense.
    assert!(load(without(name, &[("index_topk", json!(512))]).path()).is_ok());
    let found = refusal(with(&[("index_n_heads", json!(8))]).path());
    assert_eq!(found, "tensor model.layers.0.self_attn.indexer.wq_b.weight has shape [256, 24], expected [128, 24]");
}

//! `config.json` and the index of shards.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{attempt, refusal};
use crate::load::tests::{config_of, families, folder, golden};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..5000_u64).prop_map(Value::from),
        Just(json!(u64::MAX)),
        Just(json!(1 << 28)),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(&["llama", "mistral", "qwen2", "qwen3", "linear", "llama3", "silu"][..])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("rope_type|factor|rope_theta|[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| json!(map)),
        ]
    })
}

#[test]
fn large_and_deep_json_is_refused() {
    let folder = folder("llama", &config_of("llama"));
    let path = folder.path().join("config.json");
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        refusal(folder.path(), text.len())
    };
    assert!(refused(&" ".repeat((1 << 25) + 1)).contains("config.json: 33554433 bytes, at most 33554432"));
    assert!(refused(&"{\"a\":".repeat(1 << 16)).contains("config.json: recursion limit exceeded"));
    assert!(refused("{\"model_type\": \"\u{0}\"}").contains("config.json: "));
    fs::write(&path, [b'{', b'"', 0xff, b'"', b':', b'1', b'}']).unwrap();
    assert!(refusal(folder.path(), 7).contains("config.json: "));
}

#[test]
fn an_index_names_files_of_its_folder_alone() {
    let folder = folder("llama", &config_of("llama"));
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    for map in [
        json!(null),
        json!(1),
        json!({"a": 1}),
        json!({"a": "../b"}),
        json!({"a": "/b"}),
        json!({"a": ".."}),
        json!({"a": ""}),
    ] {
        let index = json!({ "weight_map": map }).to_string();
        fs::write(folder.path().join("model.safetensors.index.json"), &index).unwrap();
        let found = refusal(folder.path(), index.len());
        assert!(found.contains("model.safetensors.index.json: ") && found.contains("weight_map"), "{found}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_value_of_a_key_loads_or_is_refused(
        family in prop::sample::select(families()), key in any::<prop::sample::Index>(), value in any_json(),
    ) {
        let mut config = config_of(&family);
        let others = ["quantization_config", "rope_scaling", "rope_theta", "sliding_window", "max_window_layers"];
        let keys: Vec<_> = config.keys().cloned().chain(others.map(str::to_owned)).collect();
        config.insert(key.get(&keys).clone(), value);
        let folder = folder(&family, &config);
        let weights = fs::metadata(golden(&family).join("model.safetensors")).unwrap().len();
        let _ = attempt(folder.path(), weights as usize);
    }
}

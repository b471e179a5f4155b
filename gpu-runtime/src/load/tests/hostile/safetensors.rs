//! Hostile headers of safetensors files.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::attempt;
use crate::config::LoadError;
use crate::load::tests::{config_of, folder, golden};

/// Loads a golden model's folder with these weights.
fn attempt_weights(bytes: &[u8]) -> Result<(), LoadError> {
    let folder = folder("llama", &config_of("llama"));
    fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    attempt(folder.path(), bytes.len())
}

/// A header of this length with this text, and data after it.
fn file(length: u64, header: &str, data: usize) -> Vec<u8> {
    [&length.to_le_bytes()[..], header.as_bytes(), &vec![0; data]].concat()
}

#[track_caller]
fn refused_with(bytes: &[u8], expected: &str) {
    let found = attempt_weights(bytes).unwrap_err().to_string();
    assert!(found.contains("model.safetensors") && found.contains(expected), "{expected}: {found}");
}

#[track_caller]
fn header_refused_with(header: &Value, expected: &str) {
    let header = header.to_string();
    refused_with(&file(header.len() as u64, &header, 64), expected);
}

fn tensor(dtype: &str, shape: &Value, offsets: [u64; 2]) -> Value {
    json!({"dtype": dtype, "shape": shape, "data_offsets": offsets})
}

#[test]
fn damaged_headers_are_refused() {
    refused_with(&[1, 2, 3], "no header");
    for length in [3, 1 << 20, 99_999_999] {
        refused_with(&file(length, "{}", 0), "the header ends after the file");
    }
    for length in [100_000_001, u64::MAX] {
        refused_with(&file(length, "{}", 0), &format!("header of {length} bytes"));
    }
    for header in ["", "[]", "{", "{\"a\": 1}", "{\"a\": {}}", "null"] {
        refused_with(&file(header.len() as u64, header, 0), "header: ");
    }
    refused_with(&[&6_u64.to_le_bytes()[..], b"{\"\xc3\x28\":"].concat(), "header: ");
    let deep = "[".repeat(1 << 20);
    refused_with(&file(deep.len() as u64, &deep, 0), "header: ");
    let deep = format!("{{\"a\": {{\"shape\": {deep}");
    refused_with(&file(deep.len() as u64, &deep, 0), "header: tensor a: ");
}

#[test]
fn damaged_tensors_are_refused_by_name() {
    let shape = json!([16]);
    header_refused_with(&json!({"a": tensor("F99", &shape, [0, 64])}), "tensor a: unknown variant `F99`");
    header_refused_with(&json!({"a": tensor("F32", &json!("16"), [0, 64])}), "tensor a: invalid type");
    header_refused_with(&json!({"a": tensor("F32", &json!([-1]), [0, 64])}), "tensor a: invalid value");
    header_refused_with(&json!({"a": tensor("F32", &json!([1e300]), [0, 64])}), "tensor a: invalid type");
    header_refused_with(&json!({"a": {"dtype": "F32", "shape": [16]}}), "tensor a: missing field `data_offsets`");
    for shape in
        [json!([17]), json!([]), json!([0]), json!([u64::MAX]), json!([1_u64 << 62, 8]), json!([u64::MAX, u64::MAX])]
    {
        let expected = format!("tensor a has 64 bytes for F32 of shape {}", shape.to_string().replace(',', ", "));
        header_refused_with(&json!({"a": tensor("F32", &shape, [0, 64])}), &expected);
    }
    for offsets in [[1, 65], [64, 0], [u64::MAX, u64::MAX], [u64::MAX, 0]] {
        header_refused_with(&json!({"a": tensor("F32", &shape, offsets)}), "tensor a is at bytes ");
    }
    let overlap = json!({"a": tensor("F32", &shape, [0, 64]), "b": tensor("F32", &json!([8]), [32, 64])});
    header_refused_with(&overlap, "tensor b is at bytes 32 to 64, expected from 64");
    let long = json!({"a": tensor("F32", &json!([1_u64 << 50]), [0, 1 << 52])});
    header_refused_with(&long, "64 bytes of data, 4503599627370496 expected");
    let text = tensor("F32", &shape, [0, 64]).to_string();
    let twice = format!("{{\"a\": {text}, \"a\": {text}}}");
    refused_with(&file(twice.len() as u64, &twice, 64), "tensor a occurs twice");
    let one = json!({"x": tensor("I64", &json!([8]), [0, 64])}).to_string();
    let found = attempt_weights(&file(one.len() as u64, &one, 64)).unwrap_err().to_string();
    // Its type does not matter: the model does not use it.
    assert_eq!(found, "tensor model.embed_tokens.weight is missing");
}

#[test]
fn large_headers_take_a_few_times_their_size() {
    let numbers = vec!["0"; 1 << 20].join(",");
    let shape = format!("{{\"a\": {{\"dtype\": \"F32\", \"data_offsets\": [0, 64], \"shape\": [{numbers}]}}}}");
    refused_with(&file(shape.len() as u64, &shape, 64), "tensor a has 64 bytes");
    let metadata = format!("{{\"__metadata__\": [{numbers}], \"a\": 1}}");
    refused_with(&file(metadata.len() as u64, &metadata, 64), "tensor a: invalid type");
    let tensors =
        (0..1 << 16).map(|name| format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}"));
    let tensors = format!("{{{}}}", tensors.collect::<Vec<_>>().join(","));
    assert!(attempt_weights(&file(tensors.len() as u64, &tensors, 0)).is_err());
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_u64, any::<u64>(), Just(u64::MAX), Just(1 << 32), Just(1 << 63)]
}

fn any_tensor() -> impl Strategy<Value = Value> {
    let dtype = prop::sample::select(&["F64", "F32", "BF16", "F16", "I8", "F4", "BOOL", "F0", ""][..]);
    let shape = prop::collection::vec(any_number(), 0..4);
    (dtype, shape, any_number(), any_number())
        .prop_map(|(dtype, shape, first, end)| tensor(dtype, &json!(shape), [first, end]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_are_refused(length in prop_oneof![0..256_u64, any::<u64>()], body in prop::collection::vec(any::<u8>(), 0..256)) {
        prop_assert!(attempt_weights(&[&length.to_le_bytes()[..], &body].concat()).is_err());
    }

    #[test]
    fn random_tensors_are_refused(tensors in prop::collection::btree_map("[a-z.]{0,6}", any_tensor(), 0..5), data in 0..512_usize) {
        let header = json!(tensors).to_string();
        prop_assert!(attempt_weights(&file(header.len() as u64, &header, data)).is_err());
    }

    #[test]
    fn truncated_and_changed_files_load_or_are_refused(
        part in 0.0..1.0, changes in prop::collection::vec((0..4096_usize, any::<u8>()), 1..4),
    ) {
        let mut bytes = fs::read(golden("llama").join("model.safetensors")).unwrap();
        let short = bytes[..(bytes.len() as f64 * part * 0.999) as usize].to_vec();
        prop_assert!(attempt_weights(&short).is_err());
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        let _ = attempt_weights(&bytes);
    }
}

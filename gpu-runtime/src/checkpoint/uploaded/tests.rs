#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use trainyard_protocol::Category;
use trainyard_test_support::heap;
use trainyard_test_support::mutate;

use super::*;

/// The modules of the corpus.
fn modules() -> Vec<ExpectedModule> {
    let of = |names: &[&str], outputs| ExpectedModule {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        shapes: [vec![2, 3], vec![outputs, 2]],
        may_be_absent: false,
    };
    vec![of(&["model.layers.0.self_attn.q_proj"], 1), of(&["lm_head", "model.unembed_tokens"], 4)]
}

fn corpus(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz").join(name)).unwrap()
}

/// Writes both files in pieces of `size` bytes and reads them.
fn read_in_pieces(config: &[u8], tensors: &[u8], size: usize) -> Result<Vec<Vec<f32>>, OpError> {
    let dir = tempfile::tempdir().unwrap();
    let write = |prefix: &str, content: &[u8]| -> Vec<String> {
        let pieces = content.chunks(size).enumerate();
        pieces
            .map(|(number, piece)| {
                let name = format!("{prefix}.{number}");
                fs::write(dir.path().join(&name), piece).unwrap();
                name
            })
            .collect()
    };
    let files = UploadedAdapter { config: write("c", config), tensors: write("t", tensors) };
    read_uploaded(dir.path(), &files, &LoraSpec::on_all(2, 0), &modules())
}

fn read(config: &[u8], tensors: &[u8]) -> Result<Vec<Vec<f32>>, OpError> {
    read_in_pieces(config, tensors, 1 << 20)
}

fn config_with(key: &str, value: Value) -> Vec<u8> {
    let mut config: Value = serde_json::from_slice(&corpus("adapter_config/full")).unwrap();
    config[key] = value;
    config.to_string().into_bytes()
}

fn eighths(count: usize) -> Vec<f32> {
    (1..=count).map(|number| number as f32 / 8.0).collect()
}

#[test]
fn every_type_is_read_from_pieces_of_any_size() {
    let config = corpus("adapter_config/full");
    let expected = [eighths(6), eighths(2), eighths(6), eighths(8)];
    for kind in ["f32", "f16", "bf16"] {
        let tensors = corpus(&format!("adapter_tensors/{kind}"));
        for size in [1, 7, 64, 1 << 20] {
            assert_eq!(read_in_pieces(&config, &tensors, size).unwrap(), expected, "{kind} in pieces of {size}");
        }
    }
}

#[test]
fn another_alpha_scales_b_alone() {
    let halved = |values: Vec<f32>| values.into_iter().map(|value| value / 2.0).collect::<Vec<_>>();
    let read = read(&corpus("adapter_config/minimal"), &corpus("adapter_tensors/f32")).unwrap();
    assert_eq!(read, [eighths(6), halved(eighths(2)), eighths(6), halved(eighths(8))]);
}

#[test]
fn rank_stabilisation_scales_b_alone() {
    let read = read(&config_with("use_rslora", json!(true)), &corpus("adapter_tensors/f32")).unwrap();
    let scaled = |values: Vec<f32>| values.into_iter().map(|value| value * 2f32.sqrt()).collect::<Vec<_>>();
    assert_eq!(read, [eighths(6), scaled(eighths(2)), eighths(6), scaled(eighths(8))]);
}

#[test]
fn what_is_computed_otherwise_is_refused_by_key() {
    let tensors = corpus("adapter_tensors/f32");
    for (key, value) in [
        ("peft_type", json!("IA3")),
        ("use_dora", json!(true)),
        ("use_rslora", json!(1)),
        ("use_qalora", json!(true)),
        ("init_lora_weights", json!("pissa_niter_4")),
        ("kasa_config", json!({"beta": 1e-4})),
        ("lora_bias", json!(true)),
        ("fan_in_fan_out", json!(true)),
        ("bias", json!("all")),
        ("task_type", json!("SEQ_CLS")),
        ("modules_to_save", json!(["embed_tokens"])),
        ("rank_pattern", json!({"q_proj": 4})),
        ("alpha_pattern", json!({"q_proj": 4})),
        ("layers_to_transform", json!([0])),
        ("layer_replication", json!([[0, 1]])),
        ("exclude_modules", json!("lm_head")),
        ("target_parameters", json!(["experts.gate"])),
        ("trainable_token_indices", json!([3])),
        ("r", json!(3)),
        ("r", json!("2")),
        ("lora_alpha", json!(0)),
        ("lora_alpha", json!(1e300)),
        ("target_modules", json!("all-linear")),
        ("target_modules", json!(".*proj")),
        ("target_modules", json!(["q_proj"])),
        ("target_modules", json!(["proj", "lm_head"])),
        ("target_modules", json!([1])),
        ("target_modules", Value::Null),
    ] {
        let error = read(&config_with(key, value.clone()), &tensors).unwrap_err();
        assert_eq!(error.category, Category::User);
        assert!(error.message.starts_with(&format!("adapter_config.json: {key}: ")), "{value}: {}", error.message);
    }
    let ignored = [("lora_dropout", json!(0.5)), ("of_a_later_version", json!(1)), ("use_dora", Value::Null)];
    for (key, value) in ignored {
        read(&config_with(key, value), &tensors).unwrap();
    }
    let long = vec![b' '; 2 << 20];
    assert!(read(&long, &tensors).unwrap_err().message.contains("longer than 1048576 bytes"));
    assert!(read(b"[]", &tensors).unwrap_err().message.starts_with("adapter_config.json: "));
}

/// A file with this header and these data.
fn file_of(header: &Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// The refusal of the corpus' file with a changed entry for the first tensor, and changed data.
fn refusal_of(change: impl Fn(&mut serde_json::Map<String, Value>), data: &[u8]) -> String {
    let bytes = corpus("adapter_tensors/f32");
    let length = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(header.as_object_mut().unwrap());
    let error = read(&corpus("adapter_config/full"), &file_of(&header, data)).unwrap_err();
    assert_eq!(error.category, Category::User, "{error}");
    error.message
}

#[test]
fn tensors_that_do_not_fit_are_refused_by_name() {
    const A: &str = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    let data = corpus("adapter_tensors/f32").split_off(corpus("adapter_tensors/f32").len() - 88);
    let changed = |key: &str, value: Value| refusal_of(|header| header[A][key] = value.clone(), &data);
    assert!(changed("dtype", json!("F64")).contains(&format!("tensor {A} is \"F64\"; F32, F16 and BF16")));
    assert!(changed("dtype", json!("BF16")).contains("of 12 bytes cannot be at 0..24"));
    assert!(changed("shape", json!([3, 2])).contains(&format!("tensor {A} has shape [3, 2], expected [2, 3]")));
    assert!(changed("shape", json!([2, 3, 1])).contains("has shape [2, 3, 1]"));
    assert!(changed("data_offsets", json!([0, 28])).contains("cannot be at 0..28"));
    assert!(changed("data_offsets", json!([24, 0])).contains("cannot be at"));
    let missing = refusal_of(|header| drop(header.remove(A)), &data);
    assert!(
        missing.contains("cannot be at 24..32") || missing.contains(&format!("tensor {A} is missing")),
        "{missing}"
    );
    let foreign = refusal_of(|header| drop(header.insert("x.lora_A.weight".into(), header[A].clone())), &data);
    assert!(foreign.contains("unexpected tensor \"x.lora_A.weight\""), "{foreign}");
    let magnitude = refusal_of(
        |header| drop(header.insert(A.replace("lora_A.weight", "lora_magnitude_vector"), header[A].clone())),
        &data,
    );
    assert!(magnitude.contains("lora_magnitude_vector\": this adapter"), "{magnitude}");
    assert!(refusal_of(|_| (), &[&data[..], &[0; 3]].concat()).contains("has 3 bytes after its tensors"));
    assert!(refusal_of(|_| (), &data[..80]).contains("cannot be at"));
    for (value, at) in [(f32::NAN, 0), (f32::INFINITY, 5), (f32::NEG_INFINITY, 3)] {
        let mut data = data.clone();
        data[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        assert!(refusal_of(|_| (), &data).contains(&format!("tensor {A}: element {at} is not finite")));
    }
}

/// Reads the corpus as an adapter that may also be on another module, with the tensors that `change` leaves.
fn read_with_optional(change: impl Fn(&mut Map<String, Value>)) -> Result<Vec<Vec<f32>>, OpError> {
    let bytes = corpus("adapter_tensors/f32");
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    change(&mut header);
    let text = Value::Object(header).to_string();
    let tensors = [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &bytes[8 + length..]].concat();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("c"), corpus("adapter_config/full")).unwrap();
    fs::write(dir.path().join("t"), tensors).unwrap();
    let files = UploadedAdapter { config: vec!["c".to_owned()], tensors: vec!["t".to_owned()] };
    let mut all = modules();
    let names = vec!["model.layers.0.self_attn.q_b_proj".to_owned()];
    all.push(ExpectedModule { names, shapes: [vec![2, 3], vec![1, 2]], may_be_absent: true });
    read_uploaded(dir.path(), &files, &LoraSpec::on_all(2, 0), &all)
}

#[test]
fn names_of_the_hosted_service_are_read_and_pairs_that_it_lacks_are_empty() {
    let plain = read(&corpus("adapter_config/full"), &corpus("adapter_tensors/f32")).unwrap();
    let found = read_with_optional(|_| {}).unwrap();
    assert_eq!((&found[..4], &found[4..]), (&plain[..], &[vec![], vec![]][..]));
    let renamed = read_with_optional(|header| {
        for part in ["lora_A", "lora_B"] {
            let tensor = header.remove(&format!("base_model.model.lm_head.{part}.weight")).unwrap();
            header.insert(format!("base_model.model.model.unembed_tokens.{part}.weight"), tensor);
        }
    });
    assert_eq!(renamed.unwrap(), found);
    // Half of a pair.
    let error = read_with_optional(|header| {
        let tensor = header.remove("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight").unwrap();
        header.insert("base_model.model.model.layers.0.self_attn.q_b_proj.lora_B.weight".to_owned(), tensor);
    });
    let message = error.unwrap_err().message;
    assert!(message.contains("_proj.lora_") && message.contains("is missing"), "{message}");
}

#[test]
fn a_header_beyond_what_the_adapter_needs_is_not_read() {
    let long = [&(1_u64 << 20).to_le_bytes()[..], &vec![b' '; 1 << 20]].concat();
    let error = read(&corpus("adapter_config/full"), &long).unwrap_err();
    assert!(error.message.contains("has a header of 1048576 bytes"), "{error}");
}

/// Whatever arrives, it is read or refused as the client's, within a small multiple of its size.
#[test]
fn mutated_configurations_and_tensors() {
    let understood = |result: Result<Vec<Vec<f32>>, OpError>| match result {
        Ok(masters) => assert_eq!(masters.iter().map(Vec::len).collect::<Vec<_>>(), [6, 2, 6, 8]),
        Err(error) => assert!(error.category == Category::User && error.message.starts_with("adapter_"), "{error}"),
    };
    let (config, tensors) = (corpus("adapter_config/full"), corpus("adapter_tensors/f32"));
    let bounded = |config: &[u8], tensors: &[u8], size: usize| {
        let (result, peak) = heap::peak(|| read_in_pieces(config, tensors, 1 << 20));
        assert!(peak <= (1 << 20) + 64 * size, "{peak} bytes held at once for a file of {size}");
        understood(result);
    };
    mutate::each("adapter_config", |input| bounded(input, &tensors, input.len()));
    mutate::each("adapter_tensors", |input| bounded(&config, input, input.len()));
}

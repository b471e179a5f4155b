#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;
use serde_json::{Value, json};
use trainyard_protocol::{DatumOutput, ForwardBackwardResult};

use super::super::tensor::f32_bytes;
use super::*;

fn read(payload: Bytes) -> Value {
    serde_json::from_slice(&to_json(&payload).unwrap()).unwrap()
}

fn output(shape: &[usize], logprobs: &[f32]) -> DatumOutput {
    let elementwise_loss = vec![0.5; logprobs.len()];
    DatumOutput { shape: shape.to_vec(), logprobs: logprobs.to_vec(), elementwise_loss, entropies: None, kl: None }
}

#[test]
fn a_training_result_has_one_object_per_datum() {
    let metrics = BTreeMap::from([("loss:sum".to_owned(), 0.1), ("norm:last".to_owned(), f64::NAN)]);
    let mut outputs = vec![output(&[2], &[-0.1, -2.0]), output(&[1], &[-3.0]), output(&[2, 1], &[-4.0, -5.0])];
    outputs[2].entropies = Some(vec![0.25, 1.5]);
    let json = read(training::encode_output(&ForwardBackwardResult { outputs, metrics }));
    assert_eq!(json["loss_fn_output_type"], "ArrayRecord");
    assert_eq!(json["metrics"], json!({"loss:sum": 0.1, "norm:last": null}));
    let logprobs: Vec<_> = json["loss_fn_outputs"].as_array().unwrap().iter().map(|datum| &datum["logprobs"]).collect();
    assert_eq!(logprobs[0], &json!({"data": [f64::from(-0.1_f32), -2.0], "dtype": "float32", "shape": [2]}));
    assert_eq!(logprobs[1], &json!({"data": [-3.0], "dtype": "float32", "shape": [1]}));
    assert_eq!(logprobs[2], &json!({"data": [-4.0, -5.0], "dtype": "float32", "shape": [2, 1]}));
    assert_eq!(json["loss_fn_outputs"][1]["elementwise_loss"]["data"], json!([0.5]));
    assert_eq!(json["loss_fn_outputs"][1]["entropies"]["shape"], json!([0]));
    let entropies = json!({"data": [0.25, 1.5], "dtype": "float32", "shape": [2]});
    assert_eq!(json["loss_fn_outputs"][2]["entropies"], entropies);
}

#[test]
fn a_training_result_without_datums_is_one() {
    let json = read(training::encode_output(&ForwardBackwardResult { outputs: vec![], metrics: BTreeMap::new() }));
    assert_eq!(json, json!({"loss_fn_output_type": "ArrayRecord", "loss_fn_outputs": [], "metrics": {}}));
}

fn tensor(encoding: proto::tensor::Encoding, dtype: DType, shape: &[i64]) -> proto::Tensor {
    proto::Tensor { encoding: Some(encoding), dtype: dtype.into(), shape: shape.to_vec() }
}

#[test]
fn a_sample_holds_what_was_asked_for() {
    let ids = |ids: &[i32]| Bytes::from(ids.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>());
    let longs = |values: &[i64]| Bytes::from(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    let topk = proto::TopkLogprobs {
        token_ids: ids(&[0, 0, 9, 0]),
        logprobs: f32_bytes(&[-99_999.0, -99_999.0, -0.5, -99_999.0]),
        k: 2,
        length: 2,
    };
    let sparse =
        proto::SparseCsr { values: f32_bytes(&[-3.0]), crow_indices: longs(&[0, 1]), col_indices: longs(&[1]) };
    let sequence = proto::SampledSequence {
        stop_reason: proto::StopReason::Stop.into(),
        tokens: ids(&[7]),
        logprobs: Some(f32_bytes(&[-0.5])),
        topk_sampled_logprobs: Some(proto::TopkLogprobs { length: 0, token_ids: ids(&[]), logprobs: ids(&[]), k: 2 }),
    };
    let response = proto::SampleResponse {
        sequences: vec![sequence],
        prompt_logprobs: Some(f32_bytes(&[f32::NAN, -1.0])),
        topk_prompt_logprobs: Some(topk),
        prompt_cache_hit_tokens: 3,
        target_prompt_logprobs: Some(tensor(proto::tensor::Encoding::SparseCsr(sparse), DType::Float32, &[1, 2])),
        prompt_alt_tokens: Some(proto::PromptAltTokens {
            tokens: Some(tensor(proto::tensor::Encoding::Dense(ids(&[6])), DType::Int32, &[1, 1])),
            logprobs: Some(tensor(proto::tensor::Encoding::Dense(f32_bytes(&[-1.5])), DType::Float32, &[1, 1])),
        }),
    };
    let expected = json!({
        "type": "sample",
        "sequences": [{"stop_reason": "stop", "tokens": [7], "logprobs": [-0.5], "topk_logprobs": []}],
        "prompt_logprobs": [null, -1.0],
        "topk_prompt_logprobs": [null, [[9, -0.5]]],
        "prompt_cache_hit_tokens": 3,
        "target_prompt_logprobs": {"data": [-3.0], "dtype": "float32", "shape": [1, 2],
            "sparse_crow_indices": [0, 1], "sparse_col_indices": [1]},
        "prompt_alt_tokens": {"tokens": {"data": [6], "dtype": "int64", "shape": [1, 1]},
            "logprobs": {"data": [-1.5], "dtype": "float32", "shape": [1, 1]}},
    });
    assert_eq!(read(response.encode_to_vec().into()), expected);
    let empty = json!({"type": "sample", "sequences": [], "prompt_cache_hit_tokens": 0});
    assert_eq!(read(Bytes::new()), empty);
}

proptest! {
    #[test]
    fn both_forms_hold_the_same_bits(bits in prop::collection::vec(any::<u32>(), 1..50)) {
        let logprobs: Vec<f32> = bits.into_iter().map(f32::from_bits).filter(|value| value.is_finite()).collect();
        let outputs = vec![output(&[logprobs.len()], &logprobs)];
        let json = read(training::encode_output(&ForwardBackwardResult { outputs, metrics: BTreeMap::new() }));
        let data = json["loss_fn_outputs"][0]["logprobs"]["data"].as_array().unwrap().clone();
        let read: Vec<u32> = data.iter().map(|value| (value.as_f64().unwrap() as f32).to_bits()).collect();
        prop_assert_eq!(read, logprobs.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), output: bool) {
        let prefix = if output { b"\x0a\x0bArrayRecord".to_vec() } else { Vec::new() };
        let _ = to_json(&[prefix, bytes].concat().into());
    }
}

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use serde_json::{Value, json};
use trainyard_protocol::limits::{MAX_STOP_STRING_BYTES, MAX_STOP_STRINGS, MAX_STOP_TOKENS};
use trainyard_protocol::{
    OpError, PromptAltTokens, PromptTargets, Sample, SampleResult, SampledSequence, SparseIndices, Stop, StopReason,
    Tensor, TensorValues, TopkLogprobs,
};

use super::super::images::testing::{png, rules};
use super::super::images::{ImageLimits, RequestImages};
use super::super::json as wire_json;
use super::super::proto::{self, DType};
use super::super::tensor::{self, TensorData};
use super::targets::prompt_targets;
use super::*;

fn body() -> Value {
    json!({
        "sampling_session_id": "s:sample:0", "seq_id": 1_000_000_007_i64, "num_samples": 2, "type": "sample",
        "prompt": {"chunks": [{"tokens": [1, 2], "type": "encoded_text"}, {"tokens": [], "type": "encoded_text"},
                              {"tokens": [3], "type": "encoded_text"}]},
        "sampling_params": {"max_tokens": 4, "seed": 1, "stop": ["\n"], "temperature": 0.5, "top_k": -1, "top_p": 1.0},
        "prompt_logprobs": false, "topk_prompt_logprobs": 0, "prompt_alt_tokens_k": 0, "record_stability_info": false,
    })
}

/// The sample, and whether the server chose its seed.
fn checked(body: &Value) -> Result<(Sample, bool), OpError> {
    let rules = rules(ImageLimits::default());
    let request = wire_json::parse::<SampleRequest>(body.to_string().as_bytes())?;
    request.into_sample(&mut RequestImages::new(&rules), || u64::MAX)
}

fn sample(body: &Value) -> Result<Sample, OpError> {
    checked(body).map(|(sample, _)| sample)
}

/// The body with one field replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut body = body();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(field.to_owned(), value);
    body
}

#[track_caller]
fn refused(pointer: &str, value: Value, text: &str) {
    let error = sample(&with(pointer, value)).unwrap_err();
    assert!(error.message.contains(text), "{}", error.message);
}

#[test]
fn a_request_is_read() {
    let (sample, server_seed) = checked(&body()).unwrap();
    let params = sample.params;
    assert_eq!(sample.prompt, [1, 2, 3]);
    assert_eq!((sample.num_samples, params.max_tokens, params.seed, server_seed), (2, Some(4), 1, false));
    assert_eq!(params.stop, Stop::Strings(vec!["\n".to_owned()]));
    assert_eq!((params.temperature, params.top_k, params.top_p), (0.5, None, 1.0));
}

#[test]
fn what_is_left_out_has_defaults() {
    let body = json!({"sampling_session_id": "s", "seq_id": 0, "prompt": {"chunks": [{"tokens": [1]}]}});
    let (sample, server_seed) = checked(&body).unwrap();
    let params = sample.params;
    assert_eq!((sample.num_samples, params.max_tokens, server_seed), (1, None, true));
    assert_eq!(params.seed, (1 << 63) - 1, "the server's seeds are folded too");
    assert_eq!((params.stop, params.temperature, params.top_k, params.top_p), (Stop::Default, 1.0, None, 1.0));
}

#[test]
fn stops_come_in_five_forms() {
    let stop = |value| sample(&with("/sampling_params/stop", value)).unwrap().params.stop;
    assert_eq!(stop(Value::Null), Stop::Default);
    assert_eq!(stop(json!("a")), Stop::Strings(vec!["a".to_owned()]));
    assert_eq!(stop(json!(["a", "b"])), Stop::Strings(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(stop(json!([151_645])), Stop::Tokens(vec![151_645]));
    assert_eq!(stop(json!([])), Stop::Nothing);
    for wrong in [json!(1), json!([1, "a"]), json!([1.5]), json!({}), json!(""), json!([""]), json!([["a"]])] {
        refused("/sampling_params/stop", wrong, "sampling_params.stop");
    }
    assert_eq!(stop(json!(vec![1; MAX_STOP_TOKENS])), Stop::Tokens(vec![1; MAX_STOP_TOKENS]));
    let message = "sampling_params.stop: 1025 token ids, at most 1024 are allowed";
    refused("/sampling_params/stop", json!(vec![1; MAX_STOP_TOKENS + 1]), message);
    refused("/sampling_params/stop", json!(vec!["a"; MAX_STOP_STRINGS + 1]), "sampling_params.stop");
    refused("/sampling_params/stop", json!("a".repeat(MAX_STOP_STRING_BYTES + 1)), "sampling_params.stop");
}

#[test]
fn refusals_name_the_field() {
    refused("/sampling_params/temperature", json!("hot"), "sampling_params.temperature: invalid type");
    refused("/sampling_params/temperature", json!(-0.1), "sampling_params.temperature");
    refused("/sampling_params/temperature", json!(1e300), "sampling_params.temperature");
    for (given, meant) in [(1e-7, 0.0), (1e-300, 0.0), (1e-5, 1e-5)] {
        assert_eq!(sample(&with("/sampling_params/temperature", json!(given))).unwrap().params.temperature, meant);
    }
    refused("/sampling_params/top_p", json!(0.0), "sampling_params.top_p");
    refused("/sampling_params/top_p", json!(1.5), "sampling_params.top_p");
    refused("/sampling_params/top_k", json!(0), "sampling_params.top_k");
    refused("/sampling_params/top_k", json!(-2), "sampling_params.top_k");
    refused("/sampling_params/max_tokens", json!(0), "sampling_params.max_tokens");
    refused("/sampling_params/max_tokens", json!(-1), "sampling_params.max_tokens");
    refused("/sampling_params/seed", json!(1.5), "sampling_params.seed");
    refused("/sampling_params/temprature", json!(1), "temprature");
    refused("/num_samples", json!(0), "num_samples");
    refused("/num_samples", json!(100_000), "num_samples");
    refused("/topk_prompt_logprobs", json!(-1), "topk_prompt_logprobs");
    refused("/topk_sample_logprobs", json!(5_000), "topk_sample_logprobs");
    refused("/prompt_alt_tokens_k", json!(5_000), "prompt_alt_tokens_k");
    refused("/seq_id", json!(1e30), "seq_id");
    refused("/prompt", json!({"chunks": []}), "prompt: at least one token");
    refused("/prompt", json!({"chunks": [{"type": "encoded_text"}]}), "prompt.chunks[0]: missing field `tokens`");
    refused("/prompt", json!({"chunks": [{"tokens": [1, null]}]}), "prompt.chunks[0].tokens[1]");
    for kind in ["image_asset_pointer", "dmel"] {
        let chunk = json!({"chunks": [{"tokens": [1]}, {"type": kind, "data": "", "expected_tokens": 3}]});
        refused("/prompt", chunk, &format!("prompt.chunks[1]: {kind} chunks are not supported"));
    }
    let image = json!({"chunks": [{"tokens": [1]}, {"type": "image", "data": "", "format": "gif"}]});
    refused("/prompt", image, "prompt.chunks[1]: unknown image format \"gif\": expected png or jpeg");
    refused("/prompt_logprobs_last_n", json!(1), "prompt_logprobs_last_n: requires prompt_logprobs");
    let mut last = with("/prompt_logprobs", json!(true));
    last["prompt_logprobs_last_n"] = json!(3);
    assert!(sample(&last).unwrap_err().message.contains("between 1 and 2"));
    last["prompt_logprobs_last_n"] = json!(2);
    assert_eq!(sample(&last).unwrap().prompt_logprobs_last_n, Some(2));
}

#[test]
fn seeds_fold_and_sequence_numbers_are_64_bits() {
    assert_eq!(sample(&with("/sampling_params/seed", json!(-1))).unwrap().params.seed, (1 << 63) - 1);
    assert_eq!(sample(&with("/sampling_params/seed", json!(u64::MAX))).unwrap().params.seed, (1 << 63) - 1);
    let request: SampleRequest = wire_json::parse(body().to_string().as_bytes()).unwrap();
    assert_eq!(request.seq_id, 1_000_000_007);
}

fn targets(value: Value, prompt: usize) -> Result<PromptTargets, OpError> {
    prompt_targets(serde_json::from_value::<TensorData>(value).unwrap(), prompt)
}

fn sparse() -> Value {
    json!({"data": [5], "dtype": "int64", "shape": [2, 2], "sparse_crow_indices": [0, 0, 1], "sparse_col_indices": [1]})
}

#[test]
fn targets_are_checked_against_the_prompt() {
    let dense = json!({"data": [5, -1, 6, 7], "dtype": "int64", "shape": [2, 2]});
    let values = |value| targets(value, 3).unwrap().into_dense().values;
    assert_eq!(values(dense.clone()), TensorValues::I64(vec![5, -1, 6, 7]));
    assert!(targets(dense, 4).unwrap_err().message.contains("expected [3, K]"));
    assert_eq!(values(sparse()), TensorValues::I64(vec![-1, -1, -1, 5]));
    let wide = json!({"data": [5], "dtype": "int64", "shape": [1, 33_554_432],
        "sparse_crow_indices": [0, 1], "sparse_col_indices": [1]});
    let refusal = targets(wide, 2).unwrap_err().message;
    assert_eq!(refusal, "target_prompt_logprobs: 33554432 columns, at most 1024 are allowed");
    let float = json!({"data": [1.0, 2.0], "dtype": "float32", "shape": [2, 1]});
    assert!(targets(float, 3).unwrap_err().message.contains("dtype"));
    let nothing = json!({"data": [-1, -1], "dtype": "int64", "shape": [2, 1]});
    assert!(targets(nothing, 3).unwrap_err().message.contains("at least one"));
    refused("/target_prompt_logprobs", json!({"data": [1], "dtype": "int64"}), "target_prompt_logprobs: shape");
}

fn result() -> SampleResult {
    let topk = TopkLogprobs { k: 2, token_ids: vec![9, 0, 8, 7], logprobs: vec![-0.1, -99999.0, -0.5, -1.0] };
    let sequence = SampledSequence {
        stop_reason: StopReason::Length,
        tokens: vec![4, 5],
        logprobs: vec![-0.25, -0.5],
        topk: Some(topk.clone()),
    };
    SampleResult {
        sequences: vec![sequence],
        prompt_logprobs: Some(vec![f32::NAN, -1.0, -2.0]),
        topk_prompt_logprobs: Some(topk),
        target_prompt_logprobs: Some(Tensor {
            shape: vec![2, 2],
            values: TensorValues::F32(vec![0.0, 0.0, 0.0, -3.0]),
        }),
        prompt_alt_tokens: Some(PromptAltTokens { k: 1, tokens: vec![6, 7], logprobs: vec![-1.0, -2.0] }),
        prompt_cache_hit_tokens: 2,
    }
}

#[test]
fn results_are_written_as_the_client_reads_them() {
    let response = proto::SampleResponse::decode(encode_result(&result(), None, ComputedWith::default())).unwrap();
    let sequence = &response.sequences[0];
    assert_eq!(sequence.stop_reason(), proto::StopReason::Length);
    assert_eq!(sequence.tokens, Bytes::from_static(&[4, 0, 0, 0, 5, 0, 0, 0]));
    assert_eq!(sequence.logprobs, Some(tensor::f32_bytes(&[-0.25, -0.5])));
    let topk = sequence.topk_sampled_logprobs.as_ref().unwrap();
    assert_eq!((topk.k, topk.length), (2, 2));
    assert_eq!(topk.logprobs, tensor::f32_bytes(&[-0.1, -99999.0, -0.5, -1.0]));
    let prompt = response.prompt_logprobs.as_ref().unwrap();
    assert_eq!(prompt.len(), 12);
    assert!(f32::from_le_bytes([prompt[0], prompt[1], prompt[2], prompt[3]]).is_nan());
    assert_eq!(response.prompt_cache_hit_tokens, 2);
    let target = response.target_prompt_logprobs.as_ref().unwrap();
    assert_eq!((target.dtype(), target.shape.as_slice()), (DType::Float32, [2, 2].as_slice()));
    let alt = response.prompt_alt_tokens.as_ref().unwrap();
    assert_eq!(alt.tokens.as_ref().unwrap().shape, [2, 1]);
    assert_eq!(alt.tokens.as_ref().unwrap().dtype(), DType::Int32);
    assert_eq!(alt.logprobs.as_ref().unwrap().dtype(), DType::Float32);
}

#[test]
fn scores_repeat_the_layout_of_the_request() {
    let indices = SparseIndices { crow: vec![0, 0, 1], col: vec![1] };
    assert_eq!(targets(sparse(), 3).unwrap().sparse.as_ref(), Some(&indices));
    let response =
        proto::SampleResponse::decode(encode_result(&result(), Some(&indices), ComputedWith::default())).unwrap();
    let Some(proto::tensor::Encoding::SparseCsr(csr)) = response.target_prompt_logprobs.unwrap().encoding else {
        panic!("the request was sparse");
    };
    assert_eq!(csr.values, tensor::f32_bytes(&[-3.0]));
    assert_eq!(csr.crow_indices, tensor::i64_bytes(&[0, 0, 1]));
    assert_eq!(csr.col_indices, tensor::i64_bytes(&[1]));
}

#[test]
fn what_was_not_asked_for_is_absent() {
    let bare = SampleResult {
        prompt_logprobs: None,
        topk_prompt_logprobs: None,
        target_prompt_logprobs: None,
        prompt_alt_tokens: None,
        ..result()
    };
    let response = proto::SampleResponse::decode(encode_result(&bare, None, ComputedWith::default())).unwrap();
    assert_eq!(response.prompt_logprobs, None);
    assert_eq!(response.topk_prompt_logprobs, None);
    assert_eq!(response.target_prompt_logprobs, None);
    assert_eq!(response.prompt_alt_tokens, None);
}

proptest! {
    #[test]
    fn arbitrary_bodies_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let rules = rules(ImageLimits::default());
        let images = &mut RequestImages::new(&rules);
        let _ = wire_json::parse::<SampleRequest>(&bytes).and_then(|request| request.into_sample(images, || 0));
    }
}

#[test]
fn a_result_says_what_it_was_computed_with() {
    let with = ComputedWith { weights: "m".to_owned(), arithmetic: "f32 scalar single v1".to_owned() };
    let bytes = encode_result(&result(), None, with.clone());
    assert_eq!(computed_with(&bytes), Some(with));
    let plain = proto::SampleResponse::decode(encode_result(&result(), None, ComputedWith::default())).unwrap();
    assert_eq!(proto::SampleResponse::decode(bytes).unwrap(), plain, "clients skip it");
    assert_eq!(computed_with(&plain.encode_to_vec()), None);
}

#[test]
fn images_stand_among_the_tokens_of_a_prompt() {
    use base64::Engine;
    let file = base64::engine::general_purpose::STANDARD.encode(png(64, 32));
    let image = json!({"type": "image", "data": file, "format": "png", "expected_tokens": 2});
    let prompt = |image: &Value| json!({"chunks": [{"tokens": [1]}, image, {"tokens": [3]}]});
    let sample = sample(&with("/prompt", prompt(&image))).unwrap();
    assert_eq!(sample.prompt, [1, 90, 90, 3]);
    let span = &sample.images[0];
    assert_eq!((span.start, span.tokens, span.image.data.to_vec()), (1, 2, png(64, 32)));
    let mut wrong = image.clone();
    wrong["expected_tokens"] = json!(3);
    refused(
        "/prompt",
        prompt(&wrong),
        "prompt.chunks[1]: expected_tokens is 3, but an image of 64 × 32 pixels takes 2",
    );
    wrong["expected_tokens"] = Value::Null;
    wrong["override_dimensions"] = json!({"width": 32, "height": 32});
    assert_eq!(self::sample(&with("/prompt", prompt(&wrong))).unwrap().prompt, [1, 90, 3]);
}

#[test]
fn a_result_takes_no_more_memory_than_it_has_bytes() {
    let sequence = SampledSequence {
        stop_reason: StopReason::Stop,
        tokens: vec![7; 1_000],
        logprobs: vec![-0.5; 1_000],
        topk: None,
    };
    let result = SampleResult {
        sequences: vec![sequence; 4],
        prompt_logprobs: None,
        topk_prompt_logprobs: None,
        target_prompt_logprobs: None,
        prompt_alt_tokens: None,
        prompt_cache_hit_tokens: 0,
    };
    let bytes = encode_result(&result, None, ComputedWith { weights: "base".into(), arithmetic: "f32".into() });
    let len = bytes.len();
    assert!(len > 4 * 8_000);
    assert_eq!(bytes.try_into_mut().unwrap().capacity(), len);
}

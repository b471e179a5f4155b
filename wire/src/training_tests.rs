#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;
use trainyard_protocol::{Category, Tensor, TensorValues};

use super::*;
use crate::images::testing::{png, rules};
use crate::images::{ImageLimits, ImageRules};

fn batch(request: proto::ForwardBackwardRequest) -> Result<RawBatch, OpError> {
    super::batch(request, &ImageRules::text_only("acme/tiny"))
}

fn text_chunk(tokens: &[i32]) -> proto::Chunk {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    let text = proto::EncodedTextChunk { tokens: bytes.into() };
    proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(text)) }
}

fn dense(dtype: DType, bytes: Bytes, shape: &[i64]) -> proto::Tensor {
    let encoding = Some(proto::tensor::Encoding::Dense(bytes));
    proto::Tensor { encoding, dtype: dtype.into(), shape: shape.to_vec() }
}

fn request() -> proto::ForwardBackwardRequest {
    let datum = proto::Datum {
        model_input: vec![text_chunk(&[1, 2]), text_chunk(&[]), text_chunk(&[3])],
        loss_fn_inputs: BTreeMap::from([
            ("target_tokens".to_owned(), dense(DType::Int64, tensor::i64_bytes(&[2, 3, 4]), &[3])),
            ("weights".to_owned(), dense(DType::Float32, tensor::f32_bytes(&[0.0, 1.0, 1.0]), &[])),
        ]),
        ..proto::Datum::default()
    };
    proto::ForwardBackwardRequest {
        model_id: "s:train:0".to_owned(),
        seq_id: 1,
        data: vec![datum],
        loss_fn: "cross_entropy".to_owned(),
        ..proto::ForwardBackwardRequest::default()
    }
}

#[track_caller]
fn refused(change: impl FnOnce(&mut proto::ForwardBackwardRequest), text: &str) {
    let mut request = request();
    change(&mut request);
    let error = batch(decode(encode(&request)).unwrap()).unwrap_err();
    assert_eq!(error.category, Category::User);
    assert!(error.message.contains(text), "{}", error.message);
}

#[test]
fn a_request_becomes_a_batch() {
    let pass = batch(decode(encode(&request())).unwrap()).unwrap();
    assert_eq!(pass.loss_fn, "cross_entropy");
    assert_eq!(pass.data[0].tokens, [1, 2, 3]);
    assert_eq!(pass.data[0].loss_fn_inputs["target_tokens"], Tensor::i64(vec![2, 3, 4]));
    assert_eq!(pass.data[0].loss_fn_inputs["weights"], Tensor::f32(vec![0.0, 1.0, 1.0]));
}

#[test]
fn targets_and_weights_may_differ_in_sparsity() {
    let mut request = request();
    let csr = proto::SparseCsr {
        values: tensor::f32_bytes(&[0.5]),
        crow_indices: tensor::i64_bytes(&[0, 0, 0, 1]),
        col_indices: tensor::i64_bytes(&[1]),
    };
    let weights = proto::Tensor {
        encoding: Some(proto::tensor::Encoding::SparseCsr(csr)),
        dtype: DType::Float32.into(),
        shape: vec![3, 2],
    };
    let inputs = &mut request.data[0].loss_fn_inputs;
    inputs.insert("weights".to_owned(), weights);
    inputs.insert("target_tokens".to_owned(), dense(DType::Int64, tensor::i64_bytes(&[1, 2, 3, 4, 5, 6]), &[3, 2]));
    let pass = batch(request).unwrap();
    assert_eq!(pass.data[0].loss_fn_inputs["weights"].values, TensorValues::F32(vec![0., 0., 0., 0., 0., 0.5]));
    assert_eq!(pass.data[0].loss_fn_inputs["target_tokens"].shape, [3, 2]);
}

#[test]
fn refusals_name_the_field() {
    refused(|request| request.data.clear(), "data: at least one datum");
    refused(|request| request.data[0].model_input.clear(), "data[0].model_input: at least one token");
    let ragged = proto::EncodedTextChunk { tokens: Bytes::from_static(&[1, 2, 3]) };
    refused(
        |request| request.data[0].model_input[1].chunk = Some(proto::chunk::Content::EncodedText(ragged)),
        "data[0].model_input.chunks[1]: tokens has 3 bytes",
    );
    refused(|request| request.data[0].model_input[0].chunk = None, "chunks[0]: has no content");
    let image = proto::chunk::Content::Image(proto::ImageChunk::default());
    refused(
        |request| request.data[0].model_input[2].chunk = Some(image),
        "data[0].model_input.chunks[2]: model acme/tiny does not take images",
    );
    let dmel = proto::chunk::Content::Dmel(proto::DmelChunk::default());
    refused(|request| request.data[0].model_input[2].chunk = Some(dmel), "chunks[2]: dmel chunks are not supported");
    refused(
        |request| request.data[0].loss_fn_inputs.get_mut("weights").unwrap().shape = vec![2],
        "data[0].loss_fn_inputs.weights: has 3 elements, which does not match its shape [2]",
    );
    let wide = dense(DType::Int64, Bytes::new(), &[1, 1_025]);
    refused(
        |request| drop(request.data[0].loss_fn_inputs.insert("target_tokens".to_owned(), wide)),
        "data[0].loss_fn_inputs.target_tokens: 1025 columns, at most 1024 are allowed",
    );
    refused(
        |request| {
            request.loss_fn_config_v2.insert("beta".to_owned(), proto::LossConfigValue { value: None });
        },
        "loss_fn_config.beta",
    );
}

#[test]
fn the_newer_settings_win_when_there_are_any() {
    let mut request = request();
    request.loss_fn_config = BTreeMap::from([("beta".to_owned(), 0.1)]);
    let legacy = batch(request.clone()).unwrap().loss_fn_config;
    assert_eq!(legacy["beta"], LossConfigValue::Number(0.1));
    let text = proto::loss_config_value::Value::Text("x".to_owned());
    request.loss_fn_config_v2.insert("loss_id".to_owned(), proto::LossConfigValue { value: Some(text) });
    let config = batch(request).unwrap().loss_fn_config;
    assert_eq!(config, LossConfig::from([("loss_id".to_owned(), LossConfigValue::Text("x".to_owned()))]));
}

#[test]
fn ids_are_read_from_a_damaged_body() {
    // Field 3 holds something that is no datum.
    let body = [0x0a, 1, b'm', 0x10, 7, 0x1a, 2, 0xff, 0xff];
    assert!(decode(Bytes::copy_from_slice(&body)).is_err());
    assert_eq!(proto_ids(&body), Some((RunId::new("m"), 7)));
    let whole = encode(&request());
    let front = [0x0a, 9, b's', b':', b't', b'r', b'a', b'i', b'n', b':', b'0', 0x10, 1];
    assert!(whole.starts_with(&front));
    for length in 0..whole.len() {
        let expected = (length >= front.len()).then(|| (RunId::new("s:train:0"), 1));
        assert_eq!(proto_ids(&whole[..length]), expected, "cut to {length} bytes");
    }
    assert_eq!(proto_ids(&[]), None);
    assert_eq!(proto_ids(&[0xff]), None);
}

const JSON: &str = r#"{"model_id":"s:train:0","seq_id":1,"forward_backward_input":{"data":[{
    "model_input":{"chunks":[{"type":"encoded_text","tokens":[1,2]},{"tokens":[3],"type":"encoded_text"}]},
    "loss_fn_inputs":{
        "target_tokens":{"data":[2,3,4],"dtype":"int64","shape":[3]},
        "weights":{"data":[0.0,1,1],"dtype":"float32"}}}],
    "loss_fn":"cross_entropy","loss_fn_config":{"beta":0.5,"loss_id":"x"}}}"#;

#[test]
fn json_is_the_same_request() {
    let body: ForwardBackwardBody = json::parse(JSON.as_bytes()).unwrap();
    let from_json = batch(decode(encode(&body.into_proto().unwrap())).unwrap()).unwrap();
    let mut expected = batch(request()).unwrap();
    expected.loss_fn_config = LossConfig::from([
        ("beta".to_owned(), LossConfigValue::Number(0.5)),
        ("loss_id".to_owned(), LossConfigValue::Text("x".to_owned())),
    ]);
    assert_eq!(from_json, expected);
}

#[test]
fn json_forward_is_forward_only() {
    let text =
        JSON.replace("forward_backward_input", "forward_input").replace("{\"beta\":0.5,\"loss_id\":\"x\"}", "null");
    let body: ForwardBody = json::parse(text.as_bytes()).unwrap();
    let request = body.into_proto().unwrap();
    assert!(request.forward_only);
    assert!(batch(request).unwrap().loss_fn_config.is_empty());
}

#[test]
fn json_refusals_name_the_field() {
    let refusal = |from: &str, to: &str| {
        let text = JSON.replace(from, to);
        let parsed = json::parse::<ForwardBackwardBody>(text.as_bytes());
        parsed.and_then(ForwardBackwardBody::into_proto).unwrap_err().message
    };
    let data = "forward_backward_input.data[0].";
    assert!(refusal("[1,2]", "[1,\"2\"]").starts_with(&format!("{data}model_input.chunks[0].tokens[1]: ")));
    assert!(refusal("[1,2]", "[1,4294967296]").starts_with(&format!("{data}model_input: token 1")));
    let chunk = |chunk: &str| refusal("{\"tokens\":[3],\"type\":\"encoded_text\"}", chunk);
    for (chunk, text) in [
        (chunk(r#"{"type":"image","data":""}"#), "missing field `format`"),
        (chunk(r#"{"type":"image","format":"png"}"#), "missing field `data`"),
        (
            chunk(r#"{"type":"image_asset_pointer","location":"http://x","format":"png"}"#),
            "image_asset_pointer chunks are",
        ),
        (chunk(r#"{"type":"dmel","dmel":""}"#), "dmel chunks are not supported"),
        (chunk(r#"{"type":"video"}"#), "unknown chunk type \"video\": expected encoded_text or image"),
    ] {
        assert!(chunk.starts_with(&format!("{data}model_input.chunks[1]: {text}")), "{chunk}");
    }
    let file = chunk(r#"{"type":"image","data":"!","format":"png"}"#);
    assert!(file.starts_with(&format!("{data}model_input.chunks[1].data: the file is not valid base64")), "{file}");
    assert!(refusal("[2,3,4]", "[2,3,4.5]").starts_with(&format!("{data}loss_fn_inputs.target_tokens: data[2]")));
    assert!(refusal("\"beta\":0.5", "\"beta\":[]").contains("loss_fn_config.beta"));
    assert!(refusal("\"seq_id\":1", "\"seq_id\":3000000000").starts_with("seq_id"));
    assert!(refusal("\"seq_id\":1,", "").contains("`seq_id`"));
}

#[test]
fn too_many_parts_are_refused_before_they_are_read() {
    let error = decode([0x1a, 0].repeat(1 << 20).into()).unwrap_err();
    assert_eq!(error.message, "data: 1048576 datums, at most 65536 are allowed");
    let json = |data: &str| {
        let text = format!(
            r#"{{"model_id":"s:train:0","seq_id":1,"forward_backward_input":{{"data":[{data}],"loss_fn":"x"}}}}"#
        );
        json::parse::<ForwardBackwardBody>(text.as_bytes()).unwrap_err().message
    };
    let datum = |chunks: usize| format!(r#"{{"model_input":{{"chunks":[{}]}}}}"#, vec!["{}"; chunks].join(","));
    let list = |datums: usize, chunks: usize| vec![datum(chunks); datums].join(",");
    assert_eq!(json(&list(70_000, 0)), "forward_backward_input.data: 70000 datums, at most 65536 are allowed");
    assert_eq!(
        json(&list(1, 20_000)),
        "forward_backward_input.data[0].model_input.chunks: 20000 chunks, at most 16384 are allowed"
    );
    assert_eq!(
        json(&list(40, 16_384)),
        "forward_backward_input.data: more than 524288 chunks and loss inputs up to element 32; send fewer"
    );
}

#[test]
fn the_inputs_and_settings_of_a_loss_have_bounds() {
    let entries =
        |count: usize, value: &str| (0..count).map(|at| format!("\"x{at}\":{value}")).collect::<Vec<_>>().join(",");
    let read = |inputs: usize, settings: usize| {
        let tensor = r#"{"data":[1],"dtype":"int64"}"#;
        let body = format!(
            r#"{{"model_id":"r","seq_id":1,"forward_backward_input":{{"loss_fn":"cross_entropy",
            "loss_fn_config":{{{}}},"data":[{{"model_input":{{"chunks":[]}},"loss_fn_inputs":{{{}}}}}]}}}}"#,
            entries(settings, "1"),
            entries(inputs, tensor)
        );
        json::parse::<ForwardBackwardBody>(body.as_bytes()).map(drop).map_err(|error| error.message)
    };
    assert_eq!(read(64, 1_024), Ok(()));
    assert!(read(65, 0).unwrap_err().ends_with("65 inputs, at most 64 are allowed"));
    assert!(read(0, 1_025).unwrap_err().ends_with("1025 settings, at most 1024 are allowed"));
}

fn output(shape: &[usize], start: f32) -> DatumOutput {
    let count = shape.iter().product::<usize>();
    let logprobs: Vec<f32> = (0..count).map(|at| start + at as f32).collect();
    let elementwise_loss = logprobs.iter().map(|value| -value).collect();
    DatumOutput { shape: shape.to_vec(), logprobs, elementwise_loss, entropies: None, kl: None }
}

#[test]
fn results_have_byte_offsets() {
    let metrics = BTreeMap::from([("loss:sum".to_owned(), 1.5)]);
    let result = ForwardBackwardResult { outputs: vec![output(&[3], 0.0), output(&[2], 3.0)], metrics };
    let decoded = proto::ForwardBackwardOutput::decode(encode_output(&result)).unwrap();
    assert_eq!(decoded.metrics["loss:sum"], 1.5);
    assert_eq!(decoded.loss_fn_outputs.len(), 1);
    let record = &decoded.loss_fn_outputs[0];
    assert_eq!(record.num_datums, 2);
    let logprobs = &record.fields["logprobs"];
    assert_eq!(logprobs.data, tensor::f32_bytes(&[0.0, 1.0, 2.0, 3.0, 4.0]));
    assert_eq!(logprobs.offsets, tensor::i64_bytes(&[0, 12, 20]));
    assert_eq!((logprobs.dtype(), logprobs.trailing_shape.len()), (DType::Float32, 0));
    assert_eq!(record.fields["elementwise_loss"].data, tensor::f32_bytes(&[-0.0, -1.0, -2.0, -3.0, -4.0]));
}

#[test]
fn ragged_k_splits_into_records() {
    let outputs = vec![output(&[3, 2], 0.0), output(&[2, 2], 0.0), output(&[1, 3], 0.0), output(&[1, 2], 0.0)];
    let result = ForwardBackwardResult { outputs, metrics: BTreeMap::new() };
    let decoded = proto::ForwardBackwardOutput::decode(encode_output(&result)).unwrap();
    let shape: Vec<_> = decoded
        .loss_fn_outputs
        .iter()
        .map(|record| (record.num_datums, record.fields["logprobs"].trailing_shape.clone()))
        .collect();
    assert_eq!(shape, [(2, vec![2]), (1, vec![3]), (1, vec![2])]);
    assert_eq!(decoded.loss_fn_outputs[0].fields["logprobs"].offsets, tensor::i64_bytes(&[0, 24, 40]));
}

#[test]
fn all_records_have_the_values_of_positions_that_a_datum_asked_for() {
    for name in ["entropies", "kl"] {
        check_values_of_positions(name);
    }
}

fn check_values_of_positions(name: &str) {
    let with = |shape: &[usize]| {
        let values = Some(vec![0.5; shape[0]]);
        match name {
            "kl" => DatumOutput { kl: values, ..output(shape, 0.0) },
            _ => DatumOutput { entropies: values, ..output(shape, 0.0) },
        }
    };
    let outputs = vec![output(&[2], 0.0), with(&[1]), with(&[2]), with(&[2, 3]), output(&[3], 0.0)];
    let result = ForwardBackwardResult { outputs, metrics: BTreeMap::new() };
    let decoded = proto::ForwardBackwardOutput::decode(encode_output(&result)).unwrap();
    let records = decoded.loss_fn_outputs;
    assert!(records.iter().all(|record| record.fields.len() == 3), "logprobs, elementwise_loss, and {name}");
    let values: Vec<_> = records.iter().map(|record| &record.fields[name]).collect();
    let halves = |count| tensor::f32_bytes(&vec![0.5; count]);
    assert_eq!(values.iter().map(|field| &field.data[..]).collect::<Vec<_>>(), [halves(3), halves(2), halves(0)]);
    assert_eq!(values[0].offsets, tensor::i64_bytes(&[0, 0, 4, 12]), "none of the first datum");
    // One per position, whatever the number of targets.
    assert!(values.iter().all(|field| field.trailing_shape.is_empty()));
}

#[test]
fn no_outputs_give_no_records() {
    let result = ForwardBackwardResult { outputs: vec![], metrics: BTreeMap::new() };
    assert!(proto::ForwardBackwardOutput::decode(encode_output(&result)).unwrap().loss_fn_outputs.is_empty());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = proto_ids(&bytes);
        let _ = json::training_ids(&bytes);
        let _ = json::parse::<ForwardBackwardBody>(&bytes);
        let _ = decode(bytes.into()).and_then(batch);
    }

    #[test]
    fn damaged_requests_never_panic(at in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut bytes = encode(&request()).to_vec();
        let at = at.index(bytes.len());
        bytes[at] = value;
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = proto_ids(&bytes);
        let _ = decode(bytes.into()).and_then(batch);
    }
}

fn image_chunk(width: u32, height: u32, expected_tokens: Option<i32>) -> proto::Chunk {
    let image = proto::ImageChunk {
        data: png(width, height).into(),
        format: "png".to_owned(),
        expected_tokens,
        override_dimensions: None,
    };
    proto::Chunk { chunk: Some(proto::chunk::Content::Image(image)) }
}

fn with_images(change: impl FnOnce(&mut Vec<proto::Chunk>)) -> Result<RawBatch, OpError> {
    let mut request = request();
    change(&mut request.data[0].model_input);
    assert!(has_images(&request));
    super::batch(request, &rules(ImageLimits::default()))
}

#[test]
fn images_stand_among_the_tokens() {
    assert!(!has_images(&request()));
    let text = batch(request()).unwrap().data[0].tokens.clone();
    let pass = with_images(|chunks| chunks.insert(1, image_chunk(64, 32, Some(2)))).unwrap();
    let datum = &pass.data[0];
    let span = &datum.images[0];
    assert_eq!((span.tokens, datum.tokens.len()), (2, text.len() + 2));
    assert_eq!(datum.tokens[span.start..][..2], [90, 90]);
    let around = [&datum.tokens[..span.start], &datum.tokens[span.start + 2..]].concat();
    assert_eq!(around, text);
}

#[test]
fn refused_images_are_named_by_chunk() {
    let refused = |image| with_images(|chunks| chunks.insert(1, image)).unwrap_err().message;
    assert_eq!(
        refused(image_chunk(64, 32, Some(3))),
        "data[0].model_input.chunks[1]: expected_tokens is 3, but an image of 64 × 32 pixels takes 2 tokens"
    );
    let tokens = proto::EncodedTextChunk { tokens: tensor::token_bytes(&[90]) };
    let placeholder = proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(tokens)) };
    let text = with_images(|chunks| chunks.extend([image_chunk(32, 32, None), placeholder])).unwrap_err().message;
    assert!(text.starts_with("data[0].model_input: token 4 is 90, which stands for images"), "{text}");
}

#[test]
fn images_in_json_are_the_same_request() {
    use base64::Engine;
    let file = base64::engine::general_purpose::STANDARD.encode(png(64, 32));
    let image = format!(r#"{{"type":"image","data":"{file}","format":"png","expected_tokens":2}},"#);
    let text = JSON.replace("{\"tokens\":[3],", &format!("{image}{{\"tokens\":[3],"));
    let body: ForwardBackwardBody = json::parse(text.as_bytes()).unwrap();
    let chunks = body.into_proto().unwrap().data.remove(0).model_input;
    let tokens = |ids: &[u32]| {
        let text = proto::EncodedTextChunk { tokens: tensor::token_bytes(ids) };
        proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(text)) }
    };
    assert_eq!(chunks, [tokens(&[1, 2]), image_chunk(64, 32, Some(2)), tokens(&[3])]);
}

//! Field numbers and wire types against bytes written by hand, so that a renumbered field cannot pass by
//! decoding what it encoded itself. In a key, the low three bits are the wire type (0 varint, 1 fixed 64 bits,
//! 2 length-delimited) and the rest is the field number.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use prost::Message;

use super::*;

/// Encodes to exactly these bytes, and decodes from them.
#[track_caller]
fn golden<M: Message + Default + PartialEq + std::fmt::Debug>(message: &M, bytes: &[u8]) {
    assert_eq!(message.encode_to_vec(), bytes);
    assert_eq!(&M::decode(bytes).unwrap(), message);
}

/// A length-delimited field.
fn field(key: u8, content: &[u8]) -> Vec<u8> {
    [&[key, content.len() as u8], content].concat()
}

fn bytes(content: &[u8]) -> Bytes {
    Bytes::copy_from_slice(content)
}

#[test]
fn tensor_dense() {
    let tensor = Tensor {
        encoding: Some(tensor::Encoding::Dense(bytes(&[1, 2]))),
        dtype: DType::Int32.into(),
        shape: vec![2, 300],
    };
    golden(&tensor, &[0x0a, 2, 1, 2, 0x18, 3, 0x22, 3, 2, 0xac, 2]);
}

#[test]
fn an_empty_dense_tensor_is_still_dense() {
    let tensor = Tensor { encoding: Some(tensor::Encoding::Dense(Bytes::new())), dtype: 1, shape: vec![] };
    golden(&tensor, &[0x0a, 0, 0x18, 1]);
}

#[test]
fn tensor_sparse() {
    let csr = SparseCsr { values: bytes(&[1]), crow_indices: bytes(&[2]), col_indices: bytes(&[3]) };
    let csr_bytes = [0x0a, 1, 1, 0x12, 1, 2, 0x1a, 1, 3];
    golden(&csr, &csr_bytes);
    let tensor = Tensor { encoding: Some(tensor::Encoding::SparseCsr(csr)), dtype: 2, shape: vec![] };
    golden(&tensor, &[field(0x12, &csr_bytes), vec![0x18, 2]].concat());
}

#[test]
fn chunks() {
    let text = EncodedTextChunk { tokens: bytes(&[7, 0, 0, 0]) };
    golden(&text, &[0x0a, 4, 7, 0, 0, 0]);
    let chunk = Chunk { chunk: Some(chunk::Content::EncodedText(text)) };
    golden(&chunk, &[0x0a, 6, 0x0a, 4, 7, 0, 0, 0]);

    let dimensions = ImageDimensions { width: 3, height: 4 };
    golden(&dimensions, &[0x08, 3, 0x10, 4]);
    let image = ImageChunk {
        data: bytes(&[9]),
        format: "png".to_owned(),
        expected_tokens: Some(0),
        override_dimensions: Some(dimensions),
    };
    let image_bytes = [&[0x0a, 1, 9, 0x12, 3, b'p', b'n', b'g', 0x18, 0][..], &[0x22, 4, 0x08, 3, 0x10, 4]].concat();
    golden(&image, &image_bytes);
    golden(&Chunk { chunk: Some(chunk::Content::Image(image)) }, &field(0x12, &image_bytes));

    let dmel = DmelChunk { dmel: bytes(&[5]) };
    golden(&dmel, &[0x0a, 1, 5]);
    golden(&Chunk { chunk: Some(chunk::Content::Dmel(dmel)) }, &[0x1a, 3, 0x0a, 1, 5]);
}

#[test]
fn provenance() {
    let span = TokenSpan { sequence_id: "s".to_owned(), offset: 1, length: 2 };
    let span_bytes = [0x0a, 1, b's', 0x10, 1, 0x18, 2];
    golden(&span, &span_bytes);
    let prompt = ProvenanceSpan { span: Some(provenance_span::Span::PromptTokens(span.clone())) };
    golden(&prompt, &field(0x0a, &span_bytes));
    let sampled = ProvenanceSpan { span: Some(provenance_span::Span::SampledTokens(span)) };
    golden(&sampled, &field(0x12, &span_bytes));
}

#[test]
fn loss_config_values() {
    let number = LossConfigValue { value: Some(loss_config_value::Value::Number(1.0)) };
    golden(&number, &[0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    let text = LossConfigValue { value: Some(loss_config_value::Value::Text("a".to_owned())) };
    golden(&text, &[0x12, 1, b'a']);
}

#[test]
fn datum() {
    let tensor = Tensor { encoding: None, dtype: 1, shape: vec![] };
    let span = ProvenanceSpan { span: None };
    let datum = Datum {
        model_input: vec![Chunk { chunk: None }],
        loss_fn_inputs: BTreeMap::from([("w".to_owned(), tensor)]),
        model_input_spans: vec![span.clone()],
        loss_fn_input_spans: vec![span],
    };
    golden(&datum, &[0x0a, 0, 0x12, 7, 0x0a, 1, b'w', 0x12, 2, 0x18, 1, 0x1a, 0, 0x22, 0]);
}

#[test]
fn forward_backward_request() {
    let one = [0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    let text = LossConfigValue { value: Some(loss_config_value::Value::Text("x".to_owned())) };
    let request = ForwardBackwardRequest {
        model_id: "m".to_owned(),
        seq_id: 5,
        data: vec![Datum::default()],
        loss_fn: "ppo".to_owned(),
        loss_fn_config: BTreeMap::from([("b".to_owned(), 1.0)]),
        forward_only: true,
        loss_fn_config_v2: BTreeMap::from([("k".to_owned(), text)]),
    };
    let expected = [
        &[0x0a, 1, b'm', 0x10, 5, 0x1a, 0, 0x22, 3, b'p', b'p', b'o'][..],
        &field(0x2a, &[&[0x0a, 1, b'b', 0x11][..], &one].concat()),
        &[0x30, 1],
        &field(0x3a, &[0x0a, 1, b'k', 0x12, 3, 0x12, 1, b'x']),
    ]
    .concat();
    golden(&request, &expected);
    golden(&TrainingIds { model_id: "m".to_owned(), seq_id: 5 }, &[0x0a, 1, b'm', 0x10, 5]);
    assert_eq!(TrainingIds::decode(expected.as_slice()).unwrap().seq_id, 5);
}

#[test]
fn forward_backward_output() {
    let batch = BatchedTensor { data: bytes(&[1]), offsets: bytes(&[2]), dtype: 1, trailing_shape: vec![2] };
    let batch_bytes = [0x0a, 1, 1, 0x12, 1, 2, 0x18, 1, 0x22, 1, 2];
    golden(&batch, &batch_bytes);
    let record =
        ArrayRecord { type_tag: "t".to_owned(), fields: BTreeMap::from([("f".to_owned(), batch)]), num_datums: 3 };
    let entry = [&[0x0a, 1, b'f'][..], &field(0x12, &batch_bytes)].concat();
    let record_bytes = [&[0x0a, 1, b't'][..], &field(0x12, &entry), &[0x18, 3]].concat();
    golden(&record, &record_bytes);
    let output = ForwardBackwardOutput {
        loss_fn_output_type: "o".to_owned(),
        loss_fn_outputs: vec![record],
        metrics: BTreeMap::from([("l".to_owned(), 1.0)]),
    };
    let metric = [0x0a, 1, b'l', 0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f];
    golden(&output, &[&[0x0a, 1, b'o'][..], &field(0x12, &record_bytes), &field(0x1a, &metric)].concat());
}

#[test]
fn sample_response() {
    let topk = TopkLogprobs { token_ids: bytes(&[1]), logprobs: bytes(&[2]), k: 3, length: 4 };
    let topk_bytes = [0x0a, 1, 1, 0x12, 1, 2, 0x18, 3, 0x20, 4];
    golden(&topk, &topk_bytes);
    let sequence = SampledSequence {
        stop_reason: StopReason::Length.into(),
        tokens: bytes(&[5]),
        logprobs: Some(bytes(&[6])),
        topk_sampled_logprobs: Some(topk.clone()),
    };
    let sequence_bytes = [&[0x08, 1, 0x12, 1, 5, 0x1a, 1, 6][..], &field(0x22, &topk_bytes)].concat();
    golden(&sequence, &sequence_bytes);
    let tensor = Tensor { encoding: None, dtype: 1, shape: vec![] };
    let alt = PromptAltTokens { tokens: Some(tensor.clone()), logprobs: Some(tensor.clone()) };
    let alt_bytes = [0x0a, 2, 0x18, 1, 0x12, 2, 0x18, 1];
    golden(&alt, &alt_bytes);
    let response = SampleResponse {
        sequences: vec![sequence],
        prompt_logprobs: Some(bytes(&[7])),
        topk_prompt_logprobs: Some(topk),
        prompt_cache_hit_tokens: 8,
        target_prompt_logprobs: Some(tensor),
        prompt_alt_tokens: Some(alt),
    };
    let expected = [
        &field(0x0a, &sequence_bytes)[..],
        &[0x12, 1, 7],
        &field(0x1a, &topk_bytes),
        &[0x20, 8, 0x2a, 2, 0x18, 1],
        &field(0x32, &alt_bytes),
    ]
    .concat();
    golden(&response, &expected);
}

/// Every field of the documented messages, by name and number, is what the code has.
#[test]
fn the_proto_file_lists_the_same_fields() {
    let documented = include_str!("../../openapi/tinker_public.proto");
    let code = include_str!("proto.rs");
    for (message, fields) in messages(documented) {
        // The two provenance spans have the same fields and share a type.
        let name = message.replace("PromptProvenanceSpan", "TokenSpan").replace("SampledProvenanceSpan", "TokenSpan");
        let body = code.split(&format!("pub struct {name} {{")).nth(1).unwrap();
        let body = body.split("\n}").next().unwrap();
        for (field, number) in fields {
            let plain = body.contains(&format!("tag = \"{number}\")]\n    pub {field}:"));
            let in_oneof = body.contains("oneof = ") && body.contains(&number.to_string());
            assert!(plain || in_oneof, "{message}.{field} = {number}");
        }
    }
}

fn messages(proto: &str) -> Vec<(String, Vec<(String, u32)>)> {
    let mut messages: Vec<(String, Vec<(String, u32)>)> = Vec::new();
    let mut in_enum = false;
    for line in proto.lines().map(|line| line.split("//").next().unwrap().trim()) {
        if let Some(name) = line.strip_prefix("message ") {
            in_enum = false;
            messages.push((name.trim_end_matches([' ', '{']).to_owned(), Vec::new()));
        } else if line.starts_with("enum ") {
            in_enum = true;
        } else if let (false, Some((left, number))) = (in_enum, line.trim_end_matches(';').split_once(" = "))
            && let (Some(field), Ok(number), Some(last)) =
                (left.rsplit(' ').next(), number.parse(), messages.last_mut())
        {
            last.1.push((field.to_owned(), number));
        }
    }
    assert_eq!(messages.len(), 20);
    messages
}

#![allow(clippy::unwrap_used, reason = "tests")]
use std::collections::BTreeMap;

use trainyard_protocol::Category;

use super::*;
use crate::images::ImageRules;
use crate::training;

fn span(sampled: bool, sequence: &str, offset: i64, length: i64) -> proto::ProvenanceSpan {
    let tokens = proto::TokenSpan { sequence_id: sequence.to_owned(), offset, length };
    let span = if sampled { Span::SampledTokens(tokens) } else { Span::PromptTokens(tokens) };
    proto::ProvenanceSpan { span: Some(span) }
}

fn prompt(offset: i64, length: i64) -> proto::ProvenanceSpan {
    span(false, "r:1", offset, length)
}

fn sampled(offset: i64, length: i64) -> proto::ProvenanceSpan {
    span(true, "r:1", offset, length)
}

fn tensor(dtype: DType, bytes: Bytes, count: usize) -> proto::Tensor {
    let encoding = Some(proto::tensor::Encoding::Dense(bytes));
    proto::Tensor { encoding, dtype: dtype.into(), shape: vec![count as i64] }
}

fn floats(values: &[f32]) -> proto::Tensor {
    tensor(DType::Float32, tensor::f32_bytes(values), values.len())
}

/// A prompt of two tokens and the first three of the four tokens of `r:1`, as recipes make it: targets of the prompt are 0.
fn request() -> proto::ForwardBackwardRequest {
    let text = proto::EncodedTextChunk { tokens: tensor::token_bytes(&[1, 2, 21, 22, 23]) };
    let loss_fn_inputs = BTreeMap::from([
        ("target_tokens".to_owned(), tensor(DType::Int64, tensor::i64_bytes(&[0, 21, 22, 23, 24]), 5)),
        ("logprobs".to_owned(), floats(&[-9.0, -1.0, -2.0, -3.0, -4.0])),
        ("advantages".to_owned(), floats(&[0.0, 1.0, 1.0, 1.0, 1.0])),
    ]);
    let datum = proto::Datum {
        model_input: vec![proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(text)) }],
        loss_fn_inputs,
        model_input_spans: vec![prompt(0, 2), sampled(0, 3)],
        loss_fn_input_spans: vec![prompt(1, 1), sampled(0, 4)],
    };
    proto::ForwardBackwardRequest {
        model_id: "s:train:0".to_owned(),
        seq_id: 1,
        data: vec![datum],
        loss_fn: "stable_reinforce".to_owned(),
        ..proto::ForwardBackwardRequest::default()
    }
}

/// The result of the sample `r`: two sequences.
fn record() -> Bytes {
    let sequence = |tokens: &[u32], logprobs: &[f32]| proto::SampledSequence {
        stop_reason: 0,
        tokens: tensor::token_bytes(tokens),
        logprobs: Some(tensor::f32_bytes(logprobs)),
        topk_sampled_logprobs: None,
    };
    let sequences = vec![sequence(&[11], &[-0.5]), sequence(&[21, 22, 23, 24], &[-1.0005, -2.0, -3.0, -4.0])];
    proto::SampleResponse { sequences, ..proto::SampleResponse::default() }.encode_to_vec().into()
}

fn resolved(
    mut request: proto::ForwardBackwardRequest,
    record: Option<&Bytes>,
) -> Result<(proto::ForwardBackwardRequest, RawBatch), OpError> {
    let mut batch = training::batch(request.clone(), &ImageRules::text_only("m")).unwrap();
    let mut provenance = Provenance::read(&request, &batch)?;
    for id in provenance.requests() {
        provenance.resolve(&id, record, &batch)?;
    }
    provenance.apply(&mut request, &mut batch)?;
    Ok((request, batch))
}

#[test]
fn recorded_values_replace_those_of_the_client() {
    let (message, batch) = resolved(request(), Some(&record())).unwrap();
    let expected = Tensor::f32(vec![0.0, -1.0005, -2.0, -3.0, -4.0]);
    assert_eq!(batch.data[0].loss_fn_inputs["logprobs"], expected);
    // What is stored says the same, without the record.
    assert!(!applies(&message));
    assert_eq!(training::batch(message, &ImageRules::text_only("m")).unwrap(), batch);
}

#[test]
fn only_a_stable_reinforce_with_spans_is_looked_up() {
    assert!(applies(&request()));
    let mut other = request();
    other.loss_fn = "ppo".to_owned();
    assert!(!applies(&other));
    let mut without = request();
    without.data[0].model_input_spans.clear();
    assert!(applies(&without), "half of the spans are a mistake");
    without.data[0].loss_fn_input_spans.clear();
    assert!(!applies(&without));
}

/// Examples with and without spans, of several samples, in one request.
#[test]
fn examples_are_resolved_each_for_itself() {
    let mut mixed = request();
    let mut plain = mixed.data[0].clone();
    (plain.model_input_spans, plain.loss_fn_input_spans) = (vec![], vec![]);
    mixed.data.insert(0, plain);
    // Two turns of one conversation: the second sequence follows the first within the example.
    let mut turns = mixed.data[1].clone();
    turns.model_input_spans = vec![span(false, "r:0", 0, 2), span(true, "r:1", 0, 2), span(false, "r:0", 4, 1)];
    turns.loss_fn_input_spans = vec![span(false, "r:0", 1, 1), span(true, "r:1", 0, 2), span(true, "r:1", 2, 2)];
    mixed.data.push(turns);
    let (_, batch) = resolved(mixed, Some(&record())).unwrap();
    let logprobs = |index: usize| batch.data[index].loss_fn_inputs["logprobs"].clone();
    assert_eq!(logprobs(0), Tensor::f32(vec![-9.0, -1.0, -2.0, -3.0, -4.0]));
    assert_eq!((logprobs(1), logprobs(1)), (logprobs(2), Tensor::f32(vec![0.0, -1.0005, -2.0, -3.0, -4.0])));
}

fn refusal(change: impl FnOnce(&mut proto::Datum)) -> String {
    let mut request = request();
    change(&mut request.data[0]);
    let error = resolved(request, Some(&record())).unwrap_err();
    assert_eq!(error.category, Category::User);
    error.message
}

#[test]
fn what_was_not_recorded_so_is_refused_by_name() {
    let inputs = "data[0].model_input_spans";
    let targets = "data[0].loss_fn_input_spans";
    let set = |name: &'static str, values: [f32; 5]| {
        move |datum: &mut proto::Datum| drop(datum.loss_fn_inputs.insert(name.to_owned(), floats(&values)))
    };
    let spans = |spans: Vec<proto::ProvenanceSpan>| move |datum: &mut proto::Datum| datum.loss_fn_input_spans = spans;
    let input_spans =
        |spans: Vec<proto::ProvenanceSpan>| move |datum: &mut proto::Datum| datum.model_input_spans = spans;
    let cases: Vec<(String, String)> = vec![
        (
            refusal(set("logprobs", [0.0, -1.0, -2.0, -3.01, -4.0])),
            "data[0].loss_fn_inputs.logprobs: element 3 is -3.01, and the server recorded -3 when it".into(),
        ),
        (
            refusal(set("logprobs", [0.0, f32::NAN, -2.0, -3.0, -4.0])),
            "data[0].loss_fn_inputs.logprobs: element 1 is NaN".into(),
        ),
        (
            refusal(set("advantages", [0.5, 1.0, 1.0, 1.0, 1.0])),
            "data[0].loss_fn_inputs.advantages: element 0 is 0.5, and its target was not sampled".into(),
        ),
        (
            refusal(spans(vec![prompt(1, 1), sampled(0, 3)])),
            format!("{targets}: spans cover 4 positions, but the field has 5"),
        ),
        (refusal(spans(vec![])), format!("{targets}: spans cover 0 positions, but the field has 5")),
        (
            refusal(input_spans(vec![sampled(0, 3), prompt(0, 9)])),
            format!("{inputs}: spans cover 12 positions, but the field has 5"),
        ),
        (
            refusal(spans(vec![prompt(1, 1), sampled(1, 4)])),
            format!("{targets}[1]: positions 1 to 5 are beyond the end of the sequence, which has 4 tokens"),
        ),
        (
            refusal(spans(vec![prompt(1, 1), sampled(i64::MAX, 4)])),
            format!("{targets}[1]: positions 9223372036854775807 to "),
        ),
        (refusal(spans(vec![prompt(1, 1), sampled(0, i64::MAX)])), format!("{targets}: spans cover ")),
        (
            refusal(spans(vec![prompt(1, 1), sampled(-1, 4)])),
            format!("{targets}[1]: offset -1 and length 4 must be at least 0"),
        ),
        (
            refusal(spans(vec![prompt(1, 2), sampled(0, 3)])),
            format!("{targets}[1]: target_tokens has token 22 in position 2, but the sequence has 21"),
        ),
        (
            refusal(input_spans(vec![prompt(0, 2), sampled(1, 3)])),
            format!("{inputs}[1]: model_input has token 21 in position 2, but the sequence has 22"),
        ),
        (
            refusal(spans(vec![prompt(1, 1), span(true, "r:2", 0, 4)])),
            format!("{targets}[1]: the sample r has only 2 sequences"),
        ),
        (
            refusal(spans(vec![prompt(1, 1), span(true, "r", 0, 4)])),
            format!("{targets}[1]: \"r\" is not the id of a sampled sequence"),
        ),
        (refusal(spans(vec![prompt(1, 1), span(true, "r:-1", 0, 4)])), format!("{targets}[1]: \"r:-1\" is not the id")),
        (refusal(spans(vec![proto::ProvenanceSpan { span: None }])), format!("{targets}[0]: has neither")),
    ];
    for (message, expected) in cases {
        assert!(message.starts_with(&expected), "{message} / {expected}");
    }
    let missing = resolved(request(), None).unwrap_err();
    assert!(
        missing.message.starts_with(&format!("{inputs}[0]: the server has no record of the sequence r:1; sample with"))
    );
    let unreadable = resolved(request(), Some(&Bytes::from_static(b"\xff"))).unwrap_err();
    assert_eq!(unreadable.category, Category::Server);
}

/// Inputs of a wrong type or shape are left to the check that all losses have.
#[test]
fn malformed_inputs_are_left_to_the_loss() {
    let mut wrong = request();
    wrong.data[0].loss_fn_inputs.insert("logprobs".to_owned(), floats(&[0.0; 3]));
    let (_, batch) = resolved(wrong, Some(&record())).unwrap();
    assert_eq!(batch.data[0].loss_fn_inputs["logprobs"].len(), 3);
}

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use prost::Message;

use super::{sample_output, training_output, training_request};
use crate::data::{Datum, Loss, Tensor};
use crate::image::Image;
use crate::output::StopReason;
use crate::proto::{self, ArrayRecord, BatchedTensor, ForwardBackwardOutput, SampleResponse};

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn tokens(bytes: &[u8]) -> proto::Chunk {
    let text = proto::EncodedTextChunk { tokens: bytes.to_vec() };
    proto::Chunk { content: Some(proto::ChunkContent::EncodedText(text)) }
}

#[test]
fn images_are_chunks_between_tokens() {
    let image = Image::new(*b"\xff\xd8\xff1").unwrap().expecting(4);
    let data = [Datum::new([1, 2]).image(1, image)];
    let request = training_request("run", 1, &data, &Loss::cross_entropy(), false).unwrap();
    let read = proto::ForwardBackwardRequest::decode(&*request.encode_to_vec()).unwrap();
    let sent =
        proto::ImageChunk { data: b"\xff\xd8\xff1".to_vec(), format: "jpeg".to_owned(), expected_tokens: Some(4) };
    let image = proto::Chunk { content: Some(proto::ChunkContent::Image(sent)) };
    assert_eq!(read.data[0].model_input, [tokens(&[1, 0, 0, 0]), image, tokens(&[2, 0, 0, 0])]);
}

#[test]
fn a_request_has_tokens_inputs_and_settings() {
    let soft = Tensor::from(vec![5_i64, 6, 7, 8]).shaped(&[2, 2]);
    let data = [Datum::next_token(&[1, 2, 3]), Datum::new([1, 2]).input("target_tokens", soft)];
    let loss = Loss::ppo().number("clip", 0.5).text("kind", "x");
    let request = training_request("run", 3, &data, &loss, true).unwrap();
    let read = proto::ForwardBackwardRequest::decode(&*request.encode_to_vec()).unwrap();
    assert_eq!(read, request);
    assert_eq!((read.seq_id, read.forward_only, read.loss_fn.as_str()), (3, true, "ppo"));
    let [first, second] = &read.data[..] else { unreachable!() };
    assert_eq!(first.model_input, [tokens(&[1, 0, 0, 0, 2, 0, 0, 0])]);
    assert_eq!(first.loss_fn_inputs["weights"].dense.as_ref().unwrap(), &bytes_of(&[1.0, 1.0]));
    assert_eq!(second.loss_fn_inputs["target_tokens"].shape, [2, 2]);
    assert_eq!(read.loss_fn_config_v2["clip"].value, Some(proto::Setting::Number(0.5)));
}

#[test]
fn an_empty_sequence_is_an_empty_example() {
    assert!(Datum::next_token(&[]).tokens.is_empty());
    assert!(Datum::next_token(&[7]).tokens.is_empty());
}

#[test]
fn results_are_split_by_datum() {
    let logprobs = BatchedTensor {
        data: bytes_of(&[-1.0, -2.0, -3.0]),
        offsets: [0_i64, 4, 12].iter().flat_map(|offset| offset.to_le_bytes()).collect(),
        dtype: proto::FLOAT32,
        trailing_shape: vec![],
    };
    let record = ArrayRecord { fields: [("logprobs".to_owned(), logprobs)].into(), num_datums: 2 };
    let mut output =
        ForwardBackwardOutput { loss_fn_outputs: vec![record], metrics: [("loss:sum".to_owned(), 6.0)].into() };
    let read = training_output(&output.encode_to_vec()).unwrap();
    assert_eq!(read.loss(), 6.0);
    assert_eq!(read.loss_fn_outputs[1]["logprobs"].as_f32(), Some(&[-2.0, -3.0][..]));
    output.loss_fn_outputs[0].num_datums = 3;
    assert!(training_output(&output.encode_to_vec()).is_err());
}

#[test]
fn samples_are_read() {
    let cells = proto::TopkLogprobs {
        token_ids: [9_i32, 0].iter().flat_map(|id| id.to_le_bytes()).collect(),
        logprobs: bytes_of(&[-0.5, -99_999.0]),
        k: 2,
    };
    let sequence = proto::SampledSequence {
        stop_reason: 1,
        tokens: 9_i32.to_le_bytes().into(),
        logprobs: Some(bytes_of(&[-0.5])),
        topk_sampled_logprobs: Some(cells),
    };
    let prompt_logprobs = Some(bytes_of(&[f32::NAN, -1.0]));
    let response =
        SampleResponse { sequences: vec![sequence], prompt_logprobs, prompt_cache_hit_tokens: 4, ..Default::default() };
    let read = sample_output(&response.encode_to_vec()).unwrap();
    assert_eq!(read.prompt_logprobs, Some(vec![None, Some(-1.0)]));
    let sequence = &read.sequences[0];
    assert_eq!((&sequence.tokens[..], sequence.stop_reason), (&[9][..], StopReason::Length));
    assert_eq!(sequence.topk_logprobs, Some(vec![Some(vec![(9, -0.5)])]));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(message in proptest::collection::vec(any::<u8>(), 0..96)) {
        let _ = training_output(&message);
        let _ = sample_output(&message);
    }
}

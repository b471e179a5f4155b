#![allow(clippy::unwrap_used, reason = "tests")]
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use trainyard_images::{Limits, Preprocessor, Size, decode};
use trainyard_protocol::{
    ForwardBackwardResult, ImageSpan, OpResult, RequestId, SampleResult, SampledSequence, SamplingParams, Stop,
    StopReason, TenantId,
};
use trainyard_scheduler::{Decoded, Effect, Encoding, Outcome, Timestamp};
use trainyard_storage::Storage;
use trainyard_wire::images::ImageLimits;
use trainyard_wire::{proto, tensor, training};

use super::super::images::testing::image;
use super::super::reply::CompletionOutcome;
use super::*;
use crate::engine::testing::{model, model_with_images, preparer};

fn workspace() -> Workspace {
    Workspace::open(Storage::folder("/data"), Path::new("/none"), 0).unwrap()
}

fn session(location: Option<&str>, snapshot: Option<&str>) -> SamplingSession {
    SamplingSession {
        id: SamplingSessionId::new("s:sample:0"),
        session: SessionId::new("s"),
        seq_id: 0,
        base_model: "m".to_owned(),
        model_path: location.map(|_| "tinker://r:train:0/sampler_weights/a".parse().unwrap()),
        checkpoint_dir: location.map(PathBuf::from),
        snapshot: snapshot.map(str::to_owned),
        snapshot_dir: None,
        collected: false,
        created_at: Timestamp(0),
        stores: None,
    }
}

fn reported(completion: CompletionOutcome) -> (Outcome, Vec<Effect>) {
    match completion {
        CompletionOutcome::Report(outcome, effects) => (outcome, effects),
        CompletionOutcome::Encode(_, encode) => (encode(), vec![]),
        CompletionOutcome::Publish(saved) => (saved.report)(saved.size_bytes),
    }
}

fn sampling(session: Option<SamplingSession>) -> Work {
    let params = SamplingParams {
        max_tokens: Some(4),
        seed: 5,
        stop: Stop::Nothing,
        temperature: 0.5,
        top_k: Some(6),
        top_p: 0.9,
        controls: Default::default(),
    };
    let sample = Sample {
        prompt: vec![1, 2],
        num_samples: 3,
        params,
        prompt_logprobs: true,
        prompt_logprobs_last_n: Some(1),
        topk_prompt_logprobs: 7,
        topk_sample_logprobs: 8,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 9,
        images: Vec::new(),
    };
    let payload = Payload::Sample { sample: Box::new(sample), server_seed: false };
    Work {
        request: RequestId::new("r"),
        tenant: TenantId::new("t"),
        run: None,
        sampling_session: session,
        base_model: "acme/tiny".to_owned(),
        kind: RequestKind::Sample,
        seq_id: 0,
        payload: payload.encode().unwrap(),
        decoded: Decoded::default(),
        replay: false,
    }
}

fn dispatch(work: Work, workspace: &Workspace) -> Result<Dispatch, OpError> {
    let arithmetic = [("m".to_owned(), "f32 scalar single v1".to_owned())].into();
    let images = ModelImages::new(&[model()], ImageLimits::default());
    let (preparer, images) = (&*preparer(), &images);
    Dispatcher { workspace, preparer, images, random: &|| 0, arithmetic: &arithmetic }.dispatch(work)
}

fn started(work: Work) -> (Operation, PendingReply) {
    match dispatch(work, &workspace()).unwrap() {
        Dispatch::Start(operation, reply) => (*operation, *reply),
        Dispatch::Wait(waiting) => unreachable!("{:?} is there", waiting.folder),
        Dispatch::Decode(undecoded) => unreachable!("{} has no images", undecoded.work.request),
    }
}

fn source_of(session: SamplingSession) -> SamplerSource {
    match started(sampling(Some(session))).0 {
        Operation::Sample(sample) => {
            assert_eq!(sample.session, SessionId::new("s"));
            sample.source
        }
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_sample_uses_the_weights_of_its_session() {
    assert_eq!(source_of(session(None, None)), SamplerSource::Base { model: "m".to_owned() });
    let location = "checkpoints/r%3atrain%3a0/sampler_weights/a.r-0";
    let checkpoint = |dir: &str| SamplerSource::Checkpoint { base_model: "m".to_owned(), dir: PathBuf::from(dir) };
    assert_eq!(source_of(session(Some(location), None)), checkpoint(&format!("/data/{location}")));
    assert_eq!(source_of(session(Some("/elsewhere"), None)), checkpoint("/elsewhere"));
    let mut unrecorded = session(Some(location), None);
    unrecorded.checkpoint_dir = None;
    assert!(dispatch(sampling(Some(unrecorded)), &workspace()).is_err(), "not the base model");
    assert_eq!(source_of(session(None, Some("k"))), SamplerSource::Snapshot { key: "k".to_owned() });
    assert!(dispatch(sampling(None), &workspace()).is_err());
}

/// A checkpoint in a bucket must be fetched before its sample starts.
#[test]
fn a_sample_waits_for_its_weights() {
    let workspace = Workspace::open(Storage::in_memory(), Path::new("/none"), 0).unwrap();
    let work = sampling(Some(session(Some("checkpoints/r/sampler_weights/a"), None)));
    let Dispatch::Wait(waiting) = dispatch(work, &workspace).unwrap() else { unreachable!("nothing is there") };
    assert!(matches!(&waiting.folder, FolderSource::At(location) if location.ends_with("sampler_weights/a")));
    let Operation::Sample(sample) = (waiting.build)(Path::new("/work/0")) else { unreachable!("a sample") };
    let dir = PathBuf::from("/work/0");
    assert_eq!(sample.source, SamplerSource::Checkpoint { base_model: "m".to_owned(), dir });
}

#[test]
fn a_sample_is_answered_in_protobuf() {
    let (operation, reply) = started(sampling(Some(session(None, None))));
    let Operation::Sample(sample) = operation else { unreachable!("a sample") };
    let sample = sample.sample;
    assert_eq!((sample.num_samples, sample.params.seed, sample.params.top_k), (3, 5, Some(6)));
    assert_eq!((sample.topk_prompt_logprobs, sample.topk_sample_logprobs, sample.prompt_alt_tokens_k), (7, 8, 9));
    let sequence = SampledSequence { stop_reason: StopReason::Stop, tokens: vec![1], logprobs: vec![-1.0], topk: None };
    let result = SampleResult {
        sequences: vec![sequence],
        prompt_logprobs: None,
        topk_prompt_logprobs: None,
        target_prompt_logprobs: None,
        prompt_alt_tokens: None,
        prompt_cache_hit_tokens: 0,
    };
    let (outcome, effects) = reported(reply.finish(Ok(OpResult::Sample(result))));
    let Outcome::Succeeded { encoding: Encoding::Protobuf, payload } = outcome else { unreachable!("a result") };
    let with = trainyard_wire::sampling::computed_with(&payload).unwrap();
    assert_eq!((with.weights.as_str(), with.arithmetic.as_str()), ("m", "f32 scalar single v1"));
    assert_eq!(proto::SampleResponse::decode(payload).unwrap().sequences.len(), 1);
    assert!(effects.is_empty());
}

#[test]
fn a_pass_belongs_to_the_run_that_it_was_queued_for() {
    let chunk = proto::EncodedTextChunk { tokens: Bytes::from_static(&[1, 0, 0, 0]) };
    let targets = proto::Tensor {
        encoding: Some(proto::tensor::Encoding::Dense(tensor::i64_bytes(&[2]))),
        dtype: proto::DType::Int64.into(),
        shape: vec![1],
    };
    let datum = proto::Datum {
        model_input: vec![proto::Chunk { chunk: Some(proto::chunk::Content::EncodedText(chunk)) }],
        loss_fn_inputs: [("target_tokens".to_owned(), targets)].into(),
        ..proto::Datum::default()
    };
    let request = proto::ForwardBackwardRequest {
        model_id: "another".to_owned(),
        data: vec![datum],
        loss_fn: "cross_entropy".to_owned(),
        forward_only: true,
        ..proto::ForwardBackwardRequest::default()
    };
    let work = Work {
        run: Some(RunId::new("s:train:0")),
        kind: RequestKind::Forward,
        payload: training::encode(&request),
        ..sampling(None)
    };
    let (operation, reply) = started(work);
    let Operation::ForwardBackward(pass) = operation else { unreachable!("a pass") };
    assert_eq!((pass.run, pass.forward_only), (RunId::new("s:train:0"), true));
    let result = ForwardBackwardResult { outputs: vec![], metrics: [("loss:sum".to_owned(), 0.5)].into() };
    let (outcome, _) = reported(reply.finish(Ok(OpResult::ForwardBackward(result))));
    let Outcome::Succeeded { encoding: Encoding::Protobuf, payload } = outcome else { unreachable!("a result") };
    assert_eq!(proto::ForwardBackwardOutput::decode(payload).unwrap().metrics["loss:sum"], 0.5);
}

#[test]
fn another_operations_result_is_a_fault_of_the_service() {
    let (_, reply) = started(sampling(Some(session(None, None))));
    let (outcome, effects) = reported(reply.finish(Ok(OpResult::RunReady)));
    assert!(matches!(outcome, Outcome::Failed(error) if error.category == trainyard_protocol::Category::Server));
    assert!(effects.is_empty());
}

/// Nobody predicts the placeholders of an image.
#[test]
fn prompt_logprobs_of_images_are_left_out() {
    let work = sampling(Some(session(None, None)));
    let Ok(Payload::Sample { mut sample, .. }) = Payload::decode(&work.payload) else { unreachable!() };
    let image = image(7, Size::new(64, 32));
    sample.prompt = vec![1, 90, 90, 2];
    sample.images = vec![ImageSpan { start: 1, tokens: 2, image: image.clone() }];
    let undecoded = PreparedContent::Sample { sample: sample.clone(), images: DecodedImages::new() };
    let waiting = Work { decoded: Decoded::new(undecoded), ..work.clone() };
    let refused = dispatch(waiting, &workspace()).err().unwrap();
    assert_eq!(refused.category, trainyard_protocol::Category::Server, "no engine serves \"m\"");
    let vision = model_with_images().vision.unwrap();
    let pixels = decode(&image.data, image.format, &Limits::default()).unwrap();
    let patches = Preprocessor::from_json(&vision.preprocessor).unwrap().patches(&pixels, image.counted).unwrap();
    let images: DecodedImages = [(image.digest, Arc::new(patches))].into();
    let (operation, reply) =
        started(Work { decoded: Decoded::new(PreparedContent::Sample { sample, images: images.clone() }), ..work });
    let Operation::Sample(operation) = operation else { unreachable!() };
    assert_eq!(operation.images, images);
    let result = SampleResult {
        sequences: Vec::new(),
        prompt_logprobs: Some(vec![f32::NAN, -1.0, -2.0, -3.0]),
        topk_prompt_logprobs: None,
        target_prompt_logprobs: None,
        prompt_alt_tokens: None,
        prompt_cache_hit_tokens: 0,
    };
    let (outcome, _) = reported(reply.finish(Ok(OpResult::Sample(result))));
    let Outcome::Succeeded { payload, .. } = outcome else { unreachable!("{outcome:?}") };
    let found = trainyard_wire::sampling::decode_result(&payload).unwrap().prompt_logprobs.unwrap();
    let shown: Vec<_> = found.iter().map(|logprob| (!logprob.is_nan()).then_some(*logprob)).collect();
    assert_eq!(shown, [None, None, None, Some(-3.0)]);
}

//! Mutated inputs for everything that decodes what clients send. For every input, decoding returns a value or an error
//! that a user understands. It never panics, and it never holds much more than the input's size.
//!
//! The inputs are the same on every run; `FUZZ_INPUTS=1000000 cargo test -p trainyard-server --lib fuzz` tries more.
//! The loaders of weights have their own such tests (`gpu-runtime/src/load/tests/hostile`).
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use trainyard_age::Recipient;
use trainyard_chat::openai::responses;
use trainyard_protocol::{
    CheckpointName, LoraSpec, ModelHead, OpError, Optimizer, RawBatch, RunSpec, SessionId, TinkerPath,
};
use trainyard_test_support::heap;
use trainyard_test_support::mutate::{self, Corpus};
use trainyard_wire::payload::Payload;
use trainyard_wire::tensor::MAX_EXPANDED_ELEMENTS;
use trainyard_wire::{
    admin, agents, anthropic, auth, checkpoint_search, client, copies, custom_loss, futures, images, json, limits,
    models, openai, proto, provenance, results, sampling, session_search, sessions, training, uploads, weights,
};

use crate::jwt::{self, Expected, PublicKeys, SigningKey, Unverified};

/// Bytes that a decoder may hold for each byte of its input.
const PER_BYTE: usize = 512;
/// Bytes that a decoder may hold for any input: sparse tensors expand to at most this many elements.
const FIXED: usize = (1 << 20) + 2 * 8 * MAX_EXPANDED_ELEMENTS;

/// Calls a decoder with each mutation of a corpus.
fn fuzz(corpus: &str, decode: impl Fn(&[u8])) {
    mutate::each(corpus, |input| {
        let ((), peak) = heap::peak(|| decode(input));
        let most = FIXED + PER_BYTE * input.len();
        assert!(peak <= most, "{peak} bytes held at once for {} bytes, at most {most}: {input:?}", input.len());
    });
}

/// Checks that an error is the user's and has a text that fits into a log.
fn understood<T>(result: Result<T, OpError>) -> Option<T> {
    result
        .inspect_err(|error| {
            assert_eq!(error.category, trainyard_protocol::Category::User, "{error}");
            assert!(!error.message.is_empty());
        })
        .ok()
}

/// What a model with a tower accepts.
fn image_rules() -> images::ImageRules {
    images::ImageRules::new(&crate::engine::testing::model_with_images(), images::ImageLimits::default())
}

/// Stores, reads and checks a training request, as the server does between its decoding and its execution.
fn train(message: proto::ForwardBackwardRequest) {
    let stored = training::encode(&message);
    assert_eq!(training::encode(&training::decode(stored.clone()).unwrap()), stored, "it is stored as it was read");
    let rules = image_rules();
    let Some(batch) = understood(training::batch(message.clone(), &rules)) else { return };
    check(&batch);
    if provenance::applies(&message) {
        resolve(message, batch);
    }
}

fn check(batch: &RawBatch) {
    for datum in &batch.data {
        for (name, tensor) in &datum.loss_fn_inputs {
            assert_eq!(tensor.shape.iter().product::<usize>(), tensor.len(), "{name}");
        }
    }
    let extents = trainyard_protocol::ModelExtents { vocab_size: 100, context: 1_000 };
    let _ = understood(trainyard_gpu_runtime::loss::prepare_batch(batch, extents));
}

fn resolve(mut message: proto::ForwardBackwardRequest, mut batch: RawBatch) {
    let Some(mut found) = understood(provenance::Provenance::read(&message, &batch)) else { return };
    let sequence = proto::SampledSequence {
        tokens: trainyard_wire::tensor::token_bytes(&[3, 4]),
        logprobs: Some(trainyard_wire::tensor::f32_bytes(&[-1.0, -2.0])),
        ..proto::SampledSequence::default()
    };
    let record = proto::SampleResponse { sequences: vec![sequence], ..proto::SampleResponse::default() };
    let record = Bytes::from(prost::Message::encode_to_vec(&record));
    for id in found.requests() {
        if understood(found.resolve(&id, Some(&record), &batch)).is_none() {
            return;
        }
    }
    if understood(found.apply(&mut message, &mut batch)).is_some() {
        // As texts, because NaN does not equal itself.
        assert_eq!(format!("{:?}", training::batch(message, &image_rules())), format!("{:?}", Ok::<_, OpError>(batch)));
    }
}

#[test]
fn training_requests_in_protobuf() {
    fuzz("protobuf", |input| {
        let bytes = Bytes::copy_from_slice(input);
        let _ = training::proto_ids(&bytes);
        if let Some(message) = understood(training::decode(bytes)) {
            train(message);
        }
    });
}

#[test]
fn stored_results() {
    fuzz("results", |input| {
        let bytes = Bytes::copy_from_slice(input);
        if let Ok(json) = results::to_json(&bytes) {
            serde_json::from_slice::<serde_json::Value>(&json).unwrap();
        }
    });
}

fn spec() -> RunSpec {
    let lora = LoraSpec::on_all(8, 1);
    RunSpec { base_model: "m".to_owned(), lora: Some(lora), optimizer: Optimizer::AdamW, head: ModelHead::Unembedding }
}

fn read<T: DeserializeOwned>(input: &[u8]) -> Option<T> {
    understood(json::parse(input))
}

/// Checks that a payload can be stored and read again.
fn stored(payload: Result<Payload, OpError>) {
    if let Some(payload) = understood(payload) {
        Payload::decode(&payload.encode().unwrap()).unwrap();
        payload.identity().unwrap();
    }
}

/// Decodes the body of a request that a worker executes.
fn executed(input: &[u8]) {
    let _ = json::training_ids(input);
    if let Some(body) = read::<training::ForwardBackwardBody>(input) {
        understood(body.into_proto()).into_iter().for_each(train);
    }
    if let Some(body) = read::<sampling::SampleRequest>(input) {
        let rules = image_rules();
        let sample = understood(body.into_sample(&mut images::RequestImages::new(&rules), || 7));
        stored(
            sample
                .ok_or_else(|| OpError::user("refused"))
                .map(|(sample, server_seed)| Payload::Sample { sample: Box::new(sample), server_seed }),
        );
    }
    if let Some(body) = read::<models::CreateModelRequest>(input) {
        stored(body.payload(|| 7).map(|(_, payload)| payload));
    }
    read::<models::OptimStepRequest>(input).into_iter().for_each(|body| stored(body.payload()));
    read::<weights::SaveWeightsRequest>(input).into_iter().for_each(|body| stored(body.payload(spec())));
    read::<weights::SaveWeightsExternalRequest>(input).into_iter().for_each(|body| stored(body.payload(spec())));
    let session = SessionId::new("s");
    let sampler = read::<weights::SaveWeightsForSamplerRequest>(input);
    sampler.into_iter().for_each(|body| stored(body.payload(&session, spec())));
    if let Some(body) = read::<weights::LoadWeightsRequest>(input) {
        let _ = (understood(body.form()), understood(body.checkpoint()));
        stored(body.payload(&spec(), None, None));
    }
    let _ = read::<sessions::CreateSessionRequest>(input);
    let _ = read::<client::TelemetryRequest>(input);
    let _ = read::<futures::RetrieveFuturesRequest>(input);
    let _ = Payload::decode(input);
}

/// Decodes the body of a request that no worker executes.
fn answered(input: &[u8]) {
    let _ = (read::<openai::ChatRequest>(input), read::<openai::CompletionRequest>(input));
    if let Some(body) = read::<openai::ResponsesRequest>(input) {
        let _ = (responses::check_unsupported(&body), responses::settings(&body));
    }
    let _ = (read::<anthropic::MessagesRequest>(input), read::<anthropic::CountTokensRequest>(input));
    if let Some(body) = read::<custom_loss::CreateCustomLossRequest>(input)
        && let Some(definition) = understood(body.definition())
    {
        custom_loss::read(&definition).unwrap();
    }
    let _ = (
        read::<sampling::CreateSamplingSessionRequest>(input),
        read::<sampling::JoinSamplingSessionRequest>(input),
        read::<copies::CopyWeightsRequest>(input),
    );
    let _ = (read::<uploads::UploadStartRequest>(input), read::<uploads::UploadFinishRequest>(input));
    let _ = (
        read::<session_search::SessionSearchRequest>(input),
        read::<checkpoint_search::CheckpointSearchRequest>(input),
    );
    let _ = (read::<sessions::FinishRequest>(input), read::<sessions::HeartbeatRequest>(input));
    let _ = (read::<admin::CreateKeyRequest>(input), read::<admin::CreateUserRequest>(input));
    let _ = (read::<admin::ChangeUserRequest>(input), read::<admin::CreateProjectRequest>(input));
    let _ = (read::<admin::CreateOrganisationRequest>(input), read::<admin::ChangeOrganisationRequest>(input));
    let _ = (read::<limits::ChangeLimitsRequest>(input), read::<session_search::SessionProjectRequest>(input));
    let _ = (read::<agents::CreateAgentSessionRequest>(input), read::<agents::AgentRewardRequest>(input));
    let _ = (read::<futures::RetrieveFutureRequest>(input), read::<futures::CancelFutureRequest>(input));
    let _ = (read::<client::ClientConfigRequest>(input), read::<auth::AuthTokenRequest>(input));
    let _ = read::<models::GetInfoRequest>(input);
    let _ = (read::<weights::TtlRequest>(input), read::<weights::WeightsInfoRequest>(input));
}

/// Bodies are read above by name, so a new one could be forgotten.
#[test]
fn every_body_is_decoded() {
    let here = include_str!("fuzz.rs");
    let mut folders = vec![PathBuf::from("../wire/src")];
    let mut bodies = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let structs = text.lines().filter_map(|line| line.strip_prefix("pub struct ")?.split([' ', '(']).next());
            for name in structs.filter(|name| name.ends_with("Request")) {
                bodies += 1;
                assert!(
                    here.contains(&format!("::{name}>")) || here.contains(&format!("::{name})")),
                    "{name} of {path:?}"
                );
            }
        }
    }
    assert!(bodies > 30, "{bodies}");
}

#[test]
fn bodies_in_json() {
    fuzz("json", |input| {
        executed(input);
        answered(input);
    });
}

/// Mutates values in JSON bodies.
#[test]
fn values_in_bodies() {
    Corpus::new("json").each_value(|value| {
        let input = value.to_string();
        executed(input.as_bytes());
        answered(input.as_bytes());
    });
}

/// Mutates tokens and published keys. No mutation of a valid token verifies, unless it is the same token.
#[test]
fn tokens_and_published_keys() {
    jwt::initialise();
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let claims = serde_json::json!({"iss": "them", "aud": "us", "sub": "ann", "exp": 2_000_000_000});
    let good = key.sign(&claims).unwrap();
    let keys = PublicKeys::new(vec![key.public_key()]);
    let expected = Expected { issuer: "them", audience: "us", leeway: 0, now: 1_700_000_000 };
    let verify = |text: &str| {
        let token = Unverified::parse(text)?;
        token.verify(keys.find(token.kid.as_deref())?, expected)
    };
    assert_eq!(verify(&good).unwrap()["sub"], "ann");
    fuzz("tokens", |input| {
        let text = String::from_utf8_lossy(input);
        // The corpus names the place of what this key signs.
        let spliced = text.replace("GOOD", &good).replace("KID", key.kid());
        for text in [&*text, &spliced] {
            if let Ok(claims) = verify(text) {
                assert_eq!(claims["sub"], "ann", "{text}");
            }
        }
        if let Ok(set) = serde_json::from_slice(input) {
            let _ = PublicKeys::from_set(&set);
        }
    });
}

#[test]
fn paths_and_recipients() {
    fuzz("paths", |input| {
        let text = String::from_utf8_lossy(input);
        if let Some(path) = understood(text.parse::<TinkerPath>()) {
            assert_eq!(path.to_string(), text);
            // It is the name of a folder.
            let name = path.name.as_str();
            assert!(!name.starts_with('.') && !name.contains(['/', '\\', '\0']), "{name:?}");
            assert_eq!(name.parse::<CheckpointName>().unwrap(), path.name);
        }
        let _ = text.parse::<Recipient>();
    });
}

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use serde_json::json;
use trainyard_protocol::{Sample, SamplerSource, SamplingControls, SamplingParams, SessionId, Stop};

use super::*;
use crate::backend::{Dtype, HostBackend};
use crate::engine::WeightStorage;
use crate::engine::rank_groups::RankGroups;
use crate::load::load;
use crate::stop::tests::detokenizer;

/// A base model with a tokenizer whose first ids are bytes.
fn base() -> Arc<Base<HostBackend>> {
    let mut source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama")).unwrap();
    let tokenizer = detokenizer().to_json().unwrap();
    source.files.insert("tokenizer.json".to_owned(), tokenizer.to_string().into_bytes());
    let backend = HostBackend::new(1).with_dtype(Dtype::F32);
    Arc::new(Base::new(&backend, "m".to_owned(), source, &RankGroups::default(), &[], WeightStorage::Widened).unwrap())
}

#[test]
fn a_model_with_an_unreadable_tokenizer_is_served_without_text() {
    let mut source = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/llama")).unwrap();
    let future = json!({"normalizer": {"type": "FutureNormalizer"}}).to_string().into_bytes();
    source.files.insert("tokenizer.json".to_owned(), future);
    let backend = HostBackend::new(1).with_dtype(Dtype::F32);
    let base =
        Base::new(&backend, "m".to_owned(), source, &RankGroups::default(), &[], WeightStorage::Widened).unwrap();
    assert!(base.detokenizer.is_none());
    let refused = base.grammar("{}", None).err().unwrap();
    assert!(refused.message.contains("no tokenizer.json that can be read"), "{refused}");
}

fn sample(base: &Arc<Base<HostBackend>>, id: &str, tenant: &str, schema: &str) -> LoadedSample<HostBackend> {
    let controls = SamplingControls { json_schema: Some(schema.to_owned()), ..SamplingControls::default() };
    let params = SamplingParams {
        max_tokens: Some(4),
        seed: 3,
        stop: Stop::Nothing,
        temperature: 1.0,
        top_k: None,
        top_p: 1.0,
        controls,
    };
    let sample = Sample {
        prompt: vec![1, 2],
        num_samples: 1,
        params,
        prompt_logprobs: false,
        prompt_logprobs_last_n: None,
        topk_prompt_logprobs: 0,
        topk_sample_logprobs: 0,
        target_prompt_logprobs: None,
        prompt_alt_tokens_k: 0,
        images: Vec::new(),
    };
    let source = SamplerSource::Base { model: "m".to_owned() };
    LoadedSample {
        id: RequestId::new(id),
        share: TenantShare::new(tenant),
        operation: SampleOperation { session: SessionId::new("s"), source, sample, images: Default::default() },
        weights: SamplerWeights::of_base(Arc::clone(base)),
    }
}

/// The ids that are resolved, in order, and whether each has a grammar.
fn drain(compiles: &mut SchemaCompiles<HostBackend>) -> Vec<(String, bool)> {
    let mut done = Vec::new();
    while !compiles.is_idle() {
        let resolved = compiles.advance(Duration::from_millis(50));
        done.extend(resolved.into_iter().map(|(sample, grammar)| (sample.id.to_string(), grammar.is_ok())));
    }
    done
}

fn schema(number: usize) -> String {
    json!({"type": "object", "properties": {format!("a{number}"): {"type": "string"}}}).to_string()
}

#[test]
fn samples_with_one_schema_wait_for_one_compilation() {
    let (base, mut compiles) = (base(), SchemaCompiles::new());
    for id in ["a", "b", "c"] {
        compiles.push(sample(&base, id, "t", &schema(0)));
    }
    compiles.push(sample(&base, "other", "t", &schema(1)));
    let done = drain(&mut compiles);
    assert_eq!(done.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b", "c", "other"]);
    assert!(done.iter().all(|(_, compiled)| *compiled));
    // It is kept: no thread has to do it again.
    compiles.push(sample(&base, "d", "t", &schema(0)));
    assert_eq!(compiles.advance(Duration::ZERO).len(), 1);
    for number in 2..2 + KEPT {
        compiles.push(sample(&base, "x", "t", &schema(number)));
    }
    drain(&mut compiles);
    assert_eq!(compiles.compiled.len(), KEPT);
    compiles.push(sample(&base, "e", "t", &schema(0)));
    assert!(compiles.advance(Duration::ZERO).is_empty());
}

#[test]
fn tenants_take_turns() {
    let (base, mut compiles) = (base(), SchemaCompiles::new());
    for number in 0..6 {
        compiles.push(sample(&base, &format!("a{number}"), "first", &schema(number)));
    }
    assert!(compiles.advance(Duration::ZERO).is_empty());
    compiles.push(sample(&base, "b0", "second", &schema(10)));
    compiles.push(sample(&base, "b1", "second", &schema(11)));
    let done: Vec<String> = drain(&mut compiles).into_iter().map(|(id, _)| id).collect();
    let place = |id: &str| done.iter().position(|other| other == id).unwrap();
    assert!(place("b0") <= 2 && place("b1") <= 4, "{done:?}");
    assert!(compiles.turns.is_empty());
}

#[test]
fn refusals_and_cancelled_samples_end_the_wait() {
    let (base, mut compiles) = (base(), SchemaCompiles::new());
    compiles.push(sample(&base, "bad", "t", r#"{"type": "foo"}"#));
    compiles.push(sample(&base, "good", "t", &schema(0)));
    compiles.push(sample(&base, "gone", "t", &schema(1)));
    compiles.cancel(&BTreeSet::from([RequestId::new("gone")]));
    assert_eq!(drain(&mut compiles), [("bad".to_owned(), false), ("good".to_owned(), true)]);
    // One that is cancelled while it is compiled changes nothing for the next.
    compiles.push(sample(&base, "gone", "t", &schema(2)));
    assert!(compiles.advance(Duration::ZERO).is_empty());
    compiles.cancel(&BTreeSet::from([RequestId::new("gone")]));
    compiles.push(sample(&base, "next", "t", &schema(3)));
    assert_eq!(drain(&mut compiles), [("next".to_owned(), true)]);
}

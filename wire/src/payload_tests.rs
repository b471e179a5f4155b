#![allow(clippy::unwrap_used, reason = "tests")]
use proptest::prelude::*;
use trainyard_protocol::{LoraSpec, ModelHead, Optimizer, SamplingParams, Stop};

use super::*;

fn spec(seed: u64) -> RunSpec {
    let lora = LoraSpec::on_all(4, seed);
    RunSpec { base_model: "m".to_owned(), lora: Some(lora), optimizer: Optimizer::AdamW, head: ModelHead::Unembedding }
}

fn sample(seed: u64, server_seed: bool) -> Payload {
    let params = SamplingParams {
        max_tokens: None,
        seed,
        stop: Stop::Default,
        temperature: 0.7,
        top_k: None,
        top_p: 1.0,
        controls: Default::default(),
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
    Payload::Sample { sample: Box::new(sample), server_seed }
}

fn ephemeral(seq_id: i64, kind: EphemeralKind) -> Payload {
    Payload::EphemeralSampler {
        session: SessionId::new("s"),
        sampling_session_seq_id: seq_id,
        base_model: "m".to_owned(),
        kind,
    }
}

#[test]
fn specs_without_a_placement_on_latents_are_of_runs_that_adapt_all_of_attention() {
    let mut stored = serde_json::to_value(spec(1)).unwrap();
    assert_eq!(stored["lora"].as_object_mut().unwrap().remove("latent_up"), Some(false.into()));
    let read: RunSpec = serde_json::from_value(stored).unwrap();
    assert!(read.lora.unwrap().latent_up);
}

#[test]
fn payloads_survive_storage() {
    let save = NamedSave {
        name: "a".to_owned(),
        overwrite: true,
        ttl_seconds: Some(3600),
        user_metadata: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        spec: spec(1),
        age_recipients: vec!["age1".to_owned()],
    };
    let adam =
        AdamParams { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0.1, grad_clip_norm: 0.0 };
    for payload in [
        Payload::CreateModel { spec: spec(u64::MAX), server_seed: true },
        Payload::LoadWeights {
            path: "tinker://r/weights/a".to_owned(),
            with_optimizer: true,
            create: Some(spec(2)),
            reader: None,
            checkpoint_base: None,
        },
        Payload::OptimStep { params: adam },
        Payload::SaveWeights(save.clone()),
        Payload::SaveWeightsForSampler(save.clone()),
        Payload::SaveWeightsExternal(save),
        ephemeral(3, EphemeralKind::Inflight),
        sample(u64::MAX, false),
    ] {
        assert_eq!(Payload::decode(&payload.encode().unwrap()).unwrap(), payload);
    }
}

#[test]
fn identities_leave_out_what_a_retry_changes() {
    let same = |a: &Payload, b: &Payload| a.identity().unwrap() == b.identity().unwrap();
    let create = |seed, server_seed| Payload::CreateModel { spec: spec(seed), server_seed };
    assert!(same(&create(1, true), &create(2, true)));
    assert!(!same(&create(1, false), &create(2, false)));
    assert!(!same(&create(0, false), &create(0, true)));
    // A retry after an update from a release whose adapters are on all of latent attention.
    let mut former = spec(1);
    former.lora.as_mut().unwrap().latent_up = true;
    let former = Payload::CreateModel { spec: former, server_seed: false };
    assert!(same(&create(1, false), &former));
    assert!(!String::from_utf8_lossy(&former.identity().unwrap()).contains("latent_up"));
    assert!(same(&sample(1, true), &sample(2, true)));
    assert!(!same(&sample(1, false), &sample(2, false)));
    assert!(same(&ephemeral(1, EphemeralKind::Snapshot), &ephemeral(2, EphemeralKind::Snapshot)));
    assert!(!same(&ephemeral(1, EphemeralKind::Snapshot), &ephemeral(1, EphemeralKind::Inflight)));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Payload::decode(&bytes);
    }
}

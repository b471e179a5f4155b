#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use trainyard_protocol::Optimizer;

use super::*;

fn spec() -> RunSpec {
    RunSpec {
        base_model: "m".to_owned(),
        lora: None,
        optimizer: Optimizer::AdamW,
        head: trainyard_protocol::ModelHead::Unembedding,
    }
}

fn read<T: DeserializeOwned>(body: Value) -> Result<T, OpError> {
    super::json::parse(body.to_string().as_bytes())
}

fn save(fields: Value) -> Result<Payload, OpError> {
    let mut body = json!({"model_id": "s:train:0", "seq_id": 5, "path": "a", "overwrite": false});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    read::<SaveWeightsRequest>(body)?.payload(spec())
}

#[test]
fn saves_check_name_and_lifetime() {
    let payload = save(json!({"ttl_seconds": 3600, "user_metadata": {"x": "y"}})).unwrap();
    let Payload::SaveWeights(named) = payload else { panic!("a save") };
    assert_eq!((named.name.as_str(), named.ttl_seconds, named.overwrite), ("a", Some(3600), false));
    assert_eq!(named.user_metadata["x"], "y");
    let refused = |fields| save(fields).unwrap_err().message;
    assert!(refused(json!({"path": "../a"})).starts_with("path: "));
    assert!(refused(json!({"path": "a/b"})).starts_with("path: "));
    assert!(refused(json!({"ttl_seconds": 60})).starts_with("ttl_seconds"));
    assert!(refused(json!({"ttl_seconds": 400_000_000})).starts_with("ttl_seconds"));
    assert!(refused(json!({"user_metadata": {"x": 1}})).starts_with("user_metadata.x: invalid type"));
}

fn sampler(fields: Value) -> Result<Payload, OpError> {
    let mut body = json!({"model_id": "s:train:0", "seq_id": 5});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    read::<SaveWeightsForSamplerRequest>(body)?.payload(&SessionId::new("s"), spec())
}

#[test]
fn samplers_are_named_or_ephemeral() {
    assert!(matches!(sampler(json!({"path": "a"})).unwrap(), Payload::SaveWeightsForSampler(_)));
    let ephemeral = sampler(json!({"sampling_session_seq_id": 3, "kind": "inflight"})).unwrap();
    assert_eq!(
        ephemeral,
        Payload::EphemeralSampler {
            session: SessionId::new("s"),
            sampling_session_seq_id: 3,
            base_model: "m".to_owned(),
            kind: EphemeralKind::Inflight,
        }
    );
    let refused = |fields| sampler(fields).unwrap_err().message;
    assert!(refused(json!({})).starts_with("path: missing"));
    assert!(refused(json!({"path": "a", "sampling_session_seq_id": 0})).starts_with("sampling_session_seq_id"));
    assert!(refused(json!({"sampling_session_seq_id": -1})).starts_with("sampling_session_seq_id"));
    assert!(refused(json!({"path": "a", "kind": "inflight"})).starts_with("kind"));
    assert!(refused(json!({"path": "a", "kind": "other"})).starts_with("kind"));
}

#[test]
fn recipients_of_an_export_are_checked_and_kept() {
    let export = |recipients: Value| {
        let body = json!({"model_id": "r", "seq_id": 1, "path": "a", "age_encryption_recipients": recipients});
        read::<SaveWeightsExternalRequest>(body).unwrap().payload(spec())
    };
    let known = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
    for (recipients, expected) in [(json!([known]), vec![known.to_owned()]), (json!([]), vec![]), (json!(null), vec![])]
    {
        let Payload::SaveWeightsExternal(save) = export(recipients).unwrap() else { unreachable!() };
        assert_eq!(save.age_recipients, expected);
    }
    let error = export(json!([known, "age1x"])).unwrap_err();
    assert!(error.message.starts_with("age_encryption_recipients[1]: expected an age recipient, age1… in lower case"));
    assert!(error.message.ends_with("found \"age1x\""), "{error}");
}

fn load(fields: Value) -> LoadWeightsRequest {
    let mut body = json!({"path": "tinker://r/weights/a", "optimizer": true});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    read(body).unwrap()
}

#[test]
fn loads_create_a_run_or_change_one() {
    let create = load(json!({"session_id": "s", "model_seq_id": 2}));
    assert_eq!(create.form().unwrap(), LoadForm::Create { session: SessionId::new("s"), model_seq_id: 2 });
    let payload = create.payload(&spec(), None, None).unwrap();
    let path = "tinker://r/weights/a".to_owned();
    assert_eq!(
        payload,
        Payload::LoadWeights { path, with_optimizer: true, create: Some(spec()), reader: None, checkpoint_base: None }
    );
    let existing = load(json!({"model_id": "s:train:0", "seq_id": 1}));
    assert!(matches!(existing.payload(&spec(), None, None).unwrap(), Payload::LoadWeights { create: None, .. }));
    for mixture in [json!({}), json!({"session_id": "s"}), json!({"session_id": "s", "model_seq_id": 0, "seq_id": 1})] {
        assert!(load(mixture).form().is_err());
    }
}

#[test]
fn wrong_loads_are_named() {
    let refused = |fields: Value| {
        let mut request = json!({"session_id": "s", "model_seq_id": 0});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        load(request).payload(&spec(), None, None).unwrap_err().message
    };
    assert!(refused(json!({"path": "a"})).starts_with("path"));
    assert!(refused(json!({"path": "tinker://r/sampler_weights/a"})).contains("training checkpoint"));
    assert!(refused(json!({"optimizer_config": {"type": "dimuon"}})).starts_with("optimizer_config.type"));
}

#[test]
fn a_ttl_is_null_or_a_number_but_not_absent() {
    assert_eq!(read::<TtlRequest>(json!({"ttl_seconds": null})).unwrap().ttl_seconds, None);
    assert_eq!(read::<TtlRequest>(json!({"ttl_seconds": 7200})).unwrap().ttl_seconds, Some(7200));
    assert!(read::<TtlRequest>(json!({})).unwrap_err().message.contains("ttl_seconds"));
}

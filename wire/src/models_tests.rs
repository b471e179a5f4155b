#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use serde_json::json;

use super::*;

fn create(lora: Value) -> Result<(RunSpec, Payload), OpError> {
    create_with(lora, Value::Null)
}

fn create_with(lora: Value, metadata: Value) -> Result<(RunSpec, Payload), OpError> {
    let body = json!({"session_id": "s", "model_seq_id": 0, "base_model": "m", "lora_config": lora,
        "user_metadata": metadata, "optimizer_config": {"type": "adamw"}, "type": "create_model"});
    json::parse::<CreateModelRequest>(body.to_string().as_bytes())?.payload(|| 77)
}

#[test]
fn adapters_have_defaults_and_random_seeds() {
    let (spec, payload) = create(json!({"rank": 8})).unwrap();
    let lora = spec.lora.clone().unwrap();
    assert_eq!((lora.rank, lora.seed), (8, 77));
    assert!(lora.train_unembed && lora.train_mlp && lora.train_attn);
    assert_eq!(payload, Payload::CreateModel { spec, server_seed: true });
    let (spec, payload) = create(json!({"rank": 8, "seed": -1, "train_mlp": false})).unwrap();
    assert_eq!(spec.lora.as_ref().unwrap().seed, (1 << 63) - 1);
    assert!(matches!(payload, Payload::CreateModel { server_seed: false, .. }));
}

#[test]
fn metadata_set_the_scale_of_an_adapter() {
    let create = |lora, metadata| create_with(lora, metadata).map(|(spec, _)| spec);
    let metadata = json!({"trainyard.lora_alpha": "16", "trainyard.rslora": "true"});
    assert_eq!(create(json!({"rank": 4}), metadata.clone()).unwrap().lora.unwrap().alpha, 32.0);
    let refused = create(json!({"rank": 0}), metadata).unwrap_err().message;
    assert_eq!(refused, "user_metadata.trainyard.lora_alpha: the model trains all parameters, without an adapter");
    let refused = create(json!({"rank": 4}), json!({"trainyard.lora_alpha": "-1"})).unwrap_err().message;
    assert!(refused.starts_with("user_metadata.trainyard.lora_alpha: \"-1\" is not"), "{refused}");
}

#[test]
fn no_adapter_or_rank_0_trains_everything() {
    assert_eq!(create(Value::Null).unwrap().0.lora, None);
    assert_eq!(create(json!({"rank": 0})).unwrap().0.lora, None);
}

#[test]
fn wrong_adapters_and_optimizers_are_named() {
    let refused = |lora| create(lora).unwrap_err().message;
    assert!(refused(json!({"rank": -1})).starts_with("lora_config.rank"));
    assert!(refused(json!({"rank": 100_000})).starts_with("lora_config.rank"));
    assert!(refused(json!({"rank": "8"})).starts_with("lora_config.rank: invalid type"));
    assert!(refused(json!({"rank": 8, "alpha": 1})).contains("alpha"));
    let none = json!({"rank": 8, "train_mlp": false, "train_attn": false, "train_unembed": false});
    assert!(refused(none).contains("At least one of train_unembed, train_mlp, train_attn must be True"));
    let dimuon = OptimizerConfig { kind: "dimuon".to_owned() };
    assert!(dimuon.optimizer().unwrap_err().message.contains("\"dimuon\""));
}

fn step(fields: Value) -> Result<Payload, OpError> {
    let mut body = json!({"model_id": "s:train:0", "seq_id": 2, "type": "optim_step"});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json::parse::<OptimStepRequest>(body.to_string().as_bytes())?.payload()
}

#[test]
fn steps_have_the_defaults_of_the_protocol() {
    let Payload::OptimStep { params } = step(json!({"adam_params": {}})).unwrap() else { panic!("a step") };
    assert_eq!((params.learning_rate, params.beta1, params.beta2), (1e-4, 0.9, 0.95));
    assert_eq!((params.eps, params.weight_decay, params.grad_clip_norm), (1e-12, 0.0, 0.0));
}

#[test]
fn wrong_steps_are_named() {
    let refused = |fields| step(fields).unwrap_err().message;
    assert!(refused(json!({})).contains("adam_params"));
    assert!(refused(json!({"optimizer_params": {"type": "dimuon", "learning_rate": 1.0}})).contains("\"dimuon\""));
    assert!(refused(json!({"adam_params": {}, "optimizer_params": {}})).contains("optimizer_params"));
    assert!(refused(json!({"adam_params": {"learning_rate": -1.0}})).starts_with("adam_params.learning_rate"));
    assert!(refused(json!({"adam_params": {"learning_rate": 1e300}})).starts_with("adam_params.learning_rate"));
    assert!(refused(json!({"adam_params": {"beta1": 1.0}})).starts_with("adam_params.beta1"));
    assert!(refused(json!({"adam_params": {"beta2": -0.1}})).starts_with("adam_params.beta2"));
    assert!(refused(json!({"adam_params": {"eps": "x"}})).starts_with("adam_params.eps: invalid type"));
    assert!(refused(json!({"adam_params": {"lr": 1.0}})).contains("lr"));
}

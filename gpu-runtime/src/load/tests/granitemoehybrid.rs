//! Granite 4: factors, layers, the recurrence and refusals by its configuration.

use serde_json::{Map, Value, json};

use super::*;
use crate::config::{RecurrentRule, RecurrentShape};
use crate::load::describe_json;

fn with(changes: &[(&str, Value)]) -> Result<ModelConfig, String> {
    let mut config: Map<String, Value> = config_of("granitemoehybrid");
    for (key, value) in changes {
        config.insert((*key).to_owned(), value.clone());
    }
    describe_json("config.json", &Value::Object(config).to_string()).map_err(|error| error.to_string())
}

#[test]
fn factors_are_those_of_the_configuration() {
    let of = |c: &ModelConfig| [c.embedding_scale, c.residual_scale, c.attention_scale, c.logit_scale];
    assert_eq!(of(&with(&[]).unwrap()), [3.0, 0.5, 0.1, 0.5]);
    let factors = ["embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"];
    let unwritten = factors.map(|key| (key, Value::Null));
    assert_eq!(of(&with(&unwritten).unwrap()), [1.0; 4]);
    let refusal = with(&[("logits_scaling", json!(0))]).unwrap_err();
    assert!(refusal.contains("logits_scaling is 0, expected a number other than 0"), "{refusal}");
}

#[test]
fn layers_and_the_recurrence_are_those_of_the_configuration() {
    let expected = RecurrentShape {
        rule: RecurrentRule::Mamba2 { limits: (0.0, f32::INFINITY) },
        key_heads: 1,
        value_heads: 8,
        key_dim: 16,
        value_dim: 16,
        kernel: 4,
    };
    for (key, kinds) in [
        ("layer_types", json!(["mamba", "attention", "linear_attention"])),
        ("layers_block_type", json!(["mamba", "full_attention", "mamba"])),
    ] {
        let c = with(&[("layer_types", Value::Null), (key, kinds), ("mamba_d_head", json!("auto"))]).unwrap();
        assert_eq!(
            c.blocks.iter().map(|b| b.recurrence()).collect::<Vec<_>>(),
            [Some(&expected), None, Some(&expected)]
        );
        assert_eq!(c.blocks[1].attention().unwrap().rope, None);
    }
    let rotated = with(&[("position_embedding_type", json!("rope"))]).unwrap();
    assert_eq!((rotated.blocks[1].attention().unwrap().rope, rotated.ropes.len()), (Some(0), 1));
    assert_eq!(with(&[("layer_types", Value::Null)]).unwrap().attention_layers(), 0);
}

#[test]
fn experts_are_those_of_the_configuration() {
    let of = |count: Value, chosen: Value| with(&[("num_local_experts", count), ("num_experts_per_tok", chosen)]);
    let c = of(json!(4), json!(3)).unwrap();
    let experts = c.blocks[2].experts.as_ref().unwrap();
    assert_eq!((experts.count, experts.rule.per_token, experts.width, experts.shared), (4, 3, 160, Some(48)));
    // Both numbers have defaults.
    let c = of(Value::Null, Value::Null).unwrap();
    let experts = c.blocks[0].experts.as_ref().unwrap();
    assert_eq!((experts.count, experts.rule.per_token), (8, 2));
    assert!(of(json!(4), json!(5)).unwrap_err().contains("num_local_experts is 4 and num_experts_per_tok 5"));
    assert!(with(&[]).unwrap().blocks.iter().all(|block| block.experts.is_none()));
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    for (key, value, expected) in [
        ("num_local_experts", json!(4), "num_experts_per_tok is zero"),
        ("mamba_proj_bias", json!(true), "mamba_proj_bias true (supported: false)"),
        ("mamba_conv_bias", json!(false), "mamba_conv_bias false (supported: true)"),
        ("hidden_act", json!("gelu"), "hidden_act \"gelu\" (supported: silu)"),
        ("position_embedding_type", json!("alibi"), "position_embedding_type \"alibi\" (supported: nope, rope)"),
        ("mamba_d_head", json!(12), "mamba_n_heads 8 of width 12 are not the 128 channels of mamba_expand"),
        ("mamba_expand", json!(1e300), "channels of mamba_expand"),
        ("mamba_n_groups", json!(3), "mamba_n_groups 3 does not divide 8 heads"),
        ("layer_types", json!(["mamba", "moe", "mamba"]), "layer type \"moe\" (supported:"),
    ] {
        let refusal = with(&[(key, value)]).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

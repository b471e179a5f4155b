//! LFM2: widths, layers and refusals by its configuration.

use serde_json::{Map, Value, json};

use super::*;
use crate::config::ConvolutionShape;
use crate::load::describe_json;

fn with(changes: &[(&str, Value)]) -> Result<ModelConfig, String> {
    let mut config: Map<String, Value> = config_of("lfm2");
    for (key, value) in changes {
        config.insert((*key).to_owned(), value.clone());
    }
    describe_json("config.json", &Value::Object(config).to_string()).map_err(|error| error.to_string())
}

#[test]
fn the_width_of_mlps_is_adjusted_as_the_reference_does() {
    let width = |changes: &[(&str, Value)]| with(changes).unwrap().intermediate_size;
    let adjusts = ("block_auto_adjust_ff_dim", json!(true));
    assert_eq!(width(&[("intermediate_size", json!(1000))]), 1000);
    // 2/3 of it is 666, and the next multiple 768.
    assert_eq!(width(&[adjusts.clone(), ("intermediate_size", json!(1000))]), 768);
    assert_eq!(width(&[adjusts.clone(), ("block_ff_dim", json!(12288)), ("intermediate_size", json!(1))]), 8192);
    let factor =
        |value: Value| [adjusts.clone(), ("intermediate_size", json!(1000)), ("block_ffn_dim_multiplier", value)];
    assert_eq!(width(&factor(json!(1.3))), 1024);
    assert_eq!(width(&factor(Value::Null)), 666);
    for (value, expected) in
        [(json!(0), "block_ffn_dim_multiplier is 0"), (json!(1e30), "block_ffn_dim_multiplier is 1")]
    {
        let refusal = with(&factor(value)).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

#[test]
fn layers_have_attention_by_types_or_by_indices() {
    let attends = |changes: &[(&str, Value)]| {
        let blocks = with(changes).unwrap().blocks;
        blocks.iter().map(|block| block.attention().is_some()).collect::<Vec<_>>()
    };
    assert_eq!(attends(&[]), [false, true, false]);
    let untyped = ("layer_types", Value::Null);
    assert_eq!(attends(&[untyped.clone(), ("full_attn_idxs", json!([0, 2]))]), [true, false, true]);
    assert_eq!(attends(&[untyped]), [true; 3]);
    let shape = ConvolutionShape { channels: 64, kernel: 3 };
    assert_eq!(with(&[]).unwrap().convolutions().collect::<Vec<_>>(), [&shape; 2]);
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    for (key, value, expected) in [
        ("conv_bias", json!(true), "conv_bias true (supported: false)"),
        ("conv_L_cache", json!(0), "conv_L_cache is zero"),
        ("layer_types", json!(["conv", "mamba", "conv"]), "layer type \"mamba\" (supported: full_attention, conv)"),
        ("layer_types", json!(["conv"]), "layer_types has 1 entries for 3 layers"),
    ] {
        let refusal = with(&[(key, value)]).unwrap_err();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

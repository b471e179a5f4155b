//! Families without experts and recurrences.

use serde_json::{Map, Value, json};

use super::architecture::{ATTENTION_BIAS, Architecture, LLAMA, Rotation};
use super::metadata::GgufFile;
use super::own::{MOST_BLOCKS, Own, extend};
use crate::config::LoadError;

pub(super) const QWEN2: Architecture = Architecture {
    name: "qwen2",
    model_type: "qwen2",
    class: "Qwen2ForCausalLM",
    interleaves_heads: false,
    tensor_settings: &[],
    ..LLAMA
};

pub(super) const QWEN3: Architecture = Architecture {
    name: "qwen3",
    model_type: "qwen3",
    class: "Qwen3ForCausalLM",
    interleaves_heads: false,
    tensor_settings: &[ATTENTION_BIAS],
    ..LLAMA
};

pub(super) const GEMMA3: Architecture = Architecture {
    name: "gemma3",
    model_type: "gemma3_text",
    class: "Gemma3ForCausalLM",
    modules: &[
        ("post_attention_norm", "post_attention_layernorm"),
        ("ffn_norm", "pre_feedforward_layernorm"),
        ("post_ffw_norm", "post_feedforward_layernorm"),
    ],
    interleaves_heads: false,
    adds_one_to_norms: true,
    tensor_settings: &[],
    settings: gemma3_settings,
    ..LLAMA
};

pub(super) const SMOLLM3: Architecture = Architecture {
    name: "smollm3",
    model_type: "smollm3",
    class: "SmolLM3ForCausalLM",
    settings: smollm3_settings,
    ..LLAMA
};

/// Phi-3, Phi-3.5 and Phi-4, with the fused projections of their folders.
pub(super) const PHI3: Architecture = Architecture {
    name: "phi3",
    model_type: "phi3",
    class: "Phi3ForCausalLM",
    modules: &[("attn_qkv", "self_attn.qkv_proj"), ("ffn_up", "mlp.gate_up_proj")],
    interleaves_heads: false,
    rotation: Rotation::Part,
    has_long_factors: true,
    tensor_settings: &[],
    settings: phi3_settings,
    ..LLAMA
};

/// OLMo 2 and OLMo 3, of which the second one has windows.
pub(super) const OLMO2: Architecture = Architecture {
    name: "olmo2",
    model_type: "olmo3",
    class: "Olmo3ForCausalLM",
    modules: &[("post_attention_norm", "post_attention_layernorm"), ("post_ffw_norm", "post_feedforward_layernorm")],
    interleaves_heads: false,
    tensor_settings: &[ATTENTION_BIAS],
    settings: olmo3_settings,
    ..LLAMA
};

/// Ministral 3, and Mistral Small 3 with images, whose text model is Mistral.
pub(super) const MISTRAL3: Architecture = Architecture {
    name: "mistral3",
    model_type: "ministral3",
    class: "Ministral3ForCausalLM",
    tensor_settings: &[],
    settings: mistral3_settings,
    ..LLAMA
};

/// Layers of the 27B model, the one whose queries are not scaled by the width of a head; files do not say so.
const GEMMA3_27B_LAYERS: u64 = 62;

fn gemma3_settings(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let read = |name: &str| json.get(name).and_then(Value::as_u64).unwrap_or(0);
    let query_scalar = match read("num_hidden_layers") {
        GEMMA3_27B_LAYERS => read("hidden_size").checked_div(read("num_attention_heads")).unwrap_or(0),
        _ => read("head_dim"),
    };
    let window = file.integer("gemma3.attention.sliding_window")?;
    let window = window.ok_or_else(|| file.malformed("metadata key gemma3.attention.sliding_window is missing"))?;
    let pattern = file.integer("gemma3.attention.sliding_window_pattern")?;
    let local = file.number("gemma3.rope.freq_base_swa")?.unwrap_or(10_000.0);
    let settings = json!({
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": query_scalar,
        "sliding_window": window,
        "sliding_window_pattern": pattern.unwrap_or(6),
        "rope_local_base_freq": local,
        "attn_logit_softcapping": file.number("gemma3.attn_logit_softcapping")?,
        "final_logit_softcapping": file.number("gemma3.final_logit_softcapping")?,
    });
    json.remove("hidden_act");
    extend(json, settings);
    Ok(())
}

/// Every fourth block has no positions; llama.cpp fixes it, and files do not say so.
fn smollm3_settings(_: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    extend(json, json!({"no_rope_layer_interval": 4, "use_sliding_window": false, "sliding_window": null}));
    Ok(())
}

/// Files have a window of 0 where there is none.
fn phi3_settings(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let window = Own { file, arch: "phi3" }.required("attention.sliding_window")?;
    json.insert("sliding_window".into(), Some(window).filter(|&window| window > 0).into());
    Ok(())
}

/// Blocks without a window stretch contexts, others do not.
fn olmo3_settings(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "olmo2" };
    let Some(window) = own.integer("attention.sliding_window")?.filter(|&window| window > 0) else {
        let key = own.key("attention.sliding_window");
        return Err(LoadError::Unsupported(format!("GGUF architecture \"olmo2\" without {key}, which is OLMo 2")));
    };
    if let Some(theta) = json.get("rope_theta").and_then(Value::as_f64) {
        own.one_of("rope.freq_base_swa", &[theta])?;
    }
    const PATTERN: &str = "attention.sliding_window_pattern";
    let layers = json.get("num_hidden_layers").and_then(Value::as_u64).unwrap_or(0);
    let slides = match own.flags(PATTERN, layers)? {
        Some(slides) => slides,
        None => {
            let period = own.integer(PATTERN)?.unwrap_or(4);
            // The last block of a period has no window; with a period of 0 all have one.
            let slides = |layer: u64| layer.checked_rem(period).is_none_or(|at| at + 1 != period);
            (0..layers.min(MOST_BLOCKS)).map(slides).collect()
        }
    };
    let kind = |slides: bool| if slides { "sliding_attention" } else { "full_attention" };
    let kinds: Vec<_> = slides.into_iter().map(kind).collect();
    extend(json, json!({"sliding_window": window, "layer_types": kinds}));
    Ok(())
}

/// Files of Ministral 3 say how queries are scaled by position. Those without are of Mistral, here without a window.
fn mistral3_settings(file: &GgufFile, json: &mut Map<String, Value>) -> Result<(), LoadError> {
    let own = Own { file, arch: "mistral3" };
    json.insert("sliding_window".into(), Value::Null);
    let scale = own.number("attention.temperature_scale")?.filter(|scale| *scale != 0.0);
    match (scale, json.get_mut("rope_scaling")) {
        (Some(scale), Some(Value::Object(scaling))) if scaling.get("rope_type").is_some_and(|kind| kind == "yarn") => {
            scaling.insert("llama_4_scaling_beta".into(), scale.into());
        }
        (Some(scale), _) => {
            let key = own.key("attention.temperature_scale");
            return Err(LoadError::Unsupported(format!("{key} {scale} without yarn")));
        }
        (None, _) => {
            let names = json!({"model_type": "mistral", "architectures": ["MistralForCausalLM"]});
            extend(json, names);
        }
    }
    Ok(())
}

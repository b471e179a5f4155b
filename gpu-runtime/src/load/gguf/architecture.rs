//! Conversions of each family by llama.cpp's converter, as data: names, extents and values that differ from the Hugging
//! Face folder that a file was made from.

use serde_json::{Map, Value, json};

use super::metadata::GgufFile;
use super::moe;
use crate::config::LoadError;

/// Settings of `config.json` that a family has in addition to the common ones.
type Settings = fn(&GgufFile, &mut Map<String, Value>) -> Result<(), LoadError>;

/// A family in GGUF files.
pub(super) struct Architecture {
    /// `general.architecture`, and the prefix of its metadata keys.
    pub(super) name: &'static str,
    /// `model_type` in Hugging Face's spelling.
    pub(super) model_type: &'static str,
    /// Class of the model in `transformers`.
    pub(super) class: &'static str,
    /// llama.cpp's module names within a block and Hugging Face's, where they differ from [`COMMON_MODULES`].
    pub(super) modules: &'static [(&'static str, &'static str)],
    /// Whether the halves of each head's q and k rows are interleaved.
    pub(super) interleaves_heads: bool,
    /// Whether 1 was added to the weights of norms.
    pub(super) adds_one_to_norms: bool,
    /// Settings that say whether there are biases, and the module whose bias tensor answers it.
    pub(super) bias_settings: &'static [(&'static str, &'static str)],
    /// Whether blocks have experts.
    pub(super) has_experts: bool,
    /// Whether queries, keys and values come from latents; heads have extents of their own then.
    pub(super) has_latent_attention: bool,
    pub(super) settings: Settings,
}

/// Modules of a block that most families have: llama.cpp's name, Hugging Face's name.
pub(super) const COMMON_MODULES: [(&str, &str); 11] = [
    ("attn_norm", "input_layernorm"),
    ("ffn_norm", "post_attention_layernorm"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
];

const ATTENTION_BIAS: (&str, &str) = ("attention_bias", "self_attn.q_proj");
const MLP_BIAS: (&str, &str) = ("mlp_bias", "mlp.up_proj");

const LLAMA: Architecture = Architecture {
    name: "llama",
    model_type: "llama",
    class: "LlamaForCausalLM",
    modules: &[],
    interleaves_heads: true,
    adds_one_to_norms: false,
    bias_settings: &[ATTENTION_BIAS, MLP_BIAS],
    has_experts: false,
    has_latent_attention: false,
    settings: |_, _| Ok(()),
};

const GEMMA3: Architecture = Architecture {
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
    bias_settings: &[],
    settings: gemma3_settings,
    ..LLAMA
};

const QWEN3_MOE: Architecture = Architecture {
    name: "qwen3moe",
    model_type: "qwen3_moe",
    class: "Qwen3MoeForCausalLM",
    modules: &[
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
    ],
    interleaves_heads: false,
    bias_settings: &[ATTENTION_BIAS],
    has_experts: true,
    settings: moe::qwen3_moe,
    ..LLAMA
};

const GPT_OSS: Architecture = Architecture {
    name: "gpt-oss",
    model_type: "gpt_oss",
    class: "GptOssForCausalLM",
    modules: &[
        ("post_attention_norm", "post_attention_layernorm"),
        ("ffn_gate_inp", "mlp.router"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
    ],
    interleaves_heads: false,
    bias_settings: &[ATTENTION_BIAS],
    has_experts: true,
    settings: moe::gpt_oss,
    ..LLAMA
};

const DEEPSEEK2: Architecture = Architecture {
    name: "deepseek2",
    model_type: "deepseek_v3",
    class: "DeepseekV3ForCausalLM",
    modules: &[
        ("attn_q_a", "self_attn.q_a_proj"),
        ("attn_q_a_norm", "self_attn.q_a_layernorm"),
        ("attn_q_b", "self_attn.q_b_proj"),
        ("attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"),
        ("attn_kv_a_norm", "self_attn.kv_a_layernorm"),
        ("attn_kv_b", "self_attn.kv_b_proj"),
        ("attn_k_b", "self_attn.k_b_proj"),
        ("attn_v_b", "self_attn.v_b_proj"),
        ("ffn_gate_inp", "mlp.gate"),
        ("ffn_gate_exps", "mlp.experts.gate_proj"),
        ("ffn_up_exps", "mlp.experts.up_proj"),
        ("ffn_down_exps", "mlp.experts.down_proj"),
        ("ffn_gate_shexp", "mlp.shared_experts.gate_proj"),
        ("ffn_up_shexp", "mlp.shared_experts.up_proj"),
        ("ffn_down_shexp", "mlp.shared_experts.down_proj"),
    ],
    interleaves_heads: false,
    bias_settings: &[("attention_bias", "self_attn.kv_a_proj_with_mqa")],
    has_experts: true,
    has_latent_attention: true,
    settings: moe::deepseek_v3,
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
    if let Value::Object(settings) = settings {
        json.extend(settings);
    }
    Ok(())
}

/// Every family that loads.
const ALL: [Architecture; 7] = [
    DEEPSEEK2,
    GEMMA3,
    GPT_OSS,
    LLAMA,
    Architecture {
        name: "qwen2",
        model_type: "qwen2",
        class: "Qwen2ForCausalLM",
        interleaves_heads: false,
        bias_settings: &[],
        ..LLAMA
    },
    Architecture {
        name: "qwen3",
        model_type: "qwen3",
        class: "Qwen3ForCausalLM",
        interleaves_heads: false,
        bias_settings: &[ATTENTION_BIAS],
        ..LLAMA
    },
    QWEN3_MOE,
];

impl Architecture {
    /// The family of a file.
    ///
    /// # Errors
    /// `general.architecture` is absent, or names a family that the runtime does not have.
    pub(super) fn of(file: &GgufFile) -> Result<&'static Self, LoadError> {
        const FAMILIES: &[Architecture] = &ALL;
        let Some(name) = file.text("general.architecture")? else {
            return Err(file.malformed("metadata key general.architecture is missing"));
        };
        FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| {
            let supported: Vec<_> = FAMILIES.iter().map(|family| family.name).collect();
            LoadError::Unsupported(format!("GGUF architecture {name:?} (supported: {})", supported.join(", ")))
        })
    }

    /// Hugging Face's name of a module within a block.
    pub(super) fn module(&self, name: &str) -> Option<&'static str> {
        let of = |modules: &'static [(&str, &str)]| modules.iter().find(|(own, _)| *own == name).map(|(_, hf)| *hf);
        of(self.modules).or_else(|| of(&COMMON_MODULES))
    }
}

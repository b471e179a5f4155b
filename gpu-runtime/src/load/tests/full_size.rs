//! Released models by their configurations: number of parameters, and of an adapter's for each unit of rank.

use serde_json::{Value, json};
use trainyard_protocol::LoraSpec;

use crate::config::ModelConfig;
use crate::load::describe_json;
use crate::model::{ParamSpec, ParamTable};

fn config(json: &Value) -> ModelConfig {
    describe_json("config.json", &json.to_string()).unwrap()
}

/// A Qwen3.5 model: width, layers, query and key heads, value heads of delta nets.
fn qwen(hidden: usize, layers: usize, heads: [usize; 2], value_heads: usize, others: &Value) -> ModelConfig {
    let mut text = json!({
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads[0], "num_key_value_heads": heads[1],
        "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": value_heads, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "vocab_size": 248320, "full_attention_interval": 4,
        "max_position_embeddings": 262144, "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25},
    });
    text.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
    let kind = if others.get("num_experts").is_some() { "qwen3_5_moe" } else { "qwen3_5" };
    config(&json!({"model_type": kind, "text_config": text, "tie_word_embeddings": false}))
}

fn nemotron(pattern: &str, hidden: usize, heads: usize, experts: &Value) -> ModelConfig {
    let mut all = json!({
        "model_type": "nemotron_h", "hybrid_override_pattern": pattern, "hidden_size": hidden, "num_attention_heads": 32,
        "num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": heads, "mamba_head_dim": 64, "n_groups": 8,
        "ssm_state_size": 128, "conv_kernel": 4, "vocab_size": 131072, "max_position_embeddings": 262144,
        "n_group": 1, "topk_group": 1, "n_shared_experts": 1, "routed_scaling_factor": 2.5,
    });
    all.as_object_mut().unwrap().extend(experts.as_object().unwrap().clone());
    config(&all)
}

/// As many layers of each kind as the model has; their order does not matter for numbers.
fn pattern(recurrent: usize, experts: usize, attention: usize) -> String {
    ["M".repeat(recurrent), "E".repeat(experts), "*".repeat(attention)].concat()
}

fn billions(c: &ModelConfig) -> f64 {
    ParamTable::new(c).specs.iter().map(ParamSpec::len).sum::<usize>() as f64 / 1e9
}

/// Parameters of an adapter of rank 1, on attention or on MLPs.
fn adapted(c: &ModelConfig, train_attn: bool) -> usize {
    let lora = LoraSpec { train_unembed: false, train_mlp: !train_attn, train_attn, ..LoraSpec::on_all(1, 0) };
    ParamTable::of_adapter(c, &lora).iter().map(ParamSpec::len).sum()
}

#[test]
fn qwen_has_the_parameters_of_its_name_and_the_adapters_of_the_hosted_service() {
    let nine = qwen(4096, 32, [16, 4], 32, &json!({"intermediate_size": 12288}));
    let mixture = |count: usize, chosen: usize, width: usize| {
        json!({
            "num_experts": count, "num_experts_per_tok": chosen, "moe_intermediate_size": width,
            "shared_expert_intermediate_size": width,
        })
    };
    let small = qwen(2048, 40, [16, 2], 32, &mixture(256, 8, 512));
    let large = qwen(4096, 60, [32, 2], 64, &mixture(512, 10, 1024));
    for (c, name) in [(&nine, 9.0), (&small, 35.0), (&large, 397.0)] {
        assert!((billions(c) / name - 1.0).abs() < 0.02, "{} of {name}", billions(c));
    }
    assert_eq!(adapted(&nine, true), 1_130_496);
    assert_eq!(adapted(&small, false), 16_281_600);
}

#[test]
fn so_does_nemotron() {
    let experts = |count: usize, chosen: usize, width: usize, shared: usize| {
        json!({
            "n_routed_experts": count, "num_experts_per_tok": chosen, "moe_intermediate_size": width,
            "moe_shared_expert_intermediate_size": shared,
        })
    };
    let nano = nemotron(&pattern(23, 23, 6), 2688, 64, &experts(128, 6, 1856, 3712));
    let mut latent = experts(512, 22, 2688, 5376);
    latent["moe_latent_size"] = json!(1024);
    let large = nemotron(&pattern(40, 40, 8), 4096, 128, &latent);
    // Nano has 31.6 billion parameters, which its name rounds to 30.
    for (c, name) in [(&nano, 31.6), (&large, 120.0)] {
        assert!((billions(c) / name - 1.0).abs() < 0.02, "{} of {name}", billions(c));
    }
    assert_eq!((adapted(&nano, true), adapted(&nano, false)), (584_832, 11_346_176));
    assert_eq!(adapted(&large, false), 111_349_760);
}

#[test]
fn so_do_models_with_the_router_of_deepseek() {
    let kimi = config(&json!({"model_type": "kimi_k25", "text_config": {
        "model_type": "kimi_k2", "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 64,
        "num_key_value_heads": 64, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 384,
        "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "vocab_size": 163840, "max_position_embeddings": 262144, "rms_norm_eps": 1e-5, "routed_scaling_factor": 2.827,
    }}));
    let glm = config(&json!({
        "model_type": "glm4_moe", "hidden_size": 5120, "num_hidden_layers": 92, "num_attention_heads": 96,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "n_routed_experts": 160, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 3, "attention_bias": true, "use_qk_norm": true, "partial_rotary_factor": 0.5,
        "vocab_size": 151552, "max_position_embeddings": 131072, "routed_scaling_factor": 2.5,
    }));
    for (c, name) in [(&kimi, 1030.0), (&glm, 355.0)] {
        assert!((billions(c) / name - 1.0).abs() < 0.02, "{} of {name}", billions(c));
    }
    assert_eq!(adapted(&kimi, true), 1_940_288);
}

#[test]
fn adapters_on_latent_attention_are_those_of_the_hosted_service() {
    let latent = |kind: &str, others: &Value| {
        let mut all = json!({
            "model_type": kind, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "n_shared_experts": 1,
            "first_k_dense_replace": 3, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
            "n_routed_experts": 256, "rms_norm_eps": 1e-6, "max_position_embeddings": 2048,
        });
        all.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        config(&all)
    };
    let deepseek = latent(
        "deepseek_v3",
        &json!({
            "hidden_size": 7168, "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
            "intermediate_size": 18432, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "v_head_dim": 128,
            "n_group": 8, "topk_group": 4, "vocab_size": 129280,
        }),
    );
    let glm = latent(
        "glm_moe_dsa",
        &json!({
            "hidden_size": 6144, "num_hidden_layers": 78, "num_attention_heads": 64, "num_key_value_heads": 64,
            "intermediate_size": 12288, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256,
            "n_group": 1, "topk_group": 1, "vocab_size": 154880,
        }),
    );
    for (c, name) in [(&deepseek, 671.0), (&glm, 744.0)] {
        assert!((billions(c) / name - 1.0).abs() < 0.02, "{} of {name}", billions(c));
    }
    assert_eq!(adapted(&deepseek, true), 2_440_000);
    assert_eq!((adapted(&glm, true), adapted(&glm, false)), (2_920_320, 121_356_288));
    // Runs from before adapted the projections from latents too.
    let lora = LoraSpec { train_unembed: false, train_mlp: false, latent_up: true, ..LoraSpec::on_all(1, 0) };
    let former: usize = ParamTable::of_adapter(&deepseek, &lora).iter().map(ParamSpec::len).sum();
    assert_eq!(former, 61 * (40_000 + 1536 + 128 * 192 + 512 + 128 * 256));
}

#[test]
fn so_do_small_hybrids() {
    let lfm = config(&json!({
        "model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "block_ff_dim": 12288, "intermediate_size": 12288, "vocab_size": 65536,
        "max_position_embeddings": 128000, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "norm_eps": 1e-5,
    }));
    let kinds: Vec<&str> = (0..40).map(|layer| if layer % 10 == 5 { "attention" } else { "mamba" }).collect();
    let granite = config(&json!({
        "model_type": "granitemoehybrid", "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 32,
        "num_key_value_heads": 8, "shared_intermediate_size": 8192, "vocab_size": 100352, "layer_types": kinds,
        "max_position_embeddings": 131072, "mamba_n_heads": 64, "mamba_d_head": 64, "mamba_d_state": 128,
        "num_local_experts": 0, "tie_word_embeddings": true, "position_embedding_type": "nope",
    }));
    // Granite 4.0 H Micro has 3.2 billion parameters, which its name rounds to 3.
    for (c, name) in [(&lfm, 1.17), (&granite, 3.19)] {
        assert!((billions(c) / name - 1.0).abs() < 0.02, "{} of {name}", billions(c));
    }
    // For a unit of rank: in and out of each convolution and attention projection.
    assert_eq!(adapted(&lfm, true), 10 * (4 * 2048 + 2 * 2048) + 6 * (2 * 4096 + 2 * 2560));
    let [inputs, inner] = [2 * 4096 + 2 * 128 + 64, 4096];
    assert_eq!(adapted(&granite, true), 36 * (2048 + inputs + inner + 2048) + 4 * (2 * 4096 + 2 * 2560));
    assert_eq!(adapted(&granite, false), 40 * (2048 + 2 * 8192 + 8192 + 2048));
}

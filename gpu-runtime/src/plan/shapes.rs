//! Models that can be planned for without their files, by their published `config.json`.

use crate::config::{LoadError, ModelConfig};
use crate::load::describe_json;

/// Names, with the members of the published `config.json` that the families read.
const SHAPES: [(&str, &str); 4] = [
    // meta-llama/Llama-3.1-8B
    (
        "llama-3.1-8b",
        r#"{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
            "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192}}"#,
    ),
    // meta-llama/Llama-3.1-70B
    (
        "llama-3.1-70b",
        r#"{"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
            "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
            "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": false,
            "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192}}"#,
    ),
    // Qwen/Qwen3-8B
    (
        "qwen3-8b",
        r#"{"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
            "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": false}"#,
    ),
    // Qwen/Qwen3-235B-A22B
    (
        "qwen3-235b-a22b",
        r#"{"model_type": "qwen3_moe", "hidden_size": 4096, "intermediate_size": 12288, "moe_intermediate_size": 1536,
            "num_hidden_layers": 94, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128,
            "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, "decoder_sparse_step": 1,
            "mlp_only_layers": [], "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
            "rope_theta": 1000000.0, "tie_word_embeddings": false}"#,
    ),
];

/// Returns the names of all shapes.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|(name, _)| *name)
}

/// Returns the model of that name; `None` if it is unknown.
pub fn named(name: &str) -> Option<Result<ModelConfig, LoadError>> {
    SHAPES.iter().find(|(own, _)| *own == name).map(|(name, json)| describe_json(name, json))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::model::ParamTable;

    /// Parameters as the models' cards count them.
    #[test]
    fn shapes_have_the_published_numbers_of_parameters() {
        let count = |name| ParamTable::new(&named(name).unwrap().unwrap()).elements();
        assert_eq!(count("llama-3.1-8b"), 8_030_261_248);
        assert_eq!(count("llama-3.1-70b"), 70_553_706_496);
        assert_eq!(count("qwen3-8b"), 8_190_735_360);
        assert_eq!(count("qwen3-235b-a22b"), 235_093_634_560);
        assert!(named("llama").is_none());
    }
}

//! Models with random weights, for what is measured without a model of its own.

mod weights;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use serde_json::json;

/// The extents of a Llama, or of a Qwen3 with experts.
pub(super) struct Shape {
    /// What clients call it.
    pub(super) name: &'static str,
    layers: usize,
    hidden: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    vocab: usize,
    experts: Option<Experts>,
}

/// Of each block, instead of its MLP.
struct Experts {
    count: usize,
    /// For each token.
    chosen: usize,
    inner: usize,
}

/// So small that its arithmetic hardly counts: what remains is the API.
pub(super) const TINY: Shape = Shape {
    name: "trainyard/tiny",
    layers: 2,
    hidden: 64,
    inner: 160,
    heads: 4,
    kv_heads: 2,
    vocab: 1024,
    experts: None,
};

/// A model of which up to eight ranks can have equal parts, some of them with the same key heads.
pub(super) const SHARED: Shape = Shape {
    name: "trainyard/shared",
    layers: 12,
    hidden: 512,
    inner: 1536,
    heads: 8,
    kv_heads: 4,
    vocab: 16_384,
    experts: None,
};

/// The same with experts, of which a token computes as much as that has in its MLP.
pub(super) const SHARED_EXPERTS: Shape =
    Shape { name: "trainyard/shared-experts", experts: Some(Experts { count: 16, chosen: 4, inner: 384 }), ..SHARED };

/// Writes the Hugging Face folder of a model with random weights: the same ones every time.
pub(super) fn write(shape: &Shape, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let Shape { layers, hidden, inner, heads, kv_heads, vocab, .. } = *shape;
    let mut config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocab, "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": hidden / heads, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false,
        "mlp_bias": false, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32",
    });
    if let Some(Experts { count, chosen, inner }) = shape.experts {
        config["architectures"] = json!(["Qwen3MoeForCausalLM"]);
        config["model_type"] = json!("qwen3_moe");
        config["num_experts"] = json!(count);
        config["num_experts_per_tok"] = json!(chosen);
        config["moe_intermediate_size"] = json!(inner);
        config["norm_topk_prob"] = json!(true);
        config["decoder_sparse_step"] = json!(1);
        config["mlp_only_layers"] = json!([]);
    }
    fs::write(folder.join("config.json"), config.to_string())?;
    weights::write(shape, BufWriter::new(File::create(folder.join("model.safetensors"))?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use trainyard_gpu_runtime::load::load;

    #[test]
    fn the_runtime_loads_them() {
        for shape in [&super::TINY, &super::SHARED, &super::SHARED_EXPERTS] {
            let dir = tempfile::tempdir().unwrap();
            super::write(shape, dir.path()).unwrap();
            let config = load(dir.path()).unwrap().config;
            assert_eq!((config.num_layers(), config.vocab_size), (shape.layers, shape.vocab));
            assert_eq!(config.has_experts(), shape.experts.is_some());
        }
    }
}

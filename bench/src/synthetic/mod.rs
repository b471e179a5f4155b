//! Models with random weights, for measurements without `--model`.

mod weights;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use serde_json::json;

/// Extents of a Llama, of a Qwen3 with or without experts, or of a Qwen3.5.
pub(super) struct Shape {
    /// Name that clients use.
    pub(super) name: &'static str,
    layers: usize,
    hidden: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    vocab: usize,
    experts: Option<Experts>,
    /// Delta nets in place of attention, in three of four layers.
    delta_nets: Option<DeltaNets>,
    /// Whether heads have norms, as in a Qwen3; with experts they always do.
    head_norms: bool,
    /// Bytes of a weight in the file: 4 for f32, 2 for bf16.
    weight_bytes: usize,
}

/// Experts in place of each block's MLP.
struct Experts {
    count: usize,
    /// Number of experts chosen for each token.
    chosen: usize,
    inner: usize,
}

/// Delta nets of a Qwen3.5.
struct DeltaNets {
    /// Number of heads, of keys and of values.
    heads: usize,
    /// Size of a head.
    dim: usize,
    /// Columns of the short convolution.
    kernel: usize,
}

impl DeltaNets {
    /// Values per token of queries, of keys, or of values.
    fn width(&self) -> usize {
        self.heads * self.dim
    }
}

/// Every so many layers of a model with delta nets, one has attention.
const ATTENTION_EVERY: usize = 4;

impl Shape {
    /// The delta nets of a layer, if it has no attention.
    fn delta_nets_of(&self, layer: usize) -> Option<&DeltaNets> {
        self.delta_nets.as_ref().filter(|_| !(layer + 1).is_multiple_of(ATTENTION_EVERY))
    }
}

/// A shape whose arithmetic hardly counts: what remains is the API.
pub(super) const TINY: Shape = Shape {
    name: "trainyard/tiny",
    layers: 2,
    hidden: 64,
    inner: 160,
    heads: 4,
    kv_heads: 2,
    vocab: 1024,
    experts: None,
    delta_nets: None,
    head_norms: false,
    weight_bytes: 4,
};

/// A shape as small, of the family of [`QWEN3_8B`].
pub(super) const TINY_QWEN3: Shape = Shape { name: "trainyard/random-tiny", head_norms: true, ..TINY };

/// The extents of Qwen3-8B.
pub(super) const QWEN3_8B: Shape = Shape {
    name: "trainyard/random-qwen3-8b",
    layers: 36,
    hidden: 4096,
    inner: 12_288,
    heads: 32,
    kv_heads: 8,
    vocab: 151_936,
    experts: None,
    delta_nets: None,
    head_norms: true,
    weight_bytes: 2,
};

/// A shape that up to eight ranks can divide into equal parts, some of which share key heads.
pub(super) const SHARED: Shape = Shape {
    name: "trainyard/shared",
    layers: 12,
    hidden: 512,
    inner: 1536,
    heads: 8,
    kv_heads: 4,
    vocab: 16_384,
    experts: None,
    delta_nets: None,
    head_norms: false,
    weight_bytes: 4,
};

/// The same shape with experts. The computation per token equals that of the MLP.
pub(super) const SHARED_EXPERTS: Shape =
    Shape { name: "trainyard/shared-experts", experts: Some(Experts { count: 16, chosen: 4, inner: 384 }), ..SHARED };

/// A hybrid of the width, MLP, vocabulary and head size of SmolLM2-135M: three delta nets to one attention layer. 24 layers, so
/// that it has nearly as many parameters.
pub(super) const HYBRID_135M: Shape = Shape {
    name: "trainyard/random-hybrid-135m",
    layers: 24,
    hidden: 576,
    inner: 1536,
    heads: 9,
    kv_heads: 3,
    vocab: 49_152,
    experts: None,
    delta_nets: Some(DeltaNets { heads: 9, dim: 64, kernel: 4 }),
    head_norms: true,
    weight_bytes: 2,
};

/// Writes the Hugging Face folder of a model with the same random weights every time.
pub(super) fn write(shape: &Shape, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let Shape { layers, hidden, inner, heads, kv_heads, vocab, .. } = *shape;
    let mut config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocab, "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": hidden / heads, "max_position_embeddings": 16_384, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false,
        "mlp_bias": false, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32",
    });
    if shape.weight_bytes == 2 {
        config["torch_dtype"] = json!("bfloat16");
    }
    if shape.head_norms {
        config["architectures"] = json!(["Qwen3ForCausalLM"]);
        config["model_type"] = json!("qwen3");
    }
    if let Some(DeltaNets { heads, dim, kernel }) = shape.delta_nets {
        config["architectures"] = json!(["Qwen3_5ForCausalLM"]);
        config["model_type"] = json!("qwen3_5_text");
        config["tie_word_embeddings"] = json!(true);
        config["full_attention_interval"] = json!(ATTENTION_EVERY);
        config["layer_types"] = (0..layers)
            .map(|layer| if shape.delta_nets_of(layer).is_some() { "linear_attention" } else { "full_attention" })
            .collect();
        config["linear_num_key_heads"] = json!(heads);
        config["linear_num_value_heads"] = json!(heads);
        config["linear_key_head_dim"] = json!(dim);
        config["linear_value_head_dim"] = json!(dim);
        config["linear_conv_kernel_dim"] = json!(kernel);
        config["rope_parameters"] =
            json!({"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25});
    }
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

    use super::*;

    #[test]
    fn the_runtime_loads_them() {
        // Written like the model of 8 billion parameters.
        let bf16 = Shape { weight_bytes: 2, ..TINY_QWEN3 };
        // A part of the large ones: random numbers take long without optimisation.
        let [shared, experts, hybrid] =
            [SHARED, SHARED_EXPERTS, HYBRID_135M].map(|shape| Shape { layers: ATTENTION_EVERY, vocab: 1024, ..shape });
        for shape in [&TINY, &shared, &experts, &TINY_QWEN3, &bf16, &hybrid] {
            let dir = tempfile::tempdir().unwrap();
            write(shape, dir.path()).unwrap();
            let config = load(dir.path()).unwrap().config;
            assert_eq!((config.num_layers(), config.vocab_size), (shape.layers, shape.vocab));
            assert_eq!(config.has_experts(), shape.experts.is_some());
        }
    }
}

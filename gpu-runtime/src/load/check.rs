//! Which tensors a configuration needs, and whether a file has them.

use std::collections::BTreeSet;

use crate::config::{LoadError, ModelConfig, TensorSource};

/// Checks that every tensor of the model is there with the right extents.
pub(super) fn check(config: &ModelConfig, tensors: &dyn TensorSource) -> Result<(), LoadError> {
    let mut spare: BTreeSet<String> = tensors.names().into_iter().collect();
    for (name, expected) in required(config) {
        match tensors.shape(&name) {
            None => return Err(LoadError::MissingTensor(name)),
            Some(found) if found != expected => return Err(LoadError::WrongShape { name, found, expected }),
            Some(_) => spare.remove(&name),
        };
    }
    if config.tie_word_embeddings {
        spare.remove("lm_head.weight");
    }
    if let Some(first) = spare.first() {
        tracing::warn!(tensor = first, count = spare.len(), "the model does not use some tensors of its file");
    }
    Ok(())
}

/// Names and extents of all parameters, in the order of the forward pass. The output projection of a model
/// with tied embeddings is not among them.
fn required(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let (hidden, vocab) = (config.hidden_size, config.vocab_size);
    let mut all = vec![("model.embed_tokens.weight".to_owned(), vec![vocab, hidden])];
    for layer in 0..config.num_layers {
        all.extend(of_layer(config, &format!("model.layers.{layer}")));
    }
    all.push(("model.norm.weight".to_owned(), vec![hidden]));
    if !config.tie_word_embeddings {
        all.push(("lm_head.weight".to_owned(), vec![vocab, hidden]));
    }
    all
}

fn of_layer(config: &ModelConfig, prefix: &str) -> Vec<(String, Vec<usize>)> {
    let hidden = config.hidden_size;
    let (q, kv) = (config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim);
    let mlp = config.intermediate_size;
    let linears = [
        ("self_attn.q_proj", q, hidden, config.qkv_bias),
        ("self_attn.k_proj", kv, hidden, config.qkv_bias),
        ("self_attn.v_proj", kv, hidden, config.qkv_bias),
        ("self_attn.o_proj", hidden, q, config.o_bias),
        ("mlp.gate_proj", mlp, hidden, config.mlp_bias),
        ("mlp.up_proj", mlp, hidden, config.mlp_bias),
        ("mlp.down_proj", hidden, mlp, config.mlp_bias),
    ];
    let mut all = Vec::new();
    for (name, rows, columns, bias) in linears {
        all.push((format!("{prefix}.{name}.weight"), vec![rows, columns]));
        if bias {
            all.push((format!("{prefix}.{name}.bias"), vec![rows]));
        }
    }
    for norm in ["input_layernorm", "post_attention_layernorm"] {
        all.push((format!("{prefix}.{norm}.weight"), vec![hidden]));
    }
    if config.qk_norm {
        for norm in ["self_attn.q_norm", "self_attn.k_norm"] {
            all.push((format!("{prefix}.{norm}.weight"), vec![config.head_dim]));
        }
    }
    all
}

//! A model so small that its arithmetic hardly counts: what remains is the API.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};
use trainyard_gpu_runtime::rng::kaiming_uniform_fill;

/// What clients call it.
pub(super) const NAME: &str = "trainyard/tiny";

const LAYERS: usize = 2;
const HIDDEN: usize = 64;
const INNER: usize = 160;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const HEAD: usize = HIDDEN / HEADS;
const VOCAB: usize = 1024;

const SEED: u64 = 1;
/// Bound of the random weights.
const BOUND: f32 = 0.05;

/// Writes the Hugging Face folder of a Llama with random weights: the same ones every time.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let config = json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": HIDDEN,
        "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false, "attention_bias": false,
        "mlp_bias": false, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32",
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    write_weights(BufWriter::new(File::create(folder.join("model.safetensors"))?))
}

/// Names and shapes in the order of the file.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut all = vec![("model.embed_tokens.weight".to_owned(), vec![VOCAB, HIDDEN])];
    for layer in 0..LAYERS {
        let parts = [
            ("input_layernorm", vec![HIDDEN]),
            ("self_attn.q_proj", vec![HEADS * HEAD, HIDDEN]),
            ("self_attn.k_proj", vec![KV_HEADS * HEAD, HIDDEN]),
            ("self_attn.v_proj", vec![KV_HEADS * HEAD, HIDDEN]),
            ("self_attn.o_proj", vec![HIDDEN, HEADS * HEAD]),
            ("post_attention_layernorm", vec![HIDDEN]),
            ("mlp.gate_proj", vec![INNER, HIDDEN]),
            ("mlp.up_proj", vec![INNER, HIDDEN]),
            ("mlp.down_proj", vec![HIDDEN, INNER]),
        ];
        all.extend(parts.map(|(name, shape)| (format!("model.layers.{layer}.{name}.weight"), shape)));
    }
    all.push(("model.norm.weight".to_owned(), vec![HIDDEN]));
    all.push(("lm_head.weight".to_owned(), vec![VOCAB, HIDDEN]));
    all
}

/// The safetensors format: the header's length, the header in JSON, the numbers.
fn write_weights(mut out: impl Write) -> io::Result<()> {
    let (mut header, mut end) = (Map::new(), 0);
    for (name, shape) in tensors() {
        let start = end;
        end += 4 * shape.iter().product::<usize>();
        header.insert(name, json!({"dtype": "F32", "shape": shape, "data_offsets": [start, end]}));
    }
    let header = Value::Object(header).to_string();
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for (index, (_, shape)) in (0..).zip(tensors()) {
        let mut values = vec![1.0; shape.iter().product()];
        // Norms stay at one.
        if shape.len() > 1 {
            kaiming_uniform_fill(SEED, index, &mut values, BOUND);
        }
        for value in values {
            out.write_all(&f32::to_le_bytes(value))?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use trainyard_gpu_runtime::load::load;

    #[test]
    fn the_runtime_loads_it() {
        let dir = tempfile::tempdir().unwrap();
        super::write(dir.path()).unwrap();
        assert!(load(dir.path()).is_ok());
    }
}

//! Writes the tensors of a model with random weights as a safetensors file.

use std::io::{self, Write};

use half::bf16;
use serde_json::{Map, Value, json};
use trainyard_gpu_runtime::rng::kaiming_uniform_fill;

use super::{DeltaNets, Shape};

const SEED: u64 = 1;
/// Largest absolute value of the random weights.
const BOUND: f32 = 0.05;

/// Number of values that are converted at once.
const CHUNK: usize = 1 << 16;

/// Returns names and shapes in the order of the file.
fn tensors(shape: &Shape) -> Vec<(String, Vec<usize>)> {
    let Shape { layers, hidden, inner, heads, kv_heads, vocab, .. } = *shape;
    let (head_dim, kv) = (hidden / heads, kv_heads * (hidden / heads));
    let gated = |name: &str, inner: usize| {
        let projections = [("gate", [inner, hidden]), ("up", [inner, hidden]), ("down", [hidden, inner])];
        projections.map(|(of, shape)| (format!("{name}.{of}_proj"), shape.to_vec()))
    };
    let mut all = vec![("model.embed_tokens.weight".to_owned(), vec![vocab, hidden])];
    for layer in 0..layers {
        let mut parts: Vec<_> =
            ["input_layernorm", "post_attention_layernorm"].map(|name| (name.to_owned(), vec![hidden])).into();
        match shape.delta_nets_of(layer) {
            Some(of) => all.extend(
                delta_net(of, hidden)
                    .map(|(name, extents)| (format!("model.layers.{layer}.linear_attn.{name}"), extents)),
            ),
            None => {
                // A gate beside each query.
                let queries = if shape.delta_nets.is_some() { 2 * hidden } else { hidden };
                let attention =
                    [("q", [queries, hidden]), ("k", [kv, hidden]), ("v", [kv, hidden]), ("o", [hidden, hidden])];
                parts.extend(attention.map(|(of, shape)| (format!("self_attn.{of}_proj"), shape.to_vec())));
                if shape.head_norms || shape.experts.is_some() {
                    parts.extend(["q", "k"].map(|of| (format!("self_attn.{of}_norm"), vec![head_dim])));
                }
            }
        }
        match &shape.experts {
            None => parts.extend(gated("mlp", inner)),
            Some(experts) => {
                parts.push(("mlp.gate".to_owned(), vec![experts.count, hidden]));
                parts.extend((0..experts.count).flat_map(|of| gated(&format!("mlp.experts.{of}"), experts.inner)));
            }
        }
        all.extend(parts.into_iter().map(|(name, shape)| (format!("model.layers.{layer}.{name}.weight"), shape)));
    }
    all.push(("model.norm.weight".to_owned(), vec![hidden]));
    // A hybrid's unembedding is its embedding.
    if shape.delta_nets.is_none() {
        all.push(("lm_head.weight".to_owned(), vec![vocab, hidden]));
    }
    all
}

/// Returns the names and shapes of a delta net's tensors.
fn delta_net(of: &DeltaNets, hidden: usize) -> [(&'static str, Vec<usize>); 9] {
    let width = of.width();
    [
        ("in_proj_qkv.weight", vec![3 * width, hidden]),
        ("in_proj_z.weight", vec![width, hidden]),
        ("in_proj_a.weight", vec![of.heads, hidden]),
        ("in_proj_b.weight", vec![of.heads, hidden]),
        ("conv1d.weight", vec![3 * width, 1, of.kernel]),
        ("A_log", vec![of.heads]),
        ("dt_bias", vec![of.heads]),
        ("norm.weight", vec![of.dim]),
        ("out_proj.weight", vec![hidden, width]),
    ]
}

/// Writes the safetensors format: the header's length, the header in JSON, the numbers.
pub(super) fn write(shape: &Shape, mut out: impl Write) -> io::Result<()> {
    let width = shape.weight_bytes;
    let dtype = if width == 2 { "BF16" } else { "F32" };
    let (mut header, mut end) = (Map::new(), 0);
    for (name, shape) in tensors(shape) {
        let start = end;
        end += width * shape.iter().product::<usize>();
        header.insert(name, json!({"dtype": dtype, "shape": shape, "data_offsets": [start, end]}));
    }
    let header = Value::Object(header).to_string();
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    for (index, (_, shape)) in (0..).zip(tensors(shape)) {
        let mut values = vec![1.0; shape.iter().product()];
        // Norms, and what else has one axis, stay at one.
        if shape.len() > 1 {
            kaiming_uniform_fill(SEED, index, &mut values, BOUND);
        }
        for values in values.chunks(CHUNK) {
            let bytes: Vec<u8> = match width {
                2 => values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect(),
                _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            };
            out.write_all(&bytes)?;
        }
    }
    out.flush()
}

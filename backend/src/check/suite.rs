//! Inputs of the suite: small, with odd extents, and the same in every run.

use super::access::{HostAccess, Results};
use super::{
    activations, attention, convolutions, embeddings, experts, gates, head_parts, heads, image_attention, latent_heads,
    linears, norms, recurrences, rotations, scalar_heads, scaled, score_parts, sigmoid, sinks, spread, tower_rows,
};
use crate::check::{sampling, storage};
use crate::{
    Activation, AttentionShape, ConvolutionShape, IndexKeys, LatentHeads, RecurrentRule, RecurrentShape, RouterRule,
};

/// Ops on one input.
pub(super) struct Case<B> {
    pub(super) ops: &'static str,
    pub(super) run: fn(&B) -> Results,
    /// Tolerance with f32 weights.
    pub(super) tolerance: f32,
    /// Tolerance with bf16 weights: ops that round, both sides in different places.
    pub(super) rounded_tolerance: f32,
}

/// Tolerance of sums in f32 in another order.
const SUMS: f32 = 2e-5;
/// Tolerance of sums of elements that were rounded to bf16, which has 8 bits.
const ROUNDED: f32 = 2e-2;

const SHAPE: AttentionShape =
    AttentionShape { layers: 2, heads: 4, kv_heads: 2, head_dim: 16, scale: 0.25, index: IndexKeys::NONE };
const LATENT: LatentHeads = LatentHeads { heads: 3, nope: 6, rope: 4, value: 8, width: 10, interleaved: true };

const CONVOLUTION: ConvolutionShape = ConvolutionShape { channels: 33, kernel: 3 };
const DELTA_NET: RecurrentShape = RecurrentShape {
    rule: RecurrentRule::DeltaNet,
    key_heads: 2,
    value_heads: 4,
    key_dim: 12,
    value_dim: 36,
    kernel: 4,
};
const MAMBA: RecurrentShape = RecurrentShape {
    rule: RecurrentRule::Mamba2 { limits: (0.0, f32::INFINITY) },
    key_heads: 1,
    value_heads: 3,
    key_dim: 16,
    value_dim: 8,
    kernel: 4,
};

pub(super) fn cases<B: HostAccess>() -> Vec<Case<B>> {
    let case = |ops, run, tolerance, rounded_tolerance| Case { ops, run, tolerance, rounded_tolerance };
    vec![
        case("weights", |b| storage::weights(b, 9, 40, 1), SUMS, ROUNDED),
        case("parameters and AdamW", |b| storage::parameters(b, &[300, 7], 2), SUMS, SUMS),
        case("rows", |b| storage::rows(b, 33, 3), 0.0, 0.0),
        case("embeddings", |b| embeddings(b, 33, 4), SUMS, SUMS),
        case("norms", |b| norms(b, 5, 70, 5), SUMS, SUMS),
        case("SwiGLU", |b| activations(b, Activation::Silu, 5, 33, 6), SUMS, ROUNDED),
        case("GeGLU", |b| activations(b, Activation::GeluTanh, 5, 33, 7), SUMS, ROUNDED),
        case("clamped SwiGLU", |b| activations(b, Activation::ClampedSwish, 5, 33, 8), SUMS, ROUNDED),
        case("linear layers with adapters", |b| linears(b, 9, 40, [32, 8], 5, 9), SUMS, ROUNDED),
        // So many that lanes load several parts of a row ahead.
        case("adapters on many inputs", |b| linears(b, 3, 4128, [8, 8], 5, 24), SUMS, ROUNDED),
        case("rotation and attention", |b| attention(b, SHAPE, [40, 7], None, 10), SUMS, ROUNDED),
        case("attention with a window", |b| attention(b, SHAPE, [40, 7], Some(5), 11), SUMS, ROUNDED),
        case("heads rotated in part", |b| rotations(b, SHAPE, 6, false, 7, 25), SUMS, ROUNDED),
        case("norms over all heads", |b| rotations(b, SHAPE, 16, true, 7, 26), SUMS, ROUNDED),
        case("gated attention's heads", |b| gates(b, SHAPE, 7, 27), SUMS, SUMS),
        case("blocks of keys and values", |b| storage::blocks(b, SHAPE, 12), SUMS, ROUNDED),
        case("loss head", |b| heads(b, 9, 24, 152, true, false, 13), SUMS, ROUNDED),
        case("loss head, trained", |b| heads(b, 9, 24, 152, false, true, 14), SUMS, ROUNDED),
        case("part of a loss head", |b| head_parts(b, 6, 24, 100, 4, true, false, 15), SUMS, ROUNDED),
        case("scores of a part", |b| score_parts(b, 3, 152, 140, 16), SUMS, SUMS),
        case("rows among zeros", |b| spread(b, &[4, 0, 2], 6, 7), 0.0, 0.0),
        case("samples", |b| sampling::samples(b, 150, 17), SUMS, SUMS),
        case("scores", |b| sampling::scores(b, 150, 18), SUMS, SUMS),
        case("experts by softmax", |b| experts(b, RouterRule::softmax(2, true), 7, 5, 33, 19), SUMS, SUMS),
        case("experts by sigmoids", |b| experts(b, sigmoid(2, true, 4, 2, 2.5), 7, 8, 33, 20), SUMS, SUMS),
        case("attention sinks", |b| sinks(b, 7, 3, 10, 21), SUMS, SUMS),
        case("scalar heads", |b| scalar_heads(b, 7, 70, 22), SUMS, SUMS),
        case("latent attention's heads", |b| latent_heads(b, LATENT, 5, 23), SUMS, SUMS),
        case("activation without a gate", |b| activations(b, Activation::SquaredRelu, 5, 33, 28), SUMS, ROUNDED),
        case("scaled sums", |b| scaled(b, 5, 33, 29), SUMS, SUMS),
        case("short convolution", |b| convolutions(b, CONVOLUTION, &[9, 1, 4], 30), SUMS, SUMS),
        case("gated delta net", |b| recurrences(b, DELTA_NET, &[70, 3], 31), SUMS, SUMS),
        case("Mamba-2", |b| recurrences(b, MAMBA, &[70, 3], 32), SUMS, SUMS),
        case("rows of vision towers", |b| tower_rows(b, 6, 40, 33), SUMS, ROUNDED),
        case("attention within images", |b| image_attention(b, &[70, 1, 33], 3, 16, 34), SUMS, ROUNDED),
    ]
}

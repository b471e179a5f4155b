//! Ops of vision towers.

use super::access::{HostAccess, Numbers, Results};
use crate::{Gelu, LayerNorm, LinearCall, MatrixRole, RowMix, Source, VisionOps};

/// Everything that a tower computes of some rows, apart from attention.
pub fn tower_rows<B: HostAccess>(b: &B, rows: usize, width: usize, seed: u64) -> Results {
    let numbers = |salt, len| Numbers(seed + salt).take(len);
    let x = B::Family::upload_rows(b, &numbers(0, rows * width), width);
    let vector = |salt| b.vector(&[Source::Host(&numbers(salt, width))], 0.5);
    let (weights, bias) = (vector(1), vector(2));
    let norm = || LayerNorm { weight: &weights, bias: &bias, eps: 1e-6 };
    let weight = b.pack(&[Source::Host(&numbers(3, 5 * width))], width, MatrixRole::Base);
    let layer = |of: &B::Lhs| {
        let mut out = b.alloc(rows, 5);
        b.linear(&LinearCall { weight: &weight, bias: None, lora: &[] }, of, None, &mut out);
        b.values(&out)
    };
    let wide = b.pack(&[Source::Host(&numbers(5, width * width))], width, MatrixRole::Base);
    let call = LinearCall { weight: &wide, bias: Some(&bias), lora: &[] };
    let table = (0..3 * rows).map(|i| (i * 7 + seed as usize) % rows).collect();
    let mix = RowMix { per_row: 3, rows: table, weights: numbers(4, 3 * rows) };
    let mixed = B::Family::mix_rows(b, &x, &mix);
    let mut sum = b.copy(&mixed);
    let order: Vec<usize> = (0..rows).rev().collect();
    B::Family::add_rows(b, &x, &order, &mut sum);
    let joined = B::Family::join_rows(b, b.copy(&x), rows);
    vec![
        ("norm", b.values(&B::Family::layer_norm(b, norm(), &x))),
        ("norm, then a layer", layer(&B::Family::layer_norm_lhs(b, norm(), &x))),
        ("GELU with tanh", layer(&B::Family::gelu(b, Gelu::Tanh, &x))),
        ("GELU with erf", layer(&B::Family::gelu(b, Gelu::Erf, &x))),
        ("layers with GELU between", layer(&B::Family::linear_gelu(b, &call, Gelu::Tanh, &b.lhs(&x)))),
        ("mix", b.values(&mixed)),
        ("sum", b.values(&sum)),
        ("joined", b.values(&joined)),
    ]
}

/// Attention within images of these numbers of rows, of heads of `e` elements.
pub fn image_attention<B: HostAccess>(b: &B, images: &[usize], heads: usize, e: usize, seed: u64) -> Results {
    let mut last = 0;
    let spans = images.iter().map(|rows| {
        last += rows;
        last - rows..last
    });
    let spans: Vec<_> = spans.collect();
    let qkv = Numbers(seed).take(last * 3 * heads * e);
    vec![("out", b.values(&B::Family::attend_all(b, heads, &spans, &b.rows(&qkv, 3 * heads * e))))]
}

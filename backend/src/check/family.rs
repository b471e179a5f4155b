//! Ops of families: experts, attention sinks, scalar heads, latent attention.

use super::access::{HostAccess, Numbers, Results, host, rotary_table};
use crate::{FamilyOps, LatentHeads, LatentOps, LatentRotation, RouterRule, RouterScores, ScalarHead, Source};

/// Routing with its backward pass, and the parts of a batch combined by it.
pub fn experts<B: HostAccess>(b: &B, rule: RouterRule, rows: usize, count: usize, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    // Multiples of a step: what is not equal differs by more than backends round.
    let logits: Vec<f32> = n.take(rows * count).iter().map(|x| (12.0 * x).round() / 4.0 + 0.1).collect();
    let correction: Vec<f32> = n.take(count).iter().map(|x| (20.0 * x).round() / 64.0).collect();
    let logits = b.rows(&logits, count);
    let (dispatch, weights) = B::Family::route(b, rule, &correction, &logits);
    let d_weights = b.rows(&n.take(rows * rule.per_token), rule.per_token);
    let d_logits = B::Family::route_backward(b, rule, &logits, &dispatch, &weights, &d_weights);
    let parts: Vec<_> = dispatch.parts().iter().map(|part| b.rows(&n.take(part.rows.len() * width), width)).collect();
    let [mut weighted, mut plain] = [0, 1].map(|_| b.rows(&n.take(rows * width), width));
    B::Family::combine(b, &parts, &dispatch, Some(&weights), &mut weighted);
    B::Family::combine(b, &parts, &dispatch, None, &mut plain);
    let d_out = b.rows(&n.take(rows * width), width);
    let (d_parts, d_own) = B::Family::combine_backward(b, &parts, &dispatch, &weights, &d_out);
    let chosen = (0..rows).flat_map(|row| dispatch.experts(row).iter().map(|expert| *expert as f32)).collect();
    vec![
        ("experts", chosen),
        ("weights", b.values(&weights)),
        ("d logits", b.values(&d_logits)),
        ("weighted sum", b.values(&weighted)),
        ("sum", b.values(&plain)),
        ("d parts", d_parts.iter().flat_map(|part| b.values(part)).collect()),
        ("d weights", b.values(&d_own)),
    ]
}

/// Attention sinks and their gradients.
pub fn sinks<B: HostAccess>(b: &B, rows: usize, heads: usize, head_dim: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let sinks = b.vector(&[Source::Host(&n.take(heads))], 0.0);
    let width = heads * head_dim;
    let mut attended = [b.rows(&n.take(rows * width), width), b.rows(&n.take(rows * heads), heads)];
    B::Family::add_sinks(b, &sinks, &mut attended);
    let [out, lse] = &attended;
    let d_out = b.rows(&n.take(rows * width), width);
    let mut grads = b.upload_params(vec![n.take(heads)]);
    B::Family::sinks_backward(b, &sinks, [out, lse], &d_out, &mut grads, 0);
    vec![("out", b.values(out)), ("lse", b.values(lse)), ("d sinks", host(&grads))]
}

/// Sigmoid scores, with experts in groups, of which only some are chosen from.
pub fn sigmoid(per_token: usize, normalised: bool, groups: usize, chosen_groups: usize, scaling: f32) -> RouterRule {
    RouterRule { per_token, normalised, scores: RouterScores::Sigmoid { groups, chosen_groups, scaling } }
}

/// A scalar head on some rows, among rows of others.
pub fn scalar_heads<B: HostAccess>(b: &B, rows: usize, width: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let params = b.upload_params(vec![n.take(3), n.take(width), n.take(1)]);
    let head = ScalarHead { params: &params, weight: 1 };
    let x = b.rows(&n.take((rows + 2) * width), width);
    let dy = n.take(rows);
    let mut dx = b.rows(&n.take((rows + 2) * width), width);
    let mut grads = b.upload_params(vec![n.take(3), n.take(width), n.take(1)]);
    let of = 1..rows + 1;
    let values = B::Family::scalar_head(b, head, &x, of.clone());
    B::Family::scalar_head_backward(b, head, &x, of.clone(), &dy, &mut dx, Some(&mut grads));
    let with = b.values(&dx);
    B::Family::scalar_head_backward(b, head, &x, of, &dy, &mut dx, None);
    vec![("values", values), ("dx", with), ("dx without a sink", b.values(&dx)), ("gradients", host(&grads))]
}

/// Columns of the latent before the keys' common part.
const LATENT: usize = 5;

/// Positions are below this one in [`positions`].
pub const POSITIONS: usize = 200;

/// Positions of rows, not in order.
pub fn positions(rows: usize) -> Vec<u32> {
    (0..rows).map(|row| (row * 37 % POSITIONS) as u32).collect()
}

/// Heads of latent attention, joined and split, and rows joined and cut.
pub fn latent_heads<B: HostAccess>(b: &B, h: LatentHeads, rows: usize, seed: u64) -> Results {
    let mut n = Numbers(seed);
    let mut take = |width: usize| b.rows(&n.take(rows * width), width);
    let (q, kv, down) = (take(h.queries()), take(h.keys_and_values()), take(LATENT + h.rope));
    let (d_qkv, attended, d_values) = (take(3 * h.heads * h.width), take(h.heads * h.width), take(h.values()));
    let (rope, positions) = (b.rope(h.rope / 2, rotary_table(POSITIONS, 100.0, h.rope / 2)), positions(rows));
    let rotation = LatentRotation { heads: h, rope: &rope, positions: &positions };
    let joined = B::Family::join_heads(b, &rotation, &q, &kv, &down);
    let [d_q, d_kv, d_common] = B::Family::split_heads(b, &rotation, &d_qkv);
    let latent = B::Family::columns(b, &down, 0..LATENT);
    let mut sum = B::Family::columns(b, &down, LATENT..LATENT + h.rope);
    let again = B::Family::join_columns(b, &latent, &sum);
    B::Family::add_rows(b, &d_common, &mut sum);
    vec![
        ("joined again", b.values(&again)),
        ("q, k and v", b.values(&joined)),
        ("d q", b.values(&d_q)),
        ("d kv", b.values(&d_kv)),
        ("d common", b.values(&d_common)),
        ("latent", b.values(&latent)),
        ("sum", b.values(&sum)),
        ("values", b.values(&B::Family::head_values(b, h, &attended))),
        ("d attended", b.values(&B::Family::pad_values(b, h, &d_values))),
    ]
}

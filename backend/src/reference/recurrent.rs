//! Linear recurrences token by token, and their backward pass from the last token on.

use super::state::{State, StatePool};
use super::{Matrix, Reference, add_scaled, dot};
use crate::host::HostParams;
use crate::{RecurrentCall, RecurrentOps, RecurrentParams, RecurrentRule, RecurrentShape, Rows, Span};

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}

fn silu_slope(x: f32) -> f32 {
    let s = sigmoid(x);
    s * (1.0 + x * (1.0 - s))
}

fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// A token's inputs behind the convolution.
struct Token {
    /// The convolution's inputs, oldest first, the token's own last.
    window: Vec<Vec<f32>>,
    /// Output of the convolution.
    convolved: Vec<f32>,
    /// Queries, keys and values; with the delta rule queries and keys are normalised.
    channels: Vec<f32>,
    /// Each value head has the input of the decay with its bias, the logarithm of the decay, and the step size.
    raw: Vec<f32>,
    decays: Vec<f32>,
    steps: Vec<f32>,
}

/// Inverse of the norm of a head, and its factor.
fn unit(shape: &RecurrentShape, part: usize, x: &[f32]) -> (f32, f32) {
    let scale = if part == 0 { 1.0 / (shape.key_dim as f32).sqrt() } else { 1.0 };
    (1.0 / (dot(x, x) + 1e-6).sqrt(), scale)
}

fn token(call: &RecurrentCall<'_, Reference>, tail: &[Vec<f32>], row: &[f32]) -> Token {
    let s = call.shape;
    let columns = s.columns();
    let own = [(columns.queries, s.key_width()), (columns.keys, s.key_width()), (columns.values, s.value_width())];
    let own = own.map(|(first, width)| &row[first..first + width]).concat();
    let window: Vec<Vec<f32>> = tail.iter().cloned().chain([own]).collect();
    let convolved: Vec<f32> = (0..s.channels())
        .map(|c| {
            let terms = window.iter().enumerate().map(|(t, x)| call.conv[c * s.kernel + t] * x[c]);
            call.conv_bias.map_or(0.0, |bias| bias[c]) + terms.sum::<f32>()
        })
        .collect();
    let mut channels: Vec<f32> = convolved.iter().map(|x| silu(*x)).collect();
    if s.has_beta() {
        for part in 0..2 {
            let keys = &mut channels[part * s.key_width()..(part + 1) * s.key_width()];
            for head in keys.chunks_exact_mut(s.key_dim) {
                let (inverse, scale) = unit(s, part, head);
                head.iter_mut().for_each(|x| *x *= inverse * scale);
            }
        }
    }
    let raw: Vec<f32> = (0..s.value_heads).map(|h| row[columns.decays + h] + call.dt_bias[h]).collect();
    let (mut decays, mut steps) = (Vec::new(), Vec::new());
    for (h, x) in raw.iter().enumerate() {
        let rate = -call.a_log[h].exp();
        match s.rule {
            RecurrentRule::DeltaNet => {
                decays.push(rate * softplus(*x));
                steps.push(sigmoid(row[columns.steps + h]));
            }
            RecurrentRule::Mamba2 { limits: (least, most) } => {
                let step = softplus(*x).clamp(least, most);
                decays.push(rate * step);
                steps.push(step);
            }
        }
    }
    Token { window, convolved, channels, raw, decays, steps }
}

/// Query, key and value of a value head.
fn head_of<'t>(s: &RecurrentShape, channels: &'t [f32], h: usize) -> [&'t [f32]; 3] {
    let key = h / (s.value_heads / s.key_heads) * s.key_dim;
    let values = &channels[2 * s.key_width()..];
    [
        &channels[key..key + s.key_dim],
        &channels[s.key_width() + key..][..s.key_dim],
        &values[h * s.value_dim..(h + 1) * s.value_dim],
    ]
}

/// What a head writes, before and after its step size, to a decayed state.
fn write(s: &RecurrentShape, key: &[f32], value: &[f32], step: f32, state: &mut [f32]) -> [Vec<f32>; 2] {
    let mut bracket = value.to_vec();
    if s.has_beta() {
        for (k, row) in key.iter().zip(state.chunks_exact(s.value_dim)) {
            add_scaled(&mut bracket, row, -k);
        }
    }
    let written: Vec<f32> = bracket.iter().map(|x| step * x).collect();
    for (k, row) in key.iter().zip(state.chunks_exact_mut(s.value_dim)) {
        add_scaled(row, &written, *k);
    }
    [bracket, written]
}

fn read(s: &RecurrentShape, query: &[f32], state: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; s.value_dim];
    query.iter().zip(state.chunks_exact(s.value_dim)).for_each(|(q, row)| add_scaled(&mut out, row, *q));
    out
}

/// Columns of the gate, and those of the norm's weight by what is normalised together.
fn groups(s: &RecurrentShape) -> Vec<(usize, usize, usize)> {
    // (first column, width, first element of the weight)
    if s.has_beta() {
        return (0..s.value_heads).map(|h| (h * s.value_dim, s.value_dim, 0)).collect();
    }
    let width = s.value_width() / s.key_heads;
    (0..s.key_heads).map(|g| (g * width, width, g * width)).collect()
}

fn normed(call: &RecurrentCall<'_, Reference>, x: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    for (at, width, weight) in groups(call.shape) {
        let x = &x[at..at + width];
        let scale = 1.0 / (dot(x, x) / width as f32 + call.norm.eps).sqrt();
        for (i, x) in x.iter().enumerate() {
            out[at + i] = x * scale * call.norm.weight[weight + i];
        }
    }
    out
}

fn normed_backward(call: &RecurrentCall<'_, Reference>, x: &[f32], d: &[f32], dw: Option<&mut [f32]>) -> Vec<f32> {
    let mut dx = vec![0.0; x.len()];
    let mut sums = vec![0.0; call.norm.weight.len()];
    for (at, width, weight) in groups(call.shape) {
        let (x, d) = (&x[at..at + width], &d[at..at + width]);
        let scale = 1.0 / (dot(x, x) / width as f32 + call.norm.eps).sqrt();
        let weights = &call.norm.weight[weight..weight + width];
        let along: f32 = x.iter().zip(d).zip(weights).map(|((x, d), w)| x * d * w).sum();
        for i in 0..width {
            dx[at + i] = scale * weights[i] * d[i] - x[i] * scale * scale * scale * along / width as f32;
            sums[weight + i] += d[i] * x[i] * scale;
        }
    }
    if let Some(dw) = dw {
        add_scaled(dw, &sums, 1.0);
    }
    dx
}

fn gate_of<'r>(s: &RecurrentShape, row: &'r [f32]) -> &'r [f32] {
    &row[s.columns().gate..s.columns().gate + s.value_width()]
}

impl RecurrentOps<Self> for Reference {
    const HAS_RECURRENCES: bool = true;

    fn recur(_: &Self, call: &RecurrentCall<'_, Self>, pool: &mut StatePool, inputs: &Matrix) -> Matrix {
        let s = call.shape;
        let mut out = Matrix::zeros(inputs.rows(), s.value_width());
        for span in call.spans {
            let mut own = State::new(s);
            let state = match span.state {
                Some(id) => pool.layer(id, call.layer),
                None => &mut own,
            };
            for row in span.rows.clone() {
                let token = token(call, &state.tail, inputs.row(row));
                state.tail = token.window[1..].to_vec();
                for (h, state) in state.heads.iter_mut().enumerate() {
                    let [query, key, value] = head_of(s, &token.channels, h);
                    state.iter_mut().for_each(|x| *x *= token.decays[h].exp());
                    write(s, key, value, token.steps[h], state);
                    let mut own = read(s, query, state);
                    add_scaled(&mut own, value, call.skip.map_or(0.0, |skip| skip[h]));
                    out.row_mut(row)[h * s.value_dim..(h + 1) * s.value_dim].copy_from_slice(&own);
                }
            }
        }
        out
    }

    fn gate_output(_: &Self, call: &RecurrentCall<'_, Self>, inputs: &Matrix, out: &Matrix) -> Matrix {
        let mut gated = Matrix::zeros(out.rows(), out.width);
        for row in 0..out.rows() {
            let gate = gate_of(call.shape, inputs.row(row)).iter().map(|z| silu(*z));
            let values: Vec<f32> = if call.shape.has_beta() {
                normed(call, out.row(row)).iter().zip(gate).map(|(x, z)| x * z).collect()
            } else {
                normed(call, &out.row(row).iter().zip(gate).map(|(x, z)| x * z).collect::<Vec<_>>())
            };
            gated.row_mut(row).copy_from_slice(&values);
        }
        gated
    }

    fn recur_backward(
        _: &Self,
        call: &RecurrentCall<'_, Self>,
        inputs: &Matrix,
        out: &Matrix,
        d_gated: &Matrix,
        mut dw: Option<(&mut HostParams, RecurrentParams)>,
    ) -> Matrix {
        let s = call.shape;
        let mut d_inputs = Matrix::zeros(inputs.rows(), inputs.width);
        let mut d_out = Matrix::zeros(out.rows(), out.width);
        for row in 0..out.rows() {
            let (x, d) = (out.row(row), d_gated.row(row));
            let gate = gate_of(s, inputs.row(row)).to_vec();
            let gates: Vec<f32> = gate.iter().map(|z| silu(*z)).collect();
            let times = |a: &[f32], b: &[f32]| -> Vec<f32> { a.iter().zip(b).map(|(a, b)| a * b).collect() };
            let own = dw.as_mut().map(|(params, own)| &mut params[own.norm]);
            let (d_x, d_gates) = if s.has_beta() {
                (normed_backward(call, x, &times(d, &gates), own), times(d, &normed(call, x)))
            } else {
                let d_product = normed_backward(call, &times(x, &gates), d, own);
                (times(&d_product, &gates), times(&d_product, x))
            };
            d_out.row_mut(row).copy_from_slice(&d_x);
            let first = s.columns().gate;
            for (i, (d, z)) in d_gates.iter().zip(&gate).enumerate() {
                d_inputs.row_mut(row)[first + i] = d * silu_slope(*z);
            }
        }
        for span in call.spans {
            sequence_backward(call, span, inputs, &d_out, &mut d_inputs, &mut dw);
        }
        d_inputs
    }
}

/// What a token did to a head's state.
struct Trace {
    /// The decayed state before writing.
    before: Vec<f32>,
    /// What was written, before and after its step size.
    written: [Vec<f32>; 2],
    after: Vec<f32>,
}

fn sequence_backward(
    call: &RecurrentCall<'_, Reference>,
    span: &Span,
    inputs: &Matrix,
    d_out: &Matrix,
    d_inputs: &mut Matrix,
    dw: &mut Option<(&mut HostParams, RecurrentParams)>,
) {
    let s = call.shape;
    let mut state = State::new(s);
    let mut tokens = Vec::new();
    let mut traces: Vec<Vec<Trace>> = Vec::new();
    for row in span.rows.clone() {
        let token = token(call, &state.tail, inputs.row(row));
        state.tail = token.window[1..].to_vec();
        let trace = state.heads.iter_mut().enumerate().map(|(h, state)| {
            let [_, key, value] = head_of(s, &token.channels, h);
            state.iter_mut().for_each(|x| *x *= token.decays[h].exp());
            let before = state.clone();
            let written = write(s, key, value, token.steps[h], state);
            Trace { before, written, after: state.clone() }
        });
        traces.push(trace.collect());
        tokens.push(token);
    }
    let columns = s.columns();
    let mut d_states = vec![vec![0.0; s.key_dim * s.value_dim]; s.value_heads];
    let mut d_convolved = vec![vec![0.0; s.channels()]; tokens.len()];
    for (i, row) in span.rows.clone().enumerate().rev() {
        let token = &tokens[i];
        let mut d_channels = vec![0.0; s.channels()];
        for (h, d_state) in d_states.iter_mut().enumerate() {
            let Trace { before, written: [bracket, written], after } = &traces[i][h];
            let [query, key, value] = head_of(s, &token.channels, h);
            let d = &d_out.row(row)[h * s.value_dim..(h + 1) * s.value_dim];
            let own_key = h / (s.value_heads / s.key_heads) * s.key_dim;
            let at_value = 2 * s.key_width() + h * s.value_dim;
            let mut d_written = vec![0.0; s.value_dim];
            for k in 0..s.key_dim {
                let cells = k * s.value_dim..(k + 1) * s.value_dim;
                d_channels[own_key + k] += dot(&after[cells.clone()], d);
                add_scaled(&mut d_state[cells.clone()], d, query[k]);
                add_scaled(&mut d_written, &d_state[cells.clone()], key[k]);
                d_channels[s.key_width() + own_key + k] += dot(&d_state[cells], written);
            }
            let d_bracket: Vec<f32> = d_written.iter().map(|d| token.steps[h] * d).collect();
            add_scaled(&mut d_channels[at_value..at_value + s.value_dim], &d_bracket, 1.0);
            let mut d_step = dot(bracket, &d_written);
            if s.has_beta() {
                for k in 0..s.key_dim {
                    let cells = k * s.value_dim..(k + 1) * s.value_dim;
                    d_channels[s.key_width() + own_key + k] -= dot(&before[cells.clone()], &d_bracket);
                    add_scaled(&mut d_state[cells], &d_bracket, -key[k]);
                }
            } else if let Some(skip) = call.skip {
                add_scaled(&mut d_channels[at_value..at_value + s.value_dim], d, skip[h]);
                if let Some((params, RecurrentParams { skip: Some(index), .. })) = dw {
                    params[*index][h] += dot(d, value);
                }
            }
            let d_decay = dot(d_state, before);
            d_state.iter_mut().for_each(|x| *x *= token.decays[h].exp());
            let (rate, slope) = (-call.a_log[h].exp(), sigmoid(token.raw[h]));
            let d_raw = match s.rule {
                RecurrentRule::DeltaNet => {
                    let step = token.steps[h];
                    d_inputs.row_mut(row)[columns.steps + h] = d_step * step * (1.0 - step);
                    d_decay * rate * slope
                }
                RecurrentRule::Mamba2 { limits: (least, most) } => {
                    d_step += d_decay * rate;
                    let is_bound = token.steps[h] >= most || (least > 0.0 && token.steps[h] <= least);
                    if is_bound { 0.0 } else { d_step * slope }
                }
            };
            d_inputs.row_mut(row)[columns.decays + h] = d_raw;
            if let Some((params, own)) = dw {
                params[own.a_log][h] += d_decay * token.decays[h];
                params[own.dt_bias][h] += d_raw;
            }
        }
        if s.has_beta() {
            for part in 0..2 {
                for head in 0..s.key_heads {
                    let at = part * s.key_width() + head * s.key_dim;
                    let x: Vec<f32> = token.convolved[at..at + s.key_dim].iter().map(|x| silu(*x)).collect();
                    let (inverse, scale) = unit(s, part, &x);
                    let d = d_channels[at..at + s.key_dim].to_vec();
                    let along = dot(&x, &d) * inverse * inverse * inverse;
                    for i in 0..s.key_dim {
                        d_channels[at + i] = scale * (inverse * d[i] - along * x[i]);
                    }
                }
            }
        }
        for (c, d) in d_channels.iter().enumerate() {
            d_convolved[i][c] = d * silu_slope(token.convolved[c]);
        }
    }
    let widths = [s.key_width(), s.key_width(), s.value_width()];
    let starts = [columns.queries, columns.keys, columns.values];
    for (i, d) in d_convolved.iter().enumerate() {
        let mut at = 0;
        for (part, width) in widths.into_iter().enumerate() {
            for c in at..at + width {
                for (t, x) in tokens[i].window.iter().enumerate() {
                    let source = (i + t).checked_sub(s.kernel - 1);
                    if let Some(source) = source {
                        d_inputs.row_mut(span.rows.start + source)[starts[part] + c - at] +=
                            call.conv[c * s.kernel + t] * d[c];
                    }
                    if let Some((params, own)) = dw {
                        params[own.conv[part]][(c - at) * s.kernel + t] += d[c] * x[c];
                    }
                }
                if let Some((params, RecurrentParams { conv_bias: Some(bias), .. })) = dw {
                    params[bias[part]][c - at] += d[c];
                }
            }
            at += width;
        }
    }
}

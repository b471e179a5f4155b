//! Linear layers with adapters.

use super::{Matrix, add_scaled, dot};
use crate::host::HostParams;
use crate::{GradientSlot, LinearCall, LoraSegment, Rows, WeightPart};

use super::Reference;

/// `x Wᵀ` of some rows.
fn times(x: &Matrix, rows: std::ops::Range<usize>, w: &Matrix) -> Matrix {
    let data = rows.flat_map(|row| (0..w.rows()).map(move |n| (row, n))).map(|(row, n)| dot(x.row(row), w.row(n)));
    Matrix::new(data.collect(), w.rows())
}

pub(super) fn forward(
    call: &LinearCall<'_, Reference>,
    x: &Matrix,
    residual: Option<&Matrix>,
    out: &mut Matrix,
) -> Vec<Matrix> {
    for row in 0..x.rows() {
        for n in 0..call.weight.rows() {
            let y = dot(x.row(row), call.weight.row(n)) + call.bias.map_or(0.0, |bias| bias[n]);
            out.row_mut(row)[n] = residual.map_or(0.0, |residual| residual.row(row)[n]) + y;
        }
    }
    let mut zs = Vec::new();
    for s in call.lora {
        let mut z = times(x, s.rows.clone(), s.a);
        z.data.iter_mut().for_each(|z| *z *= s.scale);
        for (i, row) in s.rows.clone().enumerate() {
            for n in 0..s.extents.0 {
                out.row_mut(row)[s.column + n] += dot(z.row(i), s.b.row(n));
            }
        }
        zs.push(z);
    }
    zs
}

pub(super) fn backward(call: &LinearCall<'_, Reference>, dy: &Matrix, dx: &mut Matrix) -> Vec<Matrix> {
    dx.data.fill(0.0);
    for row in 0..dy.rows() {
        for (n, d) in dy.row(row).iter().enumerate() {
            add_scaled(dx.row_mut(row), call.weight.row(n), *d);
        }
    }
    let mut dzs = Vec::new();
    for s in call.lora {
        let mut dz = Matrix::zeros(if s.trains { s.rows.len() } else { 0 }, s.rank);
        for (i, row) in s.rows.clone().enumerate().filter(|_| s.trains) {
            for n in 0..s.extents.0 {
                add_scaled(dz.row_mut(i), s.b.row(n), s.scale * dy.row(row)[s.column + n]);
            }
            for (r, d) in dz.row(i).iter().enumerate() {
                add_scaled(dx.row_mut(row), s.a.row(r), *d);
            }
        }
        dzs.push(dz);
    }
    dzs
}

pub(super) fn lora_gradients(
    lora: &[LoraSegment<'_, Reference>],
    x: &Matrix,
    dy: &Matrix,
    [zs, dzs]: [&Vec<Matrix>; 2],
    sinks: &mut [Option<&mut HostParams>],
) {
    for (s, (z, dz)) in lora.iter().zip(zs.iter().zip(dzs)).filter(|(s, _)| s.trains) {
        let Some(grads) = sinks[s.group].as_deref_mut() else { continue };
        for (i, row) in s.rows.clone().enumerate() {
            if let Some(GradientSlot { param, first }) = s.grads[0] {
                add_outer(&mut grads[param][first..][..s.rank * s.extents.1], dz.row(i), x.row(row));
            }
            if let Some(GradientSlot { param, first }) = s.grads[1] {
                let dy = &dy.row(row)[s.column..][..s.extents.0];
                add_outer(&mut grads[param][first..][..s.extents.0 * s.rank], dy, z.row(i));
            }
        }
    }
}

pub(super) fn weight_gradients(parts: &[WeightPart], x: &Matrix, dy: &Matrix, grads: &mut HostParams) {
    for part in parts {
        for row in 0..x.rows() {
            let dy = &dy.row(row)[part.column..][..part.outputs];
            add_outer(&mut grads[part.weight], dy, x.row(row));
            if let Some(bias) = part.bias {
                add_scaled(&mut grads[bias], dy, 1.0);
            }
        }
    }
}

/// `out[n, k] += left[n] · right[k]`.
pub(super) fn add_outer(out: &mut [f32], left: &[f32], right: &[f32]) {
    for (out, left) in out.chunks_exact_mut(right.len()).zip(left) {
        add_scaled(out, right, *left);
    }
}

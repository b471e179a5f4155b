//! Sigmoid gates on the outputs of attention, and their backward pass.

use super::attention::rotate_backward;
use super::{Matrix, Reference};
use crate::host::HostParams;
use crate::{AttentionShape, GateOps, Rotation, Rows};

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

impl GateOps<Self> for Reference {
    const HAS_GATES: bool = true;

    fn split_gates(_: &Self, shape: &AttentionShape, projected: &Matrix) -> [Matrix; 2] {
        let (q, hd) = (shape.q_width(), shape.head_dim);
        let (mut qkv, mut gates) = (Vec::new(), Vec::new());
        for row in 0..projected.rows() {
            let (heads, rest) = projected.row(row).split_at(2 * q);
            qkv.extend(heads.chunks_exact(2 * hd).flat_map(|head| &head[..hd]));
            qkv.extend(rest);
            gates.extend(heads.chunks_exact(2 * hd).flat_map(|head| &head[hd..]));
        }
        [Matrix::new(qkv, shape.qkv_width()), Matrix::new(gates, q)]
    }

    fn join_gates(_: &Self, shape: &AttentionShape, qkv: &Matrix, gates: &Matrix) -> Matrix {
        let (q, hd) = (shape.q_width(), shape.head_dim);
        let mut joined = Vec::new();
        for row in 0..qkv.rows() {
            let heads = qkv.row(row)[..q].chunks_exact(hd).zip(gates.row(row).chunks_exact(hd));
            joined.extend(heads.flat_map(|(queries, gates)| [queries, gates].concat()));
            joined.extend(&qkv.row(row)[q..]);
        }
        Matrix::new(joined, shape.qkv_width() + q)
    }

    fn gate_heads(_: &Self, heads: &Matrix, gates: &Matrix) -> Matrix {
        Matrix::new(heads.data.iter().zip(&gates.data).map(|(x, g)| x * sigmoid(*g)).collect(), heads.width)
    }

    fn gate_heads_backward(_: &Self, heads: &Matrix, gates: &Matrix, d_out: &Matrix) -> [Matrix; 2] {
        let d_heads = d_out.data.iter().zip(&gates.data).map(|(d, g)| d * sigmoid(*g)).collect();
        let d_gates = d_out.data.iter().zip(&heads.data).zip(&gates.data).map(|((d, x), g)| {
            let s = sigmoid(*g);
            d * x * s * (1.0 - s)
        });
        [Matrix::new(d_heads, heads.width), Matrix::new(d_gates.collect(), heads.width)]
    }

    fn rotate_backward_rows(
        _: &Self,
        rotation: &Rotation<'_, Self>,
        before: Option<&Matrix>,
        mut d_qkv: Matrix,
        dw: Option<(&mut HostParams, [usize; 2])>,
    ) -> Matrix {
        rotate_backward(rotation, before, &mut d_qkv, dw);
        d_qkv
    }
}

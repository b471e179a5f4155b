//! Attention whose output is multiplied by a gate for each head.

use super::Cpu;
use super::parallel::for_rows;
use super::rows::HostRows;
use super::vexp::{multiversion, sigmoid};
use crate::host::HostParams;
use crate::{AttentionShape, GateOps, Rotation, Rows};

multiversion! {
    fn gate_row(x: &[f32], gates: &[f32], out: &mut [f32]) {
        for ((out, x), g) in out.iter_mut().zip(x).zip(gates) {
            *out = x * sigmoid(*g);
        }
    }
}

multiversion! {
    fn gate_gradient_row(d: &[f32], x: &[f32], gates: &[f32], out: &mut [f32]) {
        for (((out, d), x), g) in out.iter_mut().zip(d).zip(x).zip(gates) {
            let s = sigmoid(*g);
            *out = d * x * (s * (1.0 - s));
        }
    }
}

fn row_of(x: &HostRows, row: usize) -> &[f32] {
    &x[row * x.width()..(row + 1) * x.width()]
}

impl GateOps<Self> for Cpu {
    const HAS_GATES: bool = true;

    fn split_gates(cpu: &Self, shape: &AttentionShape, projected: &HostRows) -> [HostRows; 2] {
        let (q, hd) = (shape.q_width(), shape.head_dim);
        let mut qkv = HostRows::alloc(cpu, projected.rows(), shape.qkv_width());
        let mut gates = HostRows::alloc(cpu, projected.rows(), q);
        for_rows(cpu, &mut qkv, shape.qkv_width(), |row, out| {
            let (heads, rest) = row_of(projected, row).split_at(2 * q);
            for (to, head) in out.chunks_exact_mut(hd).zip(heads.chunks_exact(2 * hd)) {
                to.copy_from_slice(&head[..hd]);
            }
            out[q..].copy_from_slice(rest);
        });
        for_rows(cpu, &mut gates, q, |row, out| {
            for (to, head) in out.chunks_exact_mut(hd).zip(row_of(projected, row).chunks_exact(2 * hd)) {
                to.copy_from_slice(&head[hd..]);
            }
        });
        [qkv, gates]
    }

    fn join_gates(cpu: &Self, shape: &AttentionShape, qkv: &HostRows, gates: &HostRows) -> HostRows {
        let (q, hd) = (shape.q_width(), shape.head_dim);
        let mut joined = HostRows::alloc(cpu, qkv.rows(), shape.qkv_width() + q);
        for_rows(cpu, &mut joined, shape.qkv_width() + q, |row, out| {
            let (queries, rest) = row_of(qkv, row).split_at(q);
            let (heads, behind) = out.split_at_mut(2 * q);
            let sources = queries.chunks_exact(hd).zip(row_of(gates, row).chunks_exact(hd));
            for (to, (query, gate)) in heads.chunks_exact_mut(2 * hd).zip(sources) {
                to[..hd].copy_from_slice(query);
                to[hd..].copy_from_slice(gate);
            }
            behind.copy_from_slice(rest);
        });
        joined
    }

    fn gate_heads(cpu: &Self, heads: &HostRows, gates: &HostRows) -> HostRows {
        let mut out = HostRows::alloc(cpu, heads.rows(), heads.width());
        for_rows(cpu, &mut out, heads.width(), |row, out| {
            gate_row(cpu.isa(), row_of(heads, row), row_of(gates, row), out);
        });
        out
    }

    fn gate_heads_backward(cpu: &Self, heads: &HostRows, gates: &HostRows, d_out: &HostRows) -> [HostRows; 2] {
        let d_heads = Self::gate_heads(cpu, d_out, gates);
        let mut d_gates = HostRows::alloc(cpu, heads.rows(), heads.width());
        for_rows(cpu, &mut d_gates, heads.width(), |row, out| {
            gate_gradient_row(cpu.isa(), row_of(d_out, row), row_of(heads, row), row_of(gates, row), out);
        });
        [d_heads, d_gates]
    }

    fn rotate_backward_rows(
        cpu: &Self,
        rotation: &Rotation<'_, Self>,
        before: Option<&HostRows>,
        mut d_qkv: HostRows,
        dw: Option<(&mut HostParams, [usize; 2])>,
    ) -> HostRows {
        cpu.rotate_gradient(rotation, before, &mut d_qkv, dw);
        d_qkv
    }
}

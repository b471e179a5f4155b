//! Heads with one output. A row is one dot product of its width, whose cost is negligible next to a pass through the
//! model, so one thread computes it.

use std::ops::Range;

use super::Cpu;
use super::rows::HostRows;
use super::vexp::{dot, multiversion};
use crate::host::HostParams;
use crate::{Rows, ScalarHead};

multiversion! {
    fn row_value(x: &[f32], w: &[f32], b: f32) -> f32 {
        dot(x, w) + b
    }
}

multiversion! {
    /// `dx = dy · w`.
    fn write_scaled(dx: &mut [f32], w: &[f32], dy: f32) {
        for (dx, w) in dx.iter_mut().zip(w) {
            *dx = dy * w;
        }
    }
}

multiversion! {
    /// `dw += dy · x`.
    fn add_row(dw: &mut [f32], x: &[f32], dy: f32) {
        for (dw, x) in dw.iter_mut().zip(x) {
            *dw += dy * x;
        }
    }
}

/// The weight and the bias.
fn parts(head: ScalarHead<'_, Cpu>) -> (&[f32], f32) {
    (&head.params[head.weight], head.params[head.weight + 1][0])
}

pub(super) fn scalar_head(cpu: &Cpu, head: ScalarHead<'_, Cpu>, x: &HostRows, rows: Range<usize>) -> Vec<f32> {
    let ((w, b), width) = (parts(head), x.width());
    rows.map(|row| row_value(cpu.isa(), &x[row * width..][..width], w, b)).collect()
}

pub(super) fn scalar_head_backward(
    cpu: &Cpu,
    head: ScalarHead<'_, Cpu>,
    x: &HostRows,
    rows: Range<usize>,
    dy: &[f32],
    dx: &mut HostRows,
    mut grads: Option<&mut HostParams>,
) {
    let ((w, _), width) = (parts(head), x.width());
    assert!(rows.len() == dy.len(), "expected one gradient for each row");
    for (row, dy) in rows.zip(dy) {
        let columns = row * width..(row + 1) * width;
        write_scaled(cpu.isa(), &mut dx[columns.clone()], w, *dy);
        if let Some(grads) = &mut grads {
            add_row(cpu.isa(), &mut grads[head.weight], &x[columns], *dy);
            grads[head.weight + 1][0] += dy;
        }
    }
}

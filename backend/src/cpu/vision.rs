//! Ops of vision towers.

use std::ops::Range;

use super::Cpu;
use super::attention::attention_within;
use super::elementwise::gelu_tanh;
use super::gemm::PackedLhs;
#[cfg(target_arch = "x86_64")]
use super::gemm::{ActivatedGemm, run_activated_gemm};
use super::parallel::for_rows;
use super::rows::HostRows;
use super::vexp::{exp, multiversion, sum_by};
use crate::{Backend, Gelu, LayerNorm, LinearCall, RowMix, Rows, VisionOps};

multiversion! {
    fn layer_norm_row(x: &[f32], w: &[f32], b: &[f32], eps: f32, y: &mut [f32]) {
        let n = x.len() as f32;
        let mean = sum_by(x, |x| x) / n;
        let variance = sum_by(x, |x| (x - mean) * (x - mean)) / n;
        let scale = 1.0 / (variance + eps).sqrt();
        for (((y, x), w), b) in y.iter_mut().zip(x).zip(w).zip(b) {
            *y = (x - mean) * scale * w + b;
        }
    }
}

/// The error function, with an absolute error of about two ulps of 1 (Abramowitz & Stegun 1964, 7.1.26).
#[inline(always)]
fn erf(x: f32) -> f32 {
    let a = if x < 0.0 { -x } else { x };
    let t = 1.0 / (0.327_591_1f32.mul_add(a, 1.0));
    let mut p = 1.061_405_4f32;
    p = p.mul_add(t, -1.453_152_1);
    p = p.mul_add(t, 1.421_413_8);
    p = p.mul_add(t, -0.284_496_72);
    p = p.mul_add(t, 0.254_829_6);
    let y = 1.0 - p * t * exp(-a * a);
    if x < 0.0 { -y } else { y }
}

multiversion! {
    fn gelu_row(x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = gelu_tanh(*x);
        }
    }
}

multiversion! {
    fn gelu_erf_row(x: &[f32], y: &mut [f32]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2));
        }
    }
}

multiversion! {
    fn add_scaled(from: &[f32], scale: f32, to: &mut [f32]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = scale.mul_add(*from, *to);
        }
    }
}

fn row_of(x: &HostRows, row: usize) -> &[f32] {
    &x[row * x.width()..(row + 1) * x.width()]
}

impl VisionOps<Self> for Cpu {
    fn upload_rows(cpu: &Self, values: &[f32], width: usize) -> HostRows {
        let mut rows = HostRows::alloc(cpu, values.len() / width, width);
        rows.copy_from_slice(values);
        rows
    }

    fn layer_norm(cpu: &Self, norm: LayerNorm<'_, Self>, x: &HostRows) -> HostRows {
        let LayerNorm { weight, bias, eps } = norm;
        assert!(weight.len() == x.width() && bias.len() == x.width(), "the norm's width differs");
        let mut out = HostRows::alloc(cpu, x.rows(), x.width());
        for_rows(cpu, &mut out, x.width(), |row, out| {
            layer_norm_row(cpu.isa(), row_of(x, row), weight, bias, eps, out)
        });
        out
    }

    fn gelu(cpu: &Self, kind: Gelu, x: &HostRows) -> PackedLhs {
        PackedLhs::of_rows(cpu, cpu.dtype, x.rows(), x.width(), |row, out| match kind {
            Gelu::Tanh => gelu_row(cpu.isa(), row_of(x, row), out),
            Gelu::Erf => gelu_erf_row(cpu.isa(), row_of(x, row), out),
        })
    }

    fn layer_norm_lhs(cpu: &Self, norm: LayerNorm<'_, Self>, x: &HostRows) -> PackedLhs {
        let LayerNorm { weight, bias, eps } = norm;
        assert!(weight.len() == x.width() && bias.len() == x.width(), "the norm's width differs");
        PackedLhs::of_rows(cpu, cpu.dtype, x.rows(), x.width(), |row, out| {
            layer_norm_row(cpu.isa(), row_of(x, row), weight, bias, eps, out)
        })
    }

    fn linear_gelu(cpu: &Self, call: &LinearCall<'_, Self>, kind: Gelu, x: &PackedLhs) -> PackedLhs {
        #[cfg(target_arch = "x86_64")]
        if call.lora.is_empty() {
            let act = match kind {
                Gelu::Tanh => gelu_row,
                Gelu::Erf => gelu_erf_row,
            };
            let gemm = ActivatedGemm { x, w: call.weight.packed(), bias: call.bias.map(|bias| &bias[..]), act };
            if let Some(activated) = run_activated_gemm(cpu, &gemm) {
                return activated;
            }
        }
        let mut out = HostRows::alloc(cpu, x.rows(), call.weight.packed().n());
        cpu.linear(call, x, None, &mut out);
        Self::gelu(cpu, kind, &out)
    }

    fn mix_rows(cpu: &Self, table: &HostRows, mix: &RowMix) -> HostRows {
        let RowMix { per_row, rows, weights } = mix;
        assert!(rows.len() == weights.len(), "expected a factor for each row");
        let mut out = HostRows::zeros(cpu, rows.len() / per_row, table.width());
        for_rows(cpu, &mut out, table.width(), |row, out| {
            let own = row * per_row..(row + 1) * per_row;
            for (from, weight) in rows[own.clone()].iter().zip(&weights[own]) {
                add_scaled(cpu.isa(), row_of(table, *from), *weight, out);
            }
        });
        out
    }

    fn attend_all(cpu: &Self, heads: usize, images: &[Range<usize>], qkv: &HostRows) -> HostRows {
        let mut out = HostRows::alloc(cpu, qkv.rows(), qkv.width() / 3);
        attention_within(cpu, heads, images, qkv, &mut out);
        out
    }

    fn join_rows(cpu: &Self, x: HostRows, count: usize) -> HostRows {
        assert!(x.rows().is_multiple_of(count), "the number of rows is not a multiple of the group size");
        let mut out = HostRows::alloc(cpu, x.rows() / count, x.width() * count);
        out.copy_from_slice(&x);
        out
    }

    fn add_rows(cpu: &Self, from: &HostRows, rows: &[usize], to: &mut HostRows) {
        assert!(from.width() == to.width() && from.rows() == rows.len(), "row extents differ");
        let width = to.width();
        for (i, row) in rows.iter().enumerate() {
            add_scaled(cpu.isa(), row_of(from, i), 1.0, &mut to[row * width..(row + 1) * width]);
        }
    }
}

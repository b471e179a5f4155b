//! Operands that are packed while their rows are computed have the bits of rows that are packed afterwards.

use proptest::prelude::*;

use super::support::{bits, values};
use crate::cpu::elementwise::gated_row;
use crate::cpu::gemm::{Gemm, PackedLhs, PackedSide, SumStart, run_gated_gemm, uses_tiles};
use crate::cpu::operands::{Operand, OutputGradient, WeightInput};
use crate::cpu::rope::Rope;
use crate::cpu::rows::HostRows;
use crate::cpu::{Cpu, Isa};
use crate::rope::rope_table;
use crate::rope::{RopeConfig, RopeScaling};
use crate::{
    Activation, AttentionShape, Backend, GradientSlot, Held, IndexKeys, LinearCall, LoraSegment, MatrixRole, Norm,
    Rotation, Source,
};

fn rows(cpu: &Cpu, values: &[f32], width: usize) -> HostRows {
    let mut rows = HostRows::alloc(cpu, values.len() / width, width);
    rows.copy_from_slice(values);
    rows
}

fn words(side: Option<&PackedSide>) -> Vec<u32> {
    side.map_or_else(Vec::new, |side| side.words().to_vec())
}

fn same_gradients(found: &OutputGradient<'_>, expected: &OutputGradient<'_>) {
    let lhs = |lhs: &PackedLhs| lhs.to_rows().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(lhs(&found.lhs), lhs(&expected.lhs));
    same_operands(found.operand(), expected.operand());
}

fn same_operands(found: Operand<'_>, expected: Operand<'_>) {
    assert_eq!(found.width, expected.width);
    assert_eq!(words(found.packed), words(expected.packed));
    if found.packed.is_none() {
        assert_eq!(found.rows, expected.rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn fused_operands_are_those_of_stored_rows(lens in prop::collection::vec(1usize..70, 1..4), tiles in 1usize..12, seed: u64) {
        let (count, width) = (lens.iter().sum::<usize>(), 32 * tiles);
        let mut end = 0;
        let sequences: Vec<_> = lens.iter().map(|len| { end += len; end - len..end }).collect();
        for cpu in Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa)) {
            let (x, d) = (values(count * 2 * width, seed), values(count * width, seed ^ 1));
            for activation in [Activation::Silu, Activation::GeluTanh] {
                let run = |biased| {
                    let (gate_up, d_out) = (rows(&cpu, &x, 2 * width), rows(&cpu, &d, width));
                    cpu.activate_backward(activation, gate_up, d_out, &sequences, biased)
                };
                let ((dy, act), (stored, stored_act)) = (run(false), run(true));
                prop_assert_eq!(dy.operand().rows.is_empty(), uses_tiles(&cpu));
                same_gradients(&dy, &stored);
                same_operands(act.operand(), stored_act.operand());
            }

            let weight = values(width, seed ^ 2);
            let norm = Norm { weight: &weight, eps: 1e-5 };
            let x = rows(&cpu, &d, width);
            let stored = WeightInput::new(&cpu, Held::Owned(cpu.norm(norm, &x)), &sequences);
            same_operands(cpu.norm_input(norm, &x, &sequences).operand(), stored.operand());

            let shape = AttentionShape { layers: 1, heads: 2, kv_heads: 1, head_dim: 2 * tiles, scale: 1.0, index: IndexKeys::NONE };
            let config = RopeConfig { theta: 1e4, scaling: RopeScaling::None };
            let rope = Rope::new(tiles, rope_table(&config, shape.head_dim, 70));
            let positions: Vec<u32> = lens.iter().flat_map(|len| 0..*len as u32).collect();
            let values = values(count * shape.qkv_width(), seed ^ 3);
            let mut rotated = rows(&cpu, &values, shape.qkv_width());
            rope.apply(&cpu, &mut rotated, shape.qkv_width(), 0, 3, shape.head_dim, &positions, true);
            let stored = OutputGradient::new(&cpu, Held::Owned(rotated), &sequences);
            let rotation = Rotation { shape: &shape, norms: None, whole_norms: false, rope: &rope, query_rope: None, positions: &positions };
            let d_qkv = rows(&cpu, &values, shape.qkv_width());
            let fused = cpu.rotate_backward(&rotation, None, d_qkv, None, &sequences);
            same_gradients(&fused, &stored);
            assert_eq!(fused.rows(), stored.rows());
        }
    }

    #[test]
    fn fused_activations_have_the_bits_of_a_pass_of_their_own(
        count in 1usize..200, first in 0usize..200, tiled in prop::bool::ANY, k in 1usize..100, width in 1usize..4, odd in prop::bool::ANY, seed: u64,
    ) {
        let width = 32 * width + if odd { 8 } else { 0 };
        // Groups of whole tiles are updated while sums are in registers.
        let first = if tiled { first / 16 * 16 } else { first }.min(count);
        for cpu in Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa)) {
            let pack = |n: usize, k: usize, role, seed| cpu.pack(&[Source::Host(&values(n * k, seed))], k, role);
            let weight = pack(2 * width, k, MatrixRole::Base, seed);
            let pairs = [0, 1, 2, 3].map(|i| {
                (pack(32, k, MatrixRole::Adapter, seed ^ (2 * i + 8)), pack(width, 32, MatrixRole::Adapter, seed ^ (2 * i + 9)))
            });
            let segments = |(i, (a, b))| {
                let (group, column) = (i / 2, i % 2 * width);
                let rows = if group == 0 { 0..first } else { first..count };
                let grads = GradientSlot::pair(0);
                LoraSegment { group, rows, column, extents: (width, k), rank: 32, scale: 0.5, a, b, grads, trains: false }
            };
            let all = pairs.iter().map(|(a, b)| (a, b)).enumerate().map(segments);
            let lora: Vec<_> = all.filter(|segment: &LoraSegment<'_, Cpu>| !segment.rows.is_empty()).collect();
            let x = cpu.lhs(&rows(&cpu, &values(count * k, seed ^ 1), k));
            let bias = values(2 * width, seed ^ 2);
            let calls = [(None, &lora[..0]), (None, &lora[lora.len() - 2..]), (None, &lora[..]), (Some(&bias), &lora[..])];
            for (bias, lora) in calls {
                let call = LinearCall { weight: &weight, bias, lora };
                let (mut fused, mut own) = (cpu.alloc(count, 2 * width), cpu.alloc(count, 2 * width));
                let (zs, act) = cpu.linear_activated(&call, &x, Activation::Silu, &mut fused);
                let expected = cpu.linear(&call, &x, None, &mut own);
                prop_assert_eq!(bits(&fused), bits(&own));
                prop_assert_eq!(bits(&act.to_rows()), bits(&cpu.activate(Activation::Silu, &own).to_rows()));
                for (z, expected) in zs.iter().zip(&expected) {
                    prop_assert_eq!(bits(z), bits(expected));
                }
            }
        }
    }
}

/// Several parts of `k`, and an output that is written past the caches.
#[test]
fn wide_outputs_are_activated_on_the_way_where_gemms_have_tiles() {
    let (count, k, width) = (300, 600, 512);
    for cpu in Isa::available().into_iter().map(|isa| Cpu::with_isa(2, isa)) {
        let weight = cpu.pack(&[Source::Host(&values(2 * width * k, 1))], k, MatrixRole::Base);
        let x = cpu.lhs(&rows(&cpu, &values(count * k, 2), k));
        for activation in [Activation::Silu, Activation::GeluTanh, Activation::ClampedSwish] {
            let (mut out, mut own) = (cpu.alloc(count, 2 * width), cpu.alloc(count, 2 * width));
            let (w, start) = (weight.packed().into(), SumStart::Zero);
            let mut gemm =
                Gemm { x: &x, rows: 0..count, x_k: 0, w, out: &mut out, start, low_rank: Vec::new(), bias: None };
            let act = run_gated_gemm(&cpu, &mut gemm, gated_row(activation).unwrap());
            assert_eq!(act.is_some(), uses_tiles(&cpu), "{:?}", cpu.isa());
            let Some(act) = act else { continue };
            cpu.linear(&LinearCall { weight: &weight, bias: None, lora: &[] }, &x, None, &mut own);
            assert_eq!(bits(&out), bits(&own));
            assert_eq!(bits(&act.to_rows()), bits(&cpu.activate(activation, &own).to_rows()));
        }
    }
}

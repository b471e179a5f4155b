//! Products with weights in blocks against those with the same weights widened: equal bits.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;

use super::*;
use crate::blocks::tests::{rows, with_first_scale};
use crate::blocks::{BLOCK, BlockFormat, BlockRows};
use crate::cpu::packed::{PackedMatrix, PartRows};
use crate::cpu::{Cpu, Isa};
use crate::{Dtype, PlannedPart};

fn values(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| (((i * 7919 + seed * 104_729) % 1021) as f32 - 510.0) / 384.0).collect()
}

/// The same matrix in blocks and widened.
fn both(cpu: &Cpu, dtype: Dtype, k: usize, parts: &[BlockRows], dense: &[f32]) -> [PackedMatrix; 2] {
    let kept: Vec<_> = parts.iter().map(PartRows::Blocks).chain([PartRows::Values(dense)]).collect();
    let widened: Vec<Vec<f32>> = parts.iter().map(|part| part.values(0..part.rows())).collect();
    let widened: Vec<&[f32]> = widened.iter().map(|part| &part[..]).chain([dense]).collect();
    [PackedMatrix::of_blocks(cpu, dtype, k, &kept), PackedMatrix::pack(cpu, dtype, k, &widened)]
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocks_give_the_bits_of_widened_weights(
        m in prop_oneof![1usize..20, 30usize..70],
        first in 1usize..80,
        second in 0usize..70,
        steps in prop_oneof![1usize..6, 23usize..27],
        formats in (0..BlockFormat::ALL.len(), 0..BlockFormat::ALL.len()),
        dense in prop_oneof![Just(0usize), 1usize..9],
        from in 0usize..3,
        accumulate: bool,
    ) {
        let together = formats.0.max(formats.1);
        let steps = steps.next_multiple_of(BlockFormat::ALL[together].elements() / BLOCK);
        let k = steps * BLOCK;
        let parts: Vec<_> = [(first, formats.0), (second, formats.1)]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, format)| rows(BlockFormat::ALL[format], count, k, count as u32))
            .collect();
        let plain = values(dense * k, 5);
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa);
            for dtype in [Dtype::Bf16, Dtype::F32] {
                let [kept, widened] = both(&cpu, dtype, k, &parts, &plain);
                let n = widened.n();
                prop_assert_eq!((kept.n(), kept.k(), kept.dtype()), (n, k, dtype));
                prop_assert_eq!(bits(&kept.to_rows(&cpu)), bits(&widened.to_rows(&cpu)), "{:?} {:?}", isa, dtype);
                prop_assert_eq!(kept.get(n - 1, k - 1).to_bits(), widened.get(n - 1, k - 1).to_bits());
                prop_assert!(dense > 0 || second > 0 || kept.bytes() * 4 < widened.bytes() * 3);
                let planned = parts.iter().map(|part| (part.rows(), Some(part.format()))).chain([(dense, None)]);
                let planned: Vec<_> = planned.map(|(outputs, format)| PlannedPart { outputs, format }).collect();
                prop_assert_eq!(PackedMatrix::block_bytes_of(dtype, &planned, k), kept.bytes());
                let (x, old) = (values(m * k, 1), values(m * n, 2));
                let lhs = PackedLhs::new(&cpu, dtype, &x, k);
                let (mut found, mut expected) = (old.clone(), old);
                matmul(&cpu, &lhs, &kept, &mut found, accumulate);
                matmul(&cpu, &lhs, &widened, &mut expected, accumulate);
                prop_assert_eq!(bits(&found), bits(&expected), "{:?} {:?}", isa, dtype);
                // The transpose, whole and from a multiple of a block on.
                let (dy, old) = (values(m * n, 3), values(m * k, 4));
                let (packed, lhs) = (widened.transposed(&cpu), PackedLhs::new(&cpu, dtype, &dy, n));
                let transpose = GemmRhs::transpose(&cpu, &kept).unwrap();
                let (mut found, mut expected) = (old.clone(), old);
                matmul(&cpu, &lhs, transpose, &mut found, accumulate);
                matmul(&cpu, &lhs, &packed, &mut expected, accumulate);
                prop_assert_eq!(bits(&found), bits(&expected), "transpose {:?} {:?}", isa, dtype);
                let from = (from * BLOCK).min(n - 1) / BLOCK * BLOCK;
                let part: Vec<f32> = dy.chunks_exact(n).flat_map(|row| row[from..].to_vec()).collect();
                let part = PackedLhs::new(&cpu, dtype, &part, n - from);
                matmul_block(&cpu, &part, 0..m, transpose, 0..k, from..n, &mut found, k, true);
                matmul_block(&cpu, &part, 0..m, &packed, 0..k, from..n, &mut expected, k, true);
                prop_assert_eq!(bits(&found), bits(&expected), "transpose {:?} {:?} from {}", isa, dtype, from);
            }
        }
    }
}

/// Inputs of a few rows: ordinary ones, ones with numbers whose products are denormal, and zeros.
fn inputs(m: usize, k: usize) -> [Vec<f32>; 3] {
    let ordinary = values(m * k, 6);
    let tiny = ordinary.iter().enumerate().map(|(i, x)| if i % 7 == 0 { x * 1e-39 } else { 0.0 * x }).collect();
    let zeros = ordinary.iter().map(|x| 0.0 * x).collect();
    [ordinary, tiny, zeros]
}

#[test]
fn few_rows_of_any_values_give_the_bits_of_widened_weights() {
    let (n, k) = (70, 512);
    for format in BlockFormat::ALL {
        let finite = rows(format, n, k, 7);
        let zeros = BlockRows::new(format, k, vec![0; finite.bytes()]).unwrap();
        let infinite = with_first_scale(finite.clone(), f32::INFINITY);
        let cases = [finite.clone(), with_first_scale(finite, -1e-7), zeros, infinite];
        for (isa, dtype) in Isa::available().into_iter().flat_map(|isa| [(isa, Dtype::Bf16), (isa, Dtype::F32)]) {
            let cpu = Cpu::with_isa(2, isa);
            for (i, blocks) in cases.iter().enumerate() {
                let [kept, widened] = both(&cpu, dtype, k, std::slice::from_ref(blocks), &[]);
                for m in [1, 2, 3, 4, 7, 15, 16] {
                    for (j, x) in inputs(m, k).iter().enumerate() {
                        let lhs = PackedLhs::new(&cpu, dtype, x, k);
                        for old in [None, Some(-0f32), Some(1.5)] {
                            let (mut found, mut expected) = (vec![old.unwrap_or(7.0); m * n], Vec::new());
                            expected.clone_from(&found);
                            matmul(&cpu, &lhs, &kept, &mut found, old.is_some());
                            matmul(&cpu, &lhs, &widened, &mut expected, old.is_some());
                            let what = format!("{format:?} {isa:?} {dtype:?} {m} rows, case {i}, input {j}, {old:?}");
                            assert_eq!(bits(&found), bits(&expected), "{what}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn repacking_replaces_blocks() {
    let cpu = Cpu::new(2);
    let [mut kept, _] = both(&cpu, Dtype::Bf16, 64, &[rows(BlockFormat::Q4_1, 40, 64, 1)], &[]);
    let new = values(40 * 64, 9);
    let expected = PackedMatrix::pack(&cpu, Dtype::Bf16, 64, &[&new]);
    kept.repack(&cpu, &[&new], true);
    assert!(kept.blocks().is_none());
    assert_eq!(bits(&kept.to_rows(&cpu)), bits(&expected.to_rows(&cpu)));
}

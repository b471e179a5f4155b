//! Ops on a part of the vocabulary on each class of kernels against the reference backend. The last rows of the
//! unembedding may not be tokens.

use proptest::prelude::*;

use crate::Dtype;
use crate::check::assert_close;
use crate::check::{self, HostAccess, head_parts, score_parts};
use crate::cpu::{Cpu, Isa};
use crate::reference::Reference;

fn spread<B: HostAccess>(b: &B, at: &[usize], rows: usize, width: usize) -> Vec<u32> {
    check::spread(b, at, rows, width).remove(0).1.into_iter().map(f32::to_bits).collect()
}

#[test]
fn rows_that_are_elsewhere_are_negative_zeros() {
    for isa in Isa::available() {
        let cpu = Cpu::with_isa(2, isa);
        for at in [&[4, 0, 2][..], &[1], &[]] {
            let (found, expected) = (spread(&cpu, at, 6, 7), spread(&Reference, at, 6, 7));
            assert_eq!(found, expected);
            assert_eq!(found.iter().filter(|bits| **bits == 1 << 31).count(), (6 - at.len()) * 7);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn heads_of_parts_agree(
        rows in 4usize..12,
        tokens in prop_oneof![Just(0usize), 1usize..40, Just(511usize), Just(530usize)],
        others in 0usize..40,
        full: bool,
        keep: bool,
        seed in 0u64..1 << 40,
    ) {
        let others = if tokens == 0 { others.max(1) } else { others };
        let expected = head_parts(&Reference, rows, 20, tokens, others, full, keep, seed);
        assert!(!expected[1].1.is_empty() && expected[1].1.iter().all(|negative_zero| *negative_zero == 1.0));
        assert!(expected[4].1.iter().all(|value| *value == 0.0), "rows that are not tokens");
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            assert_close(isa.name(), &head_parts(&cpu, rows, 20, tokens, others, full, keep, seed), &expected, 2e-5);
        }
    }

    #[test]
    fn scores_of_parts_agree(rows in 1usize..9, tokens in 1usize..700, others in 0usize..9, seed in 0u64..1 << 40) {
        let width = tokens + others;
        let expected = score_parts(&Reference, rows, width, tokens, seed);
        assert!(expected[1].1.iter().step_by(2).all(|logit| logit.to_bits() == 1 << 31));
        assert_eq!(expected[2].1.len(), rows * tokens.min(5));
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::F32);
            assert_close(isa.name(), &score_parts(&cpu, rows, width, tokens, seed), &expected, 2e-5);
        }
    }
}

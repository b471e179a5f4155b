//! Ops of vision towers: the processor against the reference, and independence of neighbours.

use proptest::prelude::*;

use crate::check::access::Numbers;
use crate::check::{HostAccess, assert_close, image_attention, tower_rows};
use crate::cpu::{Cpu, Isa};
use crate::reference::Reference;
use crate::{Dtype, VisionOps};

/// Attention within images of these numbers of rows.
fn attended<B: HostAccess>(b: &B, images: &[usize], heads: usize, e: usize, qkv: &[f32]) -> Vec<f32> {
    let mut last = 0;
    let spans = images.iter().map(|rows| {
        last += rows;
        last - rows..last
    });
    let spans: Vec<_> = spans.collect();
    b.values(&B::Family::attend_all(b, heads, &spans, &b.rows(qkv, 3 * heads * e)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn ops_of_rows_agree(rows in 1usize..20, width in 1usize..90, seed in 0u64..1 << 40) {
        let expected = tower_rows(&Reference, rows, width, seed);
        for isa in Isa::available() {
            assert_close(isa.name(), &tower_rows(&Cpu::with_isa(2, isa).with_dtype(Dtype::F32), rows, width, seed), &expected, 2e-5);
        }
    }

    #[test]
    fn attention_within_images_agrees(
        images in prop::collection::vec(1usize..40, 1..4), heads in 1usize..4, e in 1usize..20, seed in 0u64..1 << 40,
    ) {
        let expected = image_attention(&Reference, &images, heads, e, seed);
        for isa in Isa::available() {
            assert_close(isa.name(), &image_attention(&Cpu::with_isa(2, isa).with_dtype(Dtype::F32), &images, heads, e, seed), &expected, 2e-5);
        }
    }

    /// Inputs that bf16 has exactly: scores are exact sums, and probabilities and outputs are rounded once each.
    #[test]
    fn attention_in_bf16_agrees(rows in prop_oneof![1usize..40, 120usize..300], e in 1usize..80, seed in 0u64..1 << 40) {
        let heads = 2;
        let qkv: Vec<f32> = Numbers(seed).take(rows * 3 * heads * e).iter().map(|x| Dtype::Bf16.round(*x)).collect();
        let expected = vec![("out", attended(&Reference, &[rows], heads, e, &qkv))];
        for isa in Isa::available() {
            let cpu = Cpu::with_isa(2, isa).with_dtype(Dtype::Bf16);
            let tolerance = if isa >= Isa::Avx512Bf16 { 4e-3 } else { 2e-5 };
            assert_close(isa.name(), &vec![("out", attended(&cpu, &[rows], heads, e, &qkv))], &expected, tolerance);
        }
    }

    #[test]
    fn attention_does_not_depend_on_other_images(
        before in 0usize..40, rows in 1usize..70, behind in 0usize..40, seed in 0u64..1 << 40,
    ) {
        let (heads, e) = (2, 12);
        let width = heads * e;
        let qkv = Numbers(seed).take((before + rows + behind) * 3 * width);
        let own = before * 3 * width..(before + rows) * 3 * width;
        for isa in Isa::available() {
            for dtype in [Dtype::F32, Dtype::Bf16] {
                let cpu = Cpu::with_isa(2, isa).with_dtype(dtype);
                let images: Vec<usize> = [before, rows, behind].into_iter().filter(|rows| *rows > 0).collect();
                let among = attended(&cpu, &images, heads, e, &qkv);
                let alone = attended(&cpu, &[rows], heads, e, &qkv[own.clone()]);
                prop_assert_eq!(&among[before * width..(before + rows) * width], &alone[..], "{:?}", isa);
            }
        }
    }
}

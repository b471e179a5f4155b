//! Arithmetic of f16 and bf16, single and in pairs.

use crate::{check, run, triples};
use half::{bf16, f16};

const EDGES: &[u64] = &[0, 0x8000, 0x3f80, 0xbf80, 0x3c00, 0x4248, 0x0001, 0x7f7f, 0x7bff, 0x7f80, 0x7c00];

#[test]
fn fused_multiply_add_of_bf16_is_rounded_once() {
    let value = |bits: u64| bf16::from_bits(bits as u16).to_f64();
    for ([a, b, c], got) in
        triples(EDGES).iter().zip(run("fma.rn.bf16 %ho, %ha, %hb, %hc; cvt.u64.u16 %o, %ho;", &triples(EDGES)))
    {
        let expected = bf16::from_f64(value(*a) * value(*b) + value(*c));
        let got = bf16::from_bits(got as u16);
        assert!(got == expected || got.is_nan() && expected.is_nan(), "{a:#x} {b:#x} {c:#x}: {got} not {expected}");
    }
}

#[test]
fn fused_multiply_add_with_relu_keeps_nan() {
    let value = |bits: u64| bf16::from_bits(bits as u16).to_f64();
    let got = run("fma.rn.relu.bf16 %ho, %ha, %hb, %hc; cvt.u64.u16 %o, %ho;", &triples(EDGES));
    for ([a, b, c], got) in triples(EDGES).iter().zip(got) {
        let sum = value(*a) * value(*b) + value(*c);
        // 0x7fff is the only NaN of results.
        let expected = if sum.is_nan() { 0x7fff } else { bf16::from_f64(if sum > 0.0 { sum } else { 0.0 }).to_bits() };
        assert_eq!(got as u16, expected, "{a:#x} {b:#x} {c:#x}");
    }
}

#[test]
fn pairs_of_f16() {
    let half = |bits: u64| f16::from_bits(bits as u16);
    let sum = |a: u64, b: u64| f16::from_f64(half(a).to_f64() + half(b).to_f64());
    for ([a, b, _], got) in
        triples(EDGES).iter().zip(run("add.f16x2 %r0, %x, %y; cvt.u64.u32 %o, %r0;", &triples(EDGES)))
    {
        for shift in [0, 16] {
            let (got, expected) = (half(got >> shift), sum(a >> shift, b >> shift));
            assert!(got == expected || got.is_nan() && expected.is_nan(), "{a:#x} {b:#x}: {got} not {expected}");
        }
    }
}

#[test]
fn signs_of_pairs() {
    let negated = |a: u64| (a ^ 0x8000_8000) & 0xffff_ffff;
    // NaN aside: its sign is not promised.
    let quiet = |a: u64| if half_nan(a) || half_nan(a >> 16) { 0 } else { 0xffff_ffff };
    let triples = triples(EDGES);
    for ([a, ..], got) in triples.iter().zip(run("neg.bf16x2 %r0, %x; cvt.u64.u32 %o, %r0;", &triples)) {
        assert_eq!(got & quiet(*a), negated(*a) & quiet(*a));
    }
    check("max.bf16 %ho, %ha, %ha; cvt.u64.u16 %o, %ho;", &[0x3f80, 0, 0x8000, 0xc000], 0, |a, _, _| a);
}

fn half_nan(bits: u64) -> bool {
    bf16::from_bits(bits as u16).is_nan()
}

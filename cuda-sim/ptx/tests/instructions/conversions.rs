//! `cvt` between all kinds of numbers.

use crate::{FLOATS, INTEGERS, check, check_f32, check32, check64};
use half::{bf16, f16};

/// Floats as bits, for conversions to integers.
fn floats() -> Vec<u64> {
    FLOATS.iter().map(|x| u64::from(x.to_bits())).collect()
}

#[test]
fn between_integers() {
    check64("cvt.u64.u32 %o, %x", |a, _, _| u64::from(a as u32));
    check64("cvt.s64.s32 %o, %x", |a, _, _| i64::from(a as i32) as u64);
    check32("cvt.s32.s8 %r0, %x", |x, _, _| i32::from(x as i8) as u32);
    check32("cvt.u32.u16 %r0, %ha", |x, _, _| u32::from(x as u16));
    check32("cvt.s32.s16 %r0, %ha", |x, _, _| i32::from(x as i16) as u32);
    check("cvt.sat.u8.s32 %r0, %x; cvt.u64.u32 %o, %r0;", INTEGERS, 0xff, |a, _, _| (a as i32).clamp(0, 255) as u64);
    check("cvt.sat.s8.s32 %r0, %x; cvt.u64.u32 %o, %r0;", INTEGERS, 0xff, |a, _, _| (a as i32).clamp(-128, 127) as u64);
}

#[test]
fn floats_to_integers_are_clamped() {
    let check = |line: &str, expected: fn(f32) -> u64| {
        check(line, &floats(), u64::MAX, |a, _, _| expected(f32::from_bits(a as u32)));
    };
    check("cvt.rzi.s32.f32 %r0, %x; cvt.s64.s32 %o, %r0;", |x| i64::from(x as i32) as u64);
    check("cvt.rzi.u32.f32 %r0, %x; cvt.u64.u32 %o, %r0;", |x| u64::from(x as u32));
    check("cvt.rni.s32.f32 %r0, %x; cvt.s64.s32 %o, %r0;", |x| i64::from(x.round_ties_even() as i32) as u64);
    check("cvt.rmi.s32.f32 %r0, %x; cvt.s64.s32 %o, %r0;", |x| i64::from(x.floor() as i32) as u64);
    check("cvt.rpi.s32.f32 %r0, %x; cvt.s64.s32 %o, %r0;", |x| i64::from(x.ceil() as i32) as u64);
    check("cvt.rzi.u64.f32 %o, %x;", |x| x as u64);
    check("cvt.rzi.s64.f32 %o, %x;", |x| x as i64 as u64);
}

#[test]
fn integers_to_floats() {
    check32("cvt.rn.f32.s32 %r0, %x", |x, _, _| (x as i32 as f32).to_bits());
    check32("cvt.rn.f32.u32 %r0, %x", |x, _, _| (x as f32).to_bits());
    check64("cvt.rn.f32.s64 %r0, %a; cvt.u64.u32 %o, %r0", |a, _, _| u64::from((a as i64 as f32).to_bits()));
    check64("cvt.rn.f64.u64 %o, %a", |a, _, _| (a as f64).to_bits());
}

#[test]
fn between_floats() {
    check_f32("cvt.rni.f32.f32 %r0, %x", 0, |x, _, _| x.round_ties_even());
    check_f32("cvt.rmi.f32.f32 %r0, %x", 0, |x, _, _| x.floor());
    check_f32("cvt.sat.f32.f32 %r0, %x", 0, |x, _, _| if x > 0.0 { x.min(1.0) } else { 0.0 });
    check_f32("cvt.f64.f32 %d0, %x; cvt.rn.f32.f64 %r0, %d0", 0, |x, _, _| x);
    check_f32("cvt.rn.bf16.f32 %h0, %x; mov.b32 %r0, {0, %h0}", 0, |x, _, _| bf16::from_f32(x).to_f32());
    check_f32("cvt.rn.f16.f32 %h0, %x; cvt.f32.f16 %r0, %h0", 0, |x, _, _| f16::from_f32(x).to_f32());
    check_f32("cvt.rn.bf16x2.f32 %r1, %x, %y; and.b32 %r0, %r1, 0xffff0000", 0, |x, _, _| bf16::from_f32(x).to_f32());
    check_f32("cvt.rn.bf16x2.f32 %r1, %x, %y; shl.b32 %r0, %r1, 16", 0, |_, y, _| bf16::from_f32(y).to_f32());
    check_f32("cvt.rn.relu.bf16x2.f32 %r1, %x, %y; shl.b32 %r0, %r1, 16", 0, |_, y, _| {
        if y <= 0.0 { 0.0 } else { bf16::from_f32(y).to_f32() }
    });
    check_f32("cvt.rna.tf32.f32 %r0, %x", 0, |x, _, _| {
        if x.is_finite() { f32::from_bits((x.to_bits() + 0x1000) & !0x1fff) } else { x }
    });
}

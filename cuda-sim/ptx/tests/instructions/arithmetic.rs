//! Integer arithmetic and comparisons.

use crate::{INTEGERS, check, check32, check64};

#[test]
fn sums_and_products() {
    check32("add.u32 %r0, %x, %y", |x, y, _| x.wrapping_add(y));
    check32("sub.s32 %r0, %x, %y", |x, y, _| x.wrapping_sub(y));
    check32("add.sat.s32 %r0, %x, %y", |x, y, _| (x as i32).saturating_add(y as i32) as u32);
    check32("sub.sat.s32 %r0, %x, %y", |x, y, _| (x as i32).saturating_sub(y as i32) as u32);
    check32("mul.lo.s32 %r0, %x, %y", |x, y, _| x.wrapping_mul(y));
    check32("mul.hi.u32 %r0, %x, %y", |x, y, _| ((u64::from(x) * u64::from(y)) >> 32) as u32);
    check32("mul.hi.s32 %r0, %x, %y", |x, y, _| ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32);
    check32("mad.lo.s32 %r0, %x, %y, %z", |x, y, z| x.wrapping_mul(y).wrapping_add(z));
    check32("mad.hi.u32 %r0, %x, %y, %z", |x, y, z| (((u64::from(x) * u64::from(y)) >> 32) as u32).wrapping_add(z));
    check32("sad.u32 %r0, %x, %y, %z", |x, y, z| x.abs_diff(y).wrapping_add(z));
    check64("add.s64 %o, %a, %b", |a, b, _| a.wrapping_add(b));
    check64("mul.lo.u64 %o, %a, %b", |a, b, _| a.wrapping_mul(b));
    check64("mul.hi.u64 %o, %a, %b", |a, b, _| ((u128::from(a) * u128::from(b)) >> 64) as u64);
    check64("mul.hi.s64 %o, %a, %b", |a, b, _| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
    check64("mul.wide.u32 %o, %x, %y", |a, b, _| u64::from(a as u32) * u64::from(b as u32));
    check64("mul.wide.s32 %o, %x, %y", |a, b, _| (i64::from(a as i32) * i64::from(b as i32)) as u64);
    check64("mad.wide.s32 %o, %x, %y, %c", |a, b, c| {
        (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64
    });
    let narrow = |a: u64, b: u64| u64::from((a as u16).wrapping_mul(b as u16));
    check("mul.lo.u16 %ho, %ha, %hb; cvt.u64.u16 %o, %ho;", INTEGERS, u64::MAX, |a, b, _| narrow(a, b));
}

#[test]
fn quotients() {
    let divide = |x: u32, y: u32| x.checked_div(y).unwrap_or(u32::MAX);
    check32("div.u32 %r0, %x, %y", |x, y, _| divide(x, y));
    check32("rem.u32 %r0, %x, %y", |x, y, _| x.checked_rem(y).unwrap_or(x));
    check32("div.s32 %r0, %x, %y", |x, y, _| if y == 0 { u32::MAX } else { (x as i32).wrapping_div(y as i32) as u32 });
    check32("rem.s32 %r0, %x, %y", |x, y, _| if y == 0 { x } else { (x as i32).wrapping_rem(y as i32) as u32 });
    check64("div.u64 %o, %a, %b", |a, b, _| a.checked_div(b).unwrap_or(u64::MAX));
    check64("rem.s64 %o, %a, %b", |a, b, _| if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 });
}

#[test]
fn extremes_and_signs() {
    check32("min.s32 %r0, %x, %y", |x, y, _| (x as i32).min(y as i32) as u32);
    check32("max.u32 %r0, %x, %y", |x, y, _| x.max(y));
    check32("abs.s32 %r0, %x", |x, _, _| (x as i32).wrapping_abs() as u32);
    check32("neg.s32 %r0, %x", |x, _, _| x.wrapping_neg());
    check64("abs.s64 %o, %a", |a, _, _| (a as i64).wrapping_abs() as u64);
    check64("max.s64 %o, %a, %b", |a, b, _| (a as i64).max(b as i64) as u64);
}

#[test]
fn dot_products_of_bytes() {
    check32("dp4a.s32.s32 %r0, %x, %y, %z", |x, y, z| {
        let pairs = x.to_le_bytes().into_iter().zip(y.to_le_bytes());
        let sum: i32 = pairs.map(|(x, y)| i32::from(x as i8) * i32::from(y as i8)).sum();
        z.wrapping_add(sum as u32)
    });
    check32("dp4a.u32.u32 %r0, %x, %y, %z", |x, y, z| {
        let pairs = x.to_le_bytes().into_iter().zip(y.to_le_bytes());
        z.wrapping_add(pairs.map(|(x, y)| u32::from(x) * u32::from(y)).sum())
    });
}

#[test]
fn comparisons() {
    let lines = |name: &str| format!("setp.{name} %p0, %x, %y; selp.u32 %r0, 1, 0, %p0");
    check32(&lines("eq.s32"), |x, y, _| u32::from(x == y));
    check32(&lines("ne.b32"), |x, y, _| u32::from(x != y));
    check32(&lines("lt.s32"), |x, y, _| u32::from((x as i32) < y as i32));
    check32(&lines("lt.u32"), |x, y, _| u32::from(x < y));
    check32(&lines("hs.u32"), |x, y, _| u32::from(x >= y));
    check32(&lines("ge.s32"), |x, y, _| u32::from(x as i32 >= y as i32));
    check32("setp.ne.u32 %p1, %z, 0; setp.gt.and.u32 %p0|%p2, %x, %y, %p1; selp.u32 %r0, 1, 0, %p0", |x, y, z| {
        u32::from(x > y && z != 0)
    });
    check32("setp.ne.u32 %p1, %z, 0; setp.gt.or.u32 %p0|%p2, %x, %y, !%p1; selp.u32 %r0, 1, 0, %p2", |x, y, z| {
        u32::from(x <= y || z == 0)
    });
    check32("set.lt.u32.s32 %r0, %x, %y", |x, y, _| if (x as i32) < y as i32 { u32::MAX } else { 0 });
    check32("slct.u32.s32 %r0, %x, %y, %z", |x, y, z| if z as i32 >= 0 { x } else { y });
    check32("setp.lt.s32 %p0, %x, %y; @%p0 mov.u32 %r0, 5; @!%p0 mov.u32 %r0, 6", |x, y, _| {
        if (x as i32) < y as i32 { 5 } else { 6 }
    });
}

//! Logic, shifts, fields and permutations.

use crate::{INTEGERS, check, check32, check64};

#[test]
fn logic() {
    check32("and.b32 %r0, %x, %y", |x, y, _| x & y);
    check32("or.b32 %r0, %x, %y", |x, y, _| x | y);
    check64("xor.b64 %o, %a, %b", |a, b, _| a ^ b);
    check64("not.b64 %o, %a", |a, _, _| !a);
    check32("cnot.b32 %r0, %x", |x, _, _| u32::from(x == 0));
    check32("lop3.b32 %r0, %x, %y, %z, 0xE8", |x, y, z| x & y | x & z | y & z);
    check32("lop3.b32 %r0, %x, %y, %z, 0x96", |x, y, z| x ^ y ^ z);
    check32("lop3.b32 %r0, %x, %y, %z, 0x40", |x, y, z| x & y & !z);
}

#[test]
fn shifts_are_clamped() {
    check32("shl.b32 %r0, %x, %y", |x, y, _| x.checked_shl(y).unwrap_or(0));
    check32("shr.u32 %r0, %x, %y", |x, y, _| x.checked_shr(y).unwrap_or(0));
    check32("shr.s32 %r0, %x, %y", |x, y, _| ((x as i32) >> y.min(31)) as u32);
    check64("shl.b64 %o, %a, %y", |a, b, _| a.checked_shl(b as u32).unwrap_or(0));
    check64("shr.s64 %o, %a, %y", |a, b, _| ((a as i64) >> (b as u32).min(63)) as u64);
    let wide = |x: u32, y: u32| u64::from(x) | u64::from(y) << 32;
    check32("shf.l.wrap.b32 %r0, %x, %y, %z", |x, y, z| (wide(x, y) << (z & 31) >> 32) as u32);
    check32("shf.r.wrap.b32 %r0, %x, %y, %z", |x, y, z| (wide(x, y) >> (z & 31)) as u32);
    check32("shf.r.clamp.b32 %r0, %x, %y, %z", |x, y, z| (wide(x, y) >> z.min(32)) as u32);
    check32("shf.l.clamp.b32 %r0, %x, %y, %z", |x, y, z| (wide(x, y) << z.min(32) >> 32) as u32);
}

#[test]
fn counts() {
    check32("popc.b32 %r0, %x", |x, _, _| x.count_ones());
    check32("clz.b32 %r0, %x", |x, _, _| x.leading_zeros());
    check64("clz.b64 %r0, %a; cvt.u64.u32 %o, %r0", |a, _, _| a.leading_zeros().into());
    check64("popc.b64 %r0, %a; cvt.u64.u32 %o, %r0", |a, _, _| a.count_ones().into());
    check32("brev.b32 %r0, %x", |x, _, _| x.reverse_bits());
    check64("brev.b64 %o, %a", |a, _, _| a.reverse_bits());
    check32("bfind.u32 %r0, %x", |x, _, _| x.checked_ilog2().unwrap_or(u32::MAX));
    check32("bfind.shiftamt.u32 %r0, %x", |x, _, _| x.checked_ilog2().map_or(u32::MAX, |bit| 31 - bit));
    check32("bfind.s32 %r0, %x", |x, _, _| {
        let magnitude = if (x as i32) < 0 { !x } else { x };
        magnitude.checked_ilog2().unwrap_or(u32::MAX)
    });
}

#[test]
fn fields() {
    let extract = |x: u128, position: u64, length: u64| -> u64 {
        let (position, length) = (u32::from(position as u8), u32::from(length as u8));
        let shifted = x.checked_shr(position).unwrap_or(0);
        (shifted & 1u128.checked_shl(length).map_or(u128::MAX, |bit| bit - 1)) as u64
    };
    check32("bfe.u32 %r0, %x, %y, %z", |x, y, z| extract(x.into(), y.into(), z.into()) as u32);
    check64("bfe.u64 %o, %a, %y, %z", |a, b, c| extract(a.into(), b, c));
    // A signed field repeats its highest bit.
    check32("and.b32 %r1, %y, 15; and.b32 %r2, %z, 15; add.u32 %r2, %r2, 1; bfe.s32 %r0, %x, %r1, %r2", |x, y, z| {
        let (position, length) = (y & 15, (z & 15) + 1);
        let shifted = i64::from(x as i32) >> position;
        (shifted << (64 - length) >> (64 - length)) as u32
    });
    check32("and.b32 %r1, %y, 15; and.b32 %r2, %z, 15; bfi.b32 %r0, %x, %y, %r1, %r2", |x, y, z| {
        let mask = ((1u32 << (z & 15)) - 1) << (y & 15);
        y & !mask | x << (y & 15) & mask
    });
    check64("and.b32 %r1, %y, 31; and.b32 %r2, %z, 31; bfi.b64 %o, %a, %b, %r1, %r2", |a, b, c| {
        let mask = ((1u64 << (c & 31)) - 1) << (b & 31);
        b & !mask | a << (b & 31) & mask
    });
}

#[test]
fn permutations_and_vectors() {
    check32("prmt.b32 %r0, %x, %y, %z", |x, y, z| {
        let bytes: Vec<u8> = x.to_le_bytes().into_iter().chain(y.to_le_bytes()).collect();
        let pick = |i: u32| {
            let byte = bytes[(z >> (4 * i) & 7) as usize];
            if z >> (4 * i) & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
        };
        u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)])
    });
    check64("mov.b64 {%r0, %r1}, %a; mov.b64 %o, {%r1, %r0}", |a, _, _| a.rotate_left(32));
    check32("mov.b32 {%h0, %h1}, %x; mov.b32 %r0, {%h1, %h0}", |x, _, _| x.rotate_left(16));
    check("mov.b32 {_, %h1}, %x; cvt.u64.u16 %o, %h1;", INTEGERS, u64::MAX, |a, _, _| a >> 16 & 0xffff);
}

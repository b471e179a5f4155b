//! Shuffles, votes, matches and reductions: one warp, lane by lane.

use crate::run;

/// Inputs of 32 lanes: the lane's number times 3, and so on.
fn warp() -> Vec<[u64; 3]> {
    (0..32).map(|lane| [lane * 3 + 1, lane % 4, u64::from(lane == 5)]).collect()
}

fn check(lines: &str, expected: impl Fn(usize) -> u64) {
    for (lane, got) in run(lines, &warp()).into_iter().enumerate() {
        assert_eq!(got, expected(lane), "{lines} lane {lane}");
    }
}

#[test]
fn shuffles() {
    let value = |lane: usize| lane as u64 * 3 + 1;
    let to_out = "cvt.u64.u32 %o, %r0;";
    check(&format!("shfl.sync.bfly.b32 %r0|%p0, %x, 5, 31, -1; {to_out}"), |lane| value(lane ^ 5));
    check(&format!("shfl.sync.up.b32 %r0|%p0, %x, 3, 0, -1; {to_out}"), |lane| {
        value(if lane < 3 { lane } else { lane - 3 })
    });
    check(&format!("shfl.sync.down.b32 %r0|%p0, %x, 3, 31, -1; {to_out}"), |lane| {
        value(if lane > 28 { lane } else { lane + 3 })
    });
    check(&format!("shfl.sync.idx.b32 %r0|%p0, %x, 9, 31, -1; {to_out}"), |_| value(9));
    // Segments of eight lanes.
    check(&format!("shfl.sync.idx.b32 %r0|%p0, %x, 2, 0x181f, -1; {to_out}"), |lane| value(lane / 8 * 8 + 2));
    check("shfl.sync.down.b32 %r0|%p0, %x, 3, 31, -1; selp.u64 %o, 1, 0, %p0;", |lane| u64::from(lane + 3 < 32));
}

#[test]
fn votes() {
    let predicate = "setp.ne.u32 %p0, %z, 0;";
    check(&format!("{predicate} vote.sync.ballot.b32 %r0, %p0, -1; cvt.u64.u32 %o, %r0;"), |_| 1 << 5);
    check(&format!("{predicate} vote.sync.any.pred %p1, %p0, -1; selp.u64 %o, 1, 0, %p1;"), |_| 1);
    check(&format!("{predicate} vote.sync.all.pred %p1, !%p0, -1; selp.u64 %o, 1, 0, %p1;"), |_| 0);
    check(&format!("{predicate} vote.sync.uni.pred %p1, %p0, -1; selp.u64 %o, 1, 0, %p1;"), |_| 0);
}

#[test]
fn matches_and_reductions() {
    check("match.any.sync.b32 %r0, %y, -1; cvt.u64.u32 %o, %r0;", |lane| 0x1111_1111 << (lane % 4));
    check("match.all.sync.b32 %r0|%p0, %y, -1; cvt.u64.u32 %o, %r0;", |_| 0);
    check("redux.sync.add.u32 %r0, %x, -1; cvt.u64.u32 %o, %r0;", |_| (0..32).map(|lane| lane * 3 + 1).sum());
    check("redux.sync.max.s32 %r0, %x, -1; cvt.u64.u32 %o, %r0;", |_| 94);
    check("redux.sync.or.b32 %r0, %y, -1; cvt.u64.u32 %o, %r0;", |_| 3);
}

#[test]
fn lanes_that_diverge_meet_again() {
    let lines = "setp.lt.u32 %p0, %w, 7; @%p0 bra LOW; add.u32 %x, %x, 100; bra MEET; LOW: add.u32 %x, %x, 1000;\n\
                 MEET: redux.sync.min.u32 %r0, %x, -1; activemask.b32 %r1; mov.b64 %o, {%r0, %r1};";
    check(lines, |_| u64::from(u32::MAX) << 32 | 122);
}

#[test]
fn two_halves_with_masks_of_their_own() {
    let lines = "setp.lt.u32 %p0, %w, 16; selp.u32 %r1, 0x0000ffff, 0xffff0000, %p0;\n\
                 redux.sync.add.u32 %r0, %y, %r1; cvt.u64.u32 %o, %r0;";
    check(lines, |_| 24);
}

#[test]
fn special_registers() {
    check("mov.u32 %r0, %laneid; mov.u32 %r1, %lanemask_lt; mov.b64 %o, {%r0, %r1};", |lane| {
        lane as u64 | ((1u64 << lane) - 1) << 32
    });
    check("mov.u32 %r0, %ntid.x; mov.u32 %r1, %nctaid.y; mov.b64 %o, {%r0, %r1};", |_| 32 | 1 << 32);
}

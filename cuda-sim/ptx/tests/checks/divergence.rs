//! Operations of a warp or a block that some of its threads never reach.

use cuda_sim_ptx::StopKind::{Divergence, StepLimit, Trap};

use crate::{passes, stops};

#[test]
fn a_barrier_that_half_a_warp_skips_is_found() {
    let lines = "setp.lt.u32 %p1, %t, 16; @%p1 bra DONE; bar.sync 0; DONE:";
    stops(lines, 1, 32, Divergence, &["16 of 32 threads have exited", "bar.sync 0"]);
}

#[test]
fn two_barriers_in_two_branches_are_found() {
    let lines = "setp.lt.u32 %p1, %t, 16; @%p1 bra LOW; bar.sync 0; bra DONE; LOW: bar.sync 0; DONE:";
    stops(lines, 1, 32, Divergence, &["different barriers"]);
}

#[test]
fn a_shuffle_that_waits_for_lanes_that_never_come_is_found() {
    let lines = "setp.lt.u32 %p1, %t, 16; @%p1 bra OTHER; shfl.sync.bfly.b32 %r1|%p2, %t, 1, 31, -1; bra DONE;\n\
                 OTHER: bar.sync 0; DONE: bar.sync 0;";
    stops(lines, 1, 32, Divergence, &["wait for lanes 0xffffffff", "shfl.sync.bfly.b32"]);
}

#[test]
fn a_shuffle_from_a_lane_outside_the_mask_is_found() {
    let lines = "setp.ge.u32 %p1, %t, 16; @%p1 bra DONE; shfl.sync.bfly.b32 %r1|%p2, %t, 16, 31, 0xffff; DONE:";
    stops(lines, 1, 32, Divergence, &["reads lane 16, which does not take part"]);
}

#[test]
fn a_mask_without_the_own_lane_is_found() {
    stops("vote.sync.ballot.b32 %r1, %p1, 0xfffe;", 1, 32, Divergence, &["lacks the lane that executes it"]);
}

#[test]
fn a_matrix_instruction_of_half_a_warp_is_found() {
    let lines = "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.v4.u32 [tile], {%t, %t, %t, %t}; bar.warp.sync -1;\n\
                 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [tile];";
    stops(lines, 1, 16, Divergence, &["a matrix instruction with only lanes 0x0000ffff"]);
}

#[test]
fn an_endless_loop_ends() {
    stops("LOOP: bra LOOP;", 1, 32, StepLimit, &["no end"]);
}

#[test]
fn a_trap_says_where() {
    stops("setp.eq.u32 %p1, %t, 7; @%p1 trap;", 1, 32, Trap, &["thread 7"]);
}

#[test]
fn loops_with_different_counts_converge() {
    let data = passes(
        "mov.u32 %r1, 0; LOOP: setp.ge.u32 %p1, %r1, %t; @%p1 bra END; add.u32 %r1, %r1, 1; bra LOOP;\n\
         END: redux.sync.add.u32 %r2, %r1, -1; st.global.u32 [%own], %r2;",
        1,
        32,
    );
    assert_eq!(data[..4], (31u32 * 32 / 2).to_le_bytes());
}

#[test]
fn barriers_reduce() {
    let data = passes("setp.lt.u32 %p1, %t, 40; bar.red.popc.u32 %r1, 0, %p1; st.global.u32 [%own], %r1;", 1, 64);
    assert_eq!(data[252..256], 40u32.to_le_bytes());
}

//! Races in shared and in global memory.

use cuda_sim_ptx::StopKind::{Race, Uninitialised};

use crate::{passes, stops};

/// Each thread writes its word and reads the one of the thread 32 further.
fn exchange(between: &str) -> String {
    format!(
        "st.shared.u32 [%s], %t;\n{between}\nadd.u32 %r1, %t, 32; and.b32 %r1, %r1, 127; mov.u32 %r2, tile;\n\
         mad.lo.u32 %r2, %r1, 4, %r2; ld.shared.u32 %r3, [%r2]; st.global.u32 [%own], %r3;"
    )
}

#[test]
fn a_missing_barrier_is_found() {
    passes(&exchange("bar.sync 0;"), 1, 128);
    for seed in 0..10 {
        let shape = crate::Shape { blocks: 1, threads: 128, seed };
        let stop = crate::run(&exchange(""), shape).expect_err("the race was not found");
        // Whoever comes first meets bytes that nobody wrote; whoever comes later, a race.
        assert!(matches!(stop.kind, Race | Uninitialised), "{stop}");
        assert!(stop.message.contains("PTX line"), "{stop}");
    }
}

#[test]
fn a_write_after_reads_without_a_barrier_is_found() {
    let lines = |between: &str| {
        format!(
            "st.shared.u32 [%s], %t; bar.sync 0; ld.shared.u32 %r1, [tile]; {between}\n\
             setp.eq.u32 %p1, %t, 5; @%p1 st.shared.u32 [tile], 77; st.global.u32 [%own], %r1;"
        )
    };
    passes(&lines("bar.sync 0;"), 1, 128);
    stops(&lines(""), 1, 128, Race, &["race: shared address 0x0", "without a barrier between"]);
}

#[test]
fn lanes_of_a_warp_need_a_barrier_too() {
    let lines = |between: &str| {
        format!(
            "st.shared.u32 [%s], %t; {between} xor.b32 %r1, %t, 1; mov.u32 %r2, tile;\n\
                 mad.lo.u32 %r2, %r1, 4, %r2; ld.shared.u32 %r3, [%r2]; st.global.u32 [%own], %r3;"
        )
    };
    passes(&lines("bar.warp.sync -1;"), 1, 32);
    stops(&lines(""), 1, 32, Race, &["was written by thread"]);
}

#[test]
fn one_word_that_all_lanes_read_was_written_before_a_barrier() {
    for memory in [
        "st.shared.u32 [tile], 7; {} ld.shared.u32 %r1, [tile];",
        "st.global.u32 [%data], 7; {} ld.global.u32 %r1, [%data];",
    ] {
        let lines = |between: &str| {
            let accesses = memory.replacen("st.", "setp.eq.u32 %p1, %t, 31; @%p1 st.", 1).replace("{}", between);
            format!("{accesses} add.u32 %r1, %r1, %t; st.global.u32 [%own+512], %r1;")
        };
        passes(&lines("bar.warp.sync -1;"), 1, 32);
        stops(&lines(""), 1, 32, Race, &["was written by thread 31"]);
    }
}

#[test]
fn lanes_that_race_are_found_beside_one_that_does_not() {
    // Lane 1 follows its own store, lane 0 does not, whichever of its bytes lane 1 writes again.
    let halves = |between: &str| {
        format!(
            "setp.eq.u32 %p1, %t, 1; @%p1 st.global.u32 [%data], 5; {between} mad.wide.u32 %d1, %t, 2, %data;\n\
             setp.lt.u32 %p2, %t, 2; cvt.u16.u32 %h1, %t; @%p2 st.global.u16 [%d1], %h1;"
        )
    };
    passes(&halves("bar.warp.sync -1;"), 1, 32);
    stops(&halves(""), 1, 32, Race, &["was written by thread 1 and is now written"]);
    let other_value = |between: &str| {
        format!("setp.eq.u32 %p1, %t, 5; @%p1 st.shared.u32 [tile], 1; {between} st.shared.u32 [tile], 2;")
    };
    passes(&other_value("bar.warp.sync -1;"), 1, 32);
    stops(&other_value(""), 1, 32, Race, &["was written by thread 5 and is now written"]);
}

#[test]
fn a_read_of_other_bytes_does_not_hide_one() {
    // Byte 0 is of lanes that store without order, byte 2 of nobody since the barrier.
    let lines = |last: &str| {
        format!(
            "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 0; bar.warp.sync -1; setp.lt.u32 %p2, %t, 2;\n\
             mov.u32 %r1, tile; add.u32 %r2, %r1, %t; @%p2 st.shared.u8 [%r2], %t;\n\
             setp.eq.u32 %p3, %t, 2; setp.lt.u32 %p4, %t, 1; or.pred %p4, %p3, %p4; @%p4 ld.shared.u8 %r3, [%r2];\n\
             {last} setp.eq.u32 %p5, %t, 3; @%p5 st.shared.u8 [tile+2], 1;"
        )
    };
    passes(&lines("bar.warp.sync -1;"), 1, 32);
    stops(&lines(""), 1, 32, Race, &["was read by thread 2 and is now written"]);
}

#[test]
fn lanes_of_one_load_may_read_other_spaces() {
    let lines = |address: &str| {
        format!(
            "st.shared.u32 [%s], %t; bar.warp.sync -1; mov.u64 %d1, tile; cvta.shared.u64 %d1, %d1;\n\
             and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; mad.wide.u32 %d1, %t, 4, %d1; add.u64 %d2, %own, {address};\n\
             selp.b64 %d3, %d1, %d2, %p1; ld.u32 %r2, [%d3]; st.global.u32 [%own], %r2;"
        )
    };
    let out = passes(&lines("0"), 1, 32);
    let words = out.chunks_exact(4).take(32).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    assert_eq!(words.collect::<Vec<_>>(), (0..32).map(|t| if t % 2 == 0 { t } else { 0 }).collect::<Vec<_>>());
    stops(&lines("1024"), 1, 32, cuda_sim_ptx::StopKind::OutOfBounds, &["load of 4 bytes"]);
}

#[test]
fn a_block_finds_nothing_of_the_one_before_in_shared_memory() {
    let lines =
        |writers: u32| format!("setp.lt.u32 %p1, %b, {writers}; @%p1 st.shared.u32 [%s], %t; ld.shared.u32 %r1, [%s];");
    passes(&lines(64), 64, 32);
    stops(&lines(60), 64, 32, Uninitialised, &["shared byte"]);
}

#[test]
fn neighbours_of_two_bytes_are_told_apart() {
    let lines = |offset: &str| {
        format!(
            "mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 2, %r1; cvt.u16.u32 %h1, %t; st.shared.u16 [%r1], %h1;\n\
                 ld.shared.u16 %h2, [%r1{offset}]; cvt.u32.u16 %r2, %h2; st.global.u32 [%own], %r2;"
        )
    };
    passes(&lines(""), 1, 64);
    stops(&format!("setp.gt.u32 %p1, %t, 62; @%p1 ret; {}", lines("+2")), 1, 63, Race, &["was written by thread"]);
}

#[test]
fn blocks_that_write_one_word_race() {
    stops("st.global.u32 [%data], %g;", 2, 32, Race, &["race: global address"]);
    // Atomics do not, and neither do writes of one value.
    let sum = passes("red.global.add.u32 [%data], 1;", 4, 64);
    assert_eq!(sum[..4], 256u32.to_le_bytes());
    passes("st.global.u32 [%data], 9;", 4, 64);
}

#[test]
fn blocks_that_read_what_another_wrote_race() {
    let lines = "st.global.u32 [%own], %g; bar.sync 0; xor.b32 %r1, %g, 32; mad.wide.u32 %d1, %r1, 4, %data;\n\
                 ld.global.u32 %r2, [%d1]; st.global.u32 [%own+512], %r2;";
    passes(lines, 1, 64);
    stops(lines, 2, 32, Race, &["block number"]);
}

/// The last block sums up what all blocks left, which a fence and an atomic allow.
fn last_block(fence: &str) -> String {
    format!(
        "add.u32 %r0, %g, 1; st.global.u32 [%own+16], %r0; {fence} bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 ret;\n\
         atom.global.add.u32 %r1, [%data], 1; mov.u32 %r2, %nctaid.x; sub.u32 %r2, %r2, 1;\n\
         setp.ne.u32 %p2, %r1, %r2; @%p2 ret;\n\
         mov.u32 %r3, 0; mov.u32 %r4, 0;\n\
         LOOP: mad.wide.u32 %d1, %r3, 4, %data; ld.global.u32 %r5, [%d1+16]; add.u32 %r4, %r4, %r5;\n\
         add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, 128; @%p3 bra LOOP; st.global.u32 [%data+4], %r4;"
    )
}

#[test]
fn a_fence_and_an_atomic_publish_to_other_blocks() {
    let data = passes(&last_block("membar.gl;"), 4, 32);
    assert_eq!(data[4..8], (128u32 * 129 / 2).to_le_bytes());
    stops(&last_block(""), 4, 32, Race, &["race: global address"]);
}

#[test]
fn named_barriers_order_those_who_take_part() {
    // Warps 0 and 1 meet at barrier 1; warp 2 does not.
    let lines = |readers: &str| {
        format!(
            "shr.u32 %r0, %t, 5; setp.eq.u32 %p1, %r0, 2; st.shared.u32 [%s], %t; @%p1 bra LAST; bar.sync 1, 64;\n\
             mov.u32 %r1, 4; bra READ; LAST: mov.u32 %r1, {readers};\n\
             READ: mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [%r2]; st.global.u32 [%own], %r3;"
        )
    };
    passes(&lines("256"), 1, 65);
    let stop = crate::run(&lines("4"), crate::Shape { blocks: 1, threads: 65, seed: 1 }).expect_err("no race");
    assert!(matches!(stop.kind, Race | Uninitialised), "{stop}");
}

/// Two stages of asynchronous copies, each read by another thread than the one that copied.
fn staged(wait: &str, barrier: &str) -> String {
    format!(
        "cp.async.ca.shared.global [%s], [%own], 4; cp.async.commit_group;\n\
         cp.async.ca.shared.global [%s+512], [%own+512], 4; cp.async.commit_group;\n\
         {wait} {barrier} xor.b32 %r1, %t, 33; mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2;\n\
         ld.shared.u32 %r3, [%r2]; cp.async.wait_all;"
    )
}

#[test]
fn asynchronous_copies_arrive_when_they_are_waited_for() {
    passes(&staged("cp.async.wait_group 1;", "bar.sync 0;"), 1, 128);
    stops(&staged("cp.async.wait_group 2;", "bar.sync 0;"), 1, 128, Uninitialised, &["still under way"]);
    for seed in 0..10 {
        let shape = crate::Shape { blocks: 1, threads: 128, seed };
        let stop = crate::run(&staged("cp.async.wait_group 1;", ""), shape).expect_err("no race");
        assert!(matches!(stop.kind, Race | Uninitialised), "{stop}");
    }
}

#[test]
fn a_copy_into_a_tile_that_is_still_read_is_a_race() {
    let lines = |barrier: &str| {
        format!(
            "st.shared.u32 [%s], %t; bar.sync 0; xor.b32 %r1, %t, 33; mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 4, %r2;\n\
             ld.shared.u32 %r3, [%r2]; {barrier} cp.async.ca.shared.global [%s], [%own], 4; cp.async.wait_all;"
        )
    };
    passes(&lines("bar.sync 0;"), 1, 128);
    for seed in 0..10 {
        let shape = crate::Shape { blocks: 1, threads: 128, seed };
        let stop = crate::run(&lines(""), shape).expect_err("no race");
        assert!(matches!(stop.kind, Race | Uninitialised), "{stop}");
    }
}

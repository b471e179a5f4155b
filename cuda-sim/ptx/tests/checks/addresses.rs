//! Addresses out of bounds, misaligned, and of bytes that nobody wrote.

use cuda_sim_ptx::StopKind::{Misaligned, OutOfBounds, Uninitialised};

use crate::{passes, stops};

#[test]
fn an_off_by_one_store_is_found() {
    passes("st.global.u32 [%own], %t;", 2, 128);
    stops("st.global.u32 [%own+4], %t;", 2, 128, OutOfBounds, &["store of 4 bytes", "block [1, 0, 0] thread 127"]);
}

#[test]
fn a_load_before_an_allocation_is_found() {
    stops("ld.global.u32 %r1, [%data+-4];", 1, 1, OutOfBounds, &["outside every allocation", "PTX line"]);
}

#[test]
fn shared_and_local_memory_have_bounds() {
    stops("st.shared.u32 [%s+1024], %t;", 1, 32, OutOfBounds, &["of 1024 bytes of shared memory"]);
    stops("mov.u64 %d1, depot; st.local.u32 [%d1+64], %t;", 1, 1, OutOfBounds, &["of 64 bytes of local memory"]);
}

#[test]
fn misaligned_accesses_are_found() {
    stops("ld.global.u32 %r1, [%data+2];", 1, 1, Misaligned, &["misaligned load of 4 bytes"]);
    stops("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%data+8];", 1, 1, Misaligned, &["misaligned load of 16 bytes"]);
    stops("st.shared.v2.u32 [%s+4], {%t, %t};", 1, 1, Misaligned, &["misaligned store of 8 bytes"]);
}

#[test]
fn reads_of_bytes_that_nobody_wrote_are_found() {
    stops("ld.shared.u32 %r1, [%s];", 1, 32, Uninitialised, &["uninitialised read: shared byte"]);
    stops("mov.u64 %d1, depot; ld.local.u32 %r1, [%d1];", 1, 1, Uninitialised, &["local bytes"]);
    // Half of a word is not enough.
    stops("cvt.u16.u32 %h1, %t; st.shared.u16 [%s], %h1; ld.shared.u32 %r1, [%s];", 1, 1, Uninitialised, &["byte 2"]);
}

#[test]
fn generic_addresses_reach_every_space() {
    let data = passes(
        "cvta.shared.u64 %d1, 0; mov.u32 %r1, tile; cvt.u64.u32 %d2, %r1; cvta.shared.u64 %d2, %d2;\n\
         mad.wide.u32 %d2, %t, 4, %d2; st.u32 [%d2], %t; ld.shared.u32 %r2, [%s];\n\
         mov.u64 %d3, depot; cvta.local.u64 %d3, %d3; st.u32 [%d3], %r2; ld.u32 %r3, [%d3];\n\
         cvta.global.u64 %d4, %own; st.u32 [%d4], %r3; isspacep.shared %p1, %d2; @!%p1 trap; isspacep.shared %p2, %d3;\n\
         @%p2 trap;",
        1,
        64,
    );
    assert_eq!(data[252..256], 63u32.to_le_bytes());
}

#[test]
fn vectors_are_loaded_and_stored_whole() {
    let data = passes(
        "mov.u32 %r1, 1; mov.u32 %r2, 2; mov.u32 %r3, 3; mov.u32 %r4, 4; mad.wide.u32 %d1, %t, 16, %data;\n\
         st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4}; ld.global.v2.u32 {%r5, %r6}, [%d1+8];\n\
         st.global.v2.u32 [%d1], {%r6, %r5};",
        1,
        4,
    );
    assert_eq!(data[..8], [4, 0, 0, 0, 3, 0, 0, 0]);
}

#[test]
fn narrow_loads_extend_as_their_type_says() {
    let data = passes(
        "mov.u32 %r1, 0xfffe; st.global.u32 [%own], %r1; ld.global.s8 %r2, [%data]; ld.global.u8 %r3, [%data];\n\
         ld.global.s16 %r4, [%data]; st.global.u32 [%data+4], %r2; st.global.u32 [%data+8], %r3;\n\
         st.global.u32 [%data+12], %r4;",
        1,
        1,
    );
    let word = |at: usize| i32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    assert_eq!([word(4), word(8), word(12)], [-2, 0xfe, -2]);
}

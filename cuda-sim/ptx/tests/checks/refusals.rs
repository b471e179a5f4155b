//! Refusals of kernels before they run, and counters.

use cuda_sim_ptx::{Launch, Memory, Module, Op, StopKind, launch};

use crate::{Shape, run};

#[test]
fn an_unknown_instruction_is_named_with_its_line() {
    let text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %d<2>;\n\
                wgmma.fence.sync.aligned;\nret;\n}\n";
    let error = Module::parse(text).unwrap_err();
    assert_eq!(error.line, 7);
    assert!(error.to_string().contains("wgmma.fence.sync.aligned"), "{error}");
}

#[test]
fn an_unknown_register_is_named() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<2>;\n\
                add.u32 %r0, %r1, %r7;\nret;\n}\n";
    let error = Module::parse(text).unwrap_err();
    assert!(error.line == 7 && error.to_string().contains("%r7"), "{error}");
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() .maxntid 64, 1, 1 { ret; }\n";
    let module = Module::parse(text).unwrap();
    let kernel = module.kernel("k").unwrap();
    let mut memory = Memory::new(1024);
    let stop = launch(&Launch::new(kernel, 1, 65, &[]), &mut memory, &Op::default()).unwrap_err();
    assert_eq!(stop.kind, StopKind::BadLaunch);
    let large = Launch { dynamic_shared: 200 << 10, ..Launch::new(kernel, 1, 64, &[]) };
    assert_eq!(launch(&large, &mut memory, &Op::default()).unwrap_err().kind, StopKind::BadLaunch);
    assert!(launch(&Launch::new(kernel, 1, 64, &[]), &mut memory, &Op::default()).is_ok());
}

#[test]
fn counters_tell_good_access_from_bad() {
    let shape = Shape { blocks: 1, threads: 32, seed: 0 };
    let (_, near) = run("ld.global.u32 %r1, [%own];", shape).unwrap();
    assert_eq!((near.global_load_bytes, near.global_requests, near.global_sectors), (128, 1, 4));
    let (_, far) = run("mad.wide.u32 %d1, %t, 32, %data; ld.global.u8 %r1, [%d1];", shape).unwrap();
    assert_eq!((far.global_load_bytes, far.global_sectors), (32, 32));
    let (_, banks) =
        run("mov.u32 %r1, tile; mad.lo.u32 %r1, %t, 8, %r1; st.shared.u32 [%r1], %t; bar.sync 0;", shape).unwrap();
    assert_eq!((banks.shared_store_bytes, banks.bank_conflicts, banks.barriers), (128, 1, 1));
}

#[test]
fn memory_knows_its_ends_and_what_was_freed() {
    let mut memory = Memory::new(1000);
    let first = memory.allocate(600).unwrap();
    assert!(memory.allocate(600).is_err());
    memory.free(first).unwrap();
    let second = memory.allocate(600).unwrap();
    assert!(second > first, "addresses are used once");
    assert!(memory.free(first).is_err());
    let error = memory.write(first, &[1]).unwrap_err();
    assert!(error.message.contains("freed"), "{error}");
    assert_eq!(memory.read(second, 1).unwrap_err().kind, StopKind::Uninitialised);
}

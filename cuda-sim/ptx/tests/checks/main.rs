//! Planted faults, each with the message that finds it, and the same kernels without the fault.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod addresses;
mod divergence;
mod races;
mod refusals;

use cuda_sim_ptx::{Counters, Launch, Memory, Module, Op, Stop, StopKind, launch};

/// Blocks, threads of a block, and the order that a seed chooses.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) blocks: u32,
    pub(crate) threads: u32,
    pub(crate) seed: u64,
}

/// Runs a kernel of one parameter, `data`: 1024 bytes of zeros. `%t` is the thread, `%b` the block, `%g` both.
pub(crate) fn run(lines: &str, shape: Shape) -> Result<(Vec<u8>, Counters), Stop> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 data)\n{{\n\
         .shared .align 16 .b8 tile[1024]; .local .align 16 .b8 depot[64];\n\
         .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<8>;\n\
         .reg .b32 %t, %b, %n, %g, %s; .reg .b64 %data, %own;\n\
         ld.param.u64 %data, [data]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x;\n\
         mad.lo.u32 %g, %b, %n, %t; mad.wide.u32 %own, %g, 4, %data; mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s;\n\
         {lines}\nret;\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    let mut memory = Memory::new(1 << 20);
    let data = memory.allocate(1024).unwrap();
    memory.write(data, &[0; 1024]).unwrap();
    let params = data.to_le_bytes();
    let mut work = Launch::new(module.kernel("k").unwrap(), shape.blocks, shape.threads, &params);
    work.seed = shape.seed;
    work.step_limit = 1_000_000;
    let counters = launch(&work, &mut memory, &Op::default())?;
    Ok((memory.read(data, 1024).unwrap(), counters))
}

/// The kernel stops in every order, with this kind and these words.
pub(crate) fn stops(lines: &str, blocks: u32, threads: u32, kind: StopKind, words: &[&str]) {
    for seed in 0..10 {
        let stop = run(lines, Shape { blocks, threads, seed }).expect_err("the fault was not found");
        assert_eq!(stop.kind, kind, "{stop}");
        for word in words {
            assert!(stop.message.contains(word), "`{word}` is not in: {stop}");
        }
    }
}

/// The kernel runs in every order.
pub(crate) fn passes(lines: &str, blocks: u32, threads: u32) -> Vec<u8> {
    let mut data = Vec::new();
    for seed in 0..10 {
        let (out, _) = run(lines, Shape { blocks, threads, seed }).unwrap_or_else(|stop| panic!("{stop}"));
        assert!(data.is_empty() || data == out, "seed {seed} gives something else");
        data = out;
    }
    data
}

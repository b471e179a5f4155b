//! Each instruction against plain Rust, on values at the edges of its types and on random ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod arithmetic;
mod bits;
mod conversions;
mod floats;
mod halves;
mod tensor;
mod warp;

use cuda_sim_ptx::{Launch, Memory, Module, Op, Random, launch};

/// Runs lines that compute `%o` from `%a`, `%b` and `%c` (all 64 bits wide) once for each triple.
pub(crate) fn run(lines: &str, triples: &[[u64; 3]]) -> Vec<u64> {
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 n)\n{{\n\
         .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %d<16>; .reg .f64 %fd<8>;\n\
         .reg .b64 %a, %b, %c, %o, %from, %to, %at; .reg .b32 %i, %x, %y, %z, %w, %n, %t; .reg .pred %out;\n\
         .reg .b16 %ha, %hb, %hc, %ho;\n\
         ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %n, [n];\n\
         mov.u32 %t, %ctaid.x; mov.u32 %w, %tid.x; mad.lo.u32 %i, %t, 32, %w; setp.ge.u32 %out, %i, %n;\n\
         @%out bra DONE;\n\
         mad.wide.u32 %at, %i, 24, %from;\n\
         ld.global.u64 %a, [%at]; ld.global.u64 %b, [%at+8]; ld.global.u64 %c, [%at+16];\n\
         cvt.u32.u64 %x, %a; cvt.u32.u64 %y, %b; cvt.u32.u64 %z, %c;\n\
         cvt.u16.u64 %ha, %a; cvt.u16.u64 %hb, %b; cvt.u16.u64 %hc, %c;\n\
         mov.u64 %o, 0;\n{lines}\n\
         mad.wide.u32 %at, %i, 8, %to; st.global.u64 [%at], %o;\nDONE: ret;\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    let mut memory = Memory::new(1 << 24);
    let bytes: Vec<u8> = triples.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    let from = memory.allocate(bytes.len() as u64).unwrap();
    memory.write(from, &bytes).unwrap();
    let to = memory.allocate(triples.len() as u64 * 8).unwrap();
    let mut params = Vec::new();
    params.extend(from.to_le_bytes());
    params.extend(to.to_le_bytes());
    params.extend((triples.len() as u32).to_le_bytes());
    let kernel = module.kernel("k").unwrap();
    let blocks = triples.len().div_ceil(32) as u32;
    launch(&Launch::new(kernel, blocks, 32, &params), &mut memory, &Op::default()).unwrap();
    let out = memory.read(to, triples.len() * 8).unwrap();
    out.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// All triples of the edges, and as many random ones.
pub(crate) fn triples(edges: &[u64]) -> Vec<[u64; 3]> {
    let mut all = Vec::new();
    for a in edges {
        for b in edges {
            for c in edges {
                all.push([*a, *b, *c]);
            }
        }
    }
    let mut random = Random::new(7);
    for _ in 0..512 {
        all.push([random.next_u64(), random.next_u64(), random.next_u64()]);
    }
    all
}

/// The edges of integers of 8 to 64 bits.
pub(crate) const INTEGERS: &[u64] = &[
    0,
    1,
    2,
    31,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Checks lines for an instruction against a function of the three inputs; `mask` covers the bits that count.
pub(crate) fn check(lines: &str, edges: &[u64], mask: u64, expected: impl Fn(u64, u64, u64) -> u64) {
    let triples = triples(edges);
    for ([a, b, c], got) in triples.iter().zip(run(lines, &triples)) {
        let expected = expected(*a, *b, *c);
        assert_eq!(got & mask, expected & mask, "{lines}\n{a:#x} {b:#x} {c:#x}: {got:#x}, not {expected:#x}");
    }
}

/// Instructions on 32 bits: `%x`, `%y`, `%z` to `%r0`.
pub(crate) fn check32(instruction: &str, expected: impl Fn(u32, u32, u32) -> u32) {
    let lines = format!("{instruction}; cvt.u64.u32 %o, %r0;");
    check(&lines, INTEGERS, u64::MAX, |a, b, c| u64::from(expected(a as u32, b as u32, c as u32)));
}

/// Instructions on 64 bits: `%a`, `%b`, `%c` to `%o`.
pub(crate) fn check64(instruction: &str, expected: impl Fn(u64, u64, u64) -> u64) {
    check(&format!("{instruction};"), INTEGERS, u64::MAX, expected);
}

/// f32 values at the edges.
pub(crate) const FLOATS: &[f32] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    -2.5,
    3.0,
    1e-3,
    // Just above a tie of bf16.
    0.250_976_6,
    -7.25e4,
    1e30,
    -1e30,
    3.4e38,
    1.2e-38,
    1e-40,
    -1e-45,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// Instructions on f32: `%x`, `%y`, `%z` to `%r0`; results may differ by `ulps`, and in the payload of a NaN.
pub(crate) fn check_f32(instruction: &str, ulps: u32, expected: impl Fn(f32, f32, f32) -> f32) {
    let edges: Vec<u64> = FLOATS.iter().map(|x| u64::from(x.to_bits())).collect();
    let triples = triples(&edges);
    let lines = format!("{instruction}; cvt.u64.u32 %o, %r0;");
    for ([a, b, c], got) in triples.iter().zip(run(&lines, &triples)) {
        let [a, b, c] = [*a, *b, *c].map(|bits| f32::from_bits(bits as u32));
        let (got, expected) = (f32::from_bits(got as u32), expected(a, b, c));
        let near = got.to_bits().abs_diff(expected.to_bits()) <= ulps;
        assert!(
            near || got.is_nan() && expected.is_nan(),
            "{instruction} of {a:e} {b:e} {c:e}: {got:e}, not {expected:e}"
        );
    }
}

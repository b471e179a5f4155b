//! `ldmatrix` and `mma.sync` against a plain matrix multiplication. The layouts of fragments are those of the PTX manual.

use cuda_sim_ptx::{Launch, Memory, Module, Op, Random, launch};
use half::{bf16, f16};

/// Runs `mma` on registers: for each lane, `inputs` words in, `outputs` words out.
fn multiply(instruction: &str, inputs: usize, outputs: usize, registers: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let loads: String = (0..inputs).map(|i| format!("ld.global.u32 %r{i}, [%from+{}];\n", i * 4)).collect();
    let stores: String = (0..outputs).map(|i| format!("st.global.u32 [%to+{}], %r{};\n", i * 4, 20 + i)).collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to) {{\n\
         .reg .b32 %r<32>; .reg .b32 %t; .reg .b64 %from, %to;\n\
         ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.u32 %t, %tid.x;\n\
         mad.wide.u32 %from, %t, {}, %from; mad.wide.u32 %to, %t, {}, %to;\n{loads}{instruction};\n{stores}ret; }}",
        inputs * 4,
        outputs * 4
    );
    let module = Module::parse(&text).unwrap();
    let mut memory = Memory::new(1 << 20);
    let bytes: Vec<u8> = registers.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let (from, to) = (memory.allocate(bytes.len() as u64).unwrap(), memory.allocate(32 * 4 * outputs as u64).unwrap());
    memory.write(from, &bytes).unwrap();
    let params: Vec<u8> = [from, to].into_iter().flat_map(u64::to_le_bytes).collect();
    let counters =
        launch(&Launch::new(module.kernel("k").unwrap(), 1, 32, &params), &mut memory, &Op::default()).unwrap();
    assert_eq!(counters.tensor_instructions, 1);
    let out = memory.read(to, 32 * 4 * outputs).unwrap();
    let words: Vec<u32> = out.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    words.chunks_exact(outputs).map(<[u32]>::to_vec).collect()
}

struct Matrices {
    a: Vec<Vec<f32>>,
    b: Vec<Vec<f32>>,
    c: Vec<Vec<f32>>,
}

/// Small integers, so that every order of sums gives the same.
fn matrices(k: usize) -> Matrices {
    let mut random = Random::new(3);
    let mut matrix = |rows: usize, columns: usize| -> Vec<Vec<f32>> {
        (0..rows).map(|_| (0..columns).map(|_| random.below(17) as f32 - 8.0).collect()).collect()
    };
    Matrices { a: matrix(16, k), b: matrix(k, 8), c: matrix(16, 8) }
}

fn expected(m: &Matrices, row: usize, column: usize) -> f32 {
    m.c[row][column] + m.a[row].iter().zip(&m.b).map(|(a, b)| a * b[column]).sum::<f32>()
}

/// Registers of A, B and C for pairs of 16-bit elements.
fn pairs(m: &Matrices, k: usize, bits: fn(f32) -> u16) -> Vec<Vec<u32>> {
    let join = |low: f32, high: f32| u32::from(bits(low)) | u32::from(bits(high)) << 16;
    let lane = |lane: usize| {
        let (group, thread) = (lane / 4, lane % 4);
        let mut words = Vec::new();
        for register in 0..k / 4 {
            let (row, column) = (group + register % 2 * 8, thread * 2 + register / 2 * 8);
            words.push(join(m.a[row][column], m.a[row][column + 1]));
        }
        for register in 0..k / 8 {
            let row = thread * 2 + register * 8;
            words.push(join(m.b[row][group], m.b[row + 1][group]));
        }
        words
    };
    (0..32).map(lane).collect()
}

fn add_sums(m: &Matrices, registers: &mut [Vec<u32>]) {
    for (lane, words) in registers.iter_mut().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        for (row, column) in [(row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1)] {
            words.push(m.c[row][column].to_bits());
        }
    }
}

fn check_sums(m: &Matrices, out: &[Vec<u32>]) {
    for (lane, words) in out.iter().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let places = [(row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1)];
        for (word, (row, column)) in words.iter().zip(places) {
            assert_eq!(f32::from_bits(*word), expected(m, row, column), "row {row} column {column}");
        }
    }
}

#[test]
fn bf16_16x8x16() {
    let m = matrices(16);
    let mut registers = pairs(&m, 16, |x| bf16::from_f32(x).to_bits());
    add_sums(&m, &mut registers);
    let instruction = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r20,%r21,%r22,%r23}, \
                       {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r6,%r7,%r8,%r9}";
    check_sums(&m, &multiply(instruction, 10, 4, &registers));
}

#[test]
fn f16_16x8x8() {
    let m = matrices(8);
    let mut registers = pairs(&m, 8, |x| f16::from_f32(x).to_bits());
    add_sums(&m, &mut registers);
    let instruction = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r20,%r21,%r22,%r23}, \
                       {%r0,%r1}, {%r2}, {%r3,%r4,%r5,%r6}";
    check_sums(&m, &multiply(instruction, 7, 4, &registers));
}

#[test]
fn f16_sums_in_f16() {
    let m = matrices(16);
    let mut registers = pairs(&m, 16, |x| f16::from_f32(x).to_bits());
    for (lane, words) in registers.iter_mut().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        for row in [row, row + 8] {
            let half = |x: f32| u32::from(f16::from_f32(x).to_bits());
            words.push(half(m.c[row][column]) | half(m.c[row][column + 1]) << 16);
        }
    }
    let instruction = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r20,%r21}, \
                       {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r6,%r7}";
    for (lane, words) in multiply(instruction, 8, 2, &registers).iter().enumerate() {
        for (half, row) in words.iter().zip([lane / 4, lane / 4 + 8]) {
            for index in 0..2 {
                let got = f16::from_bits((half >> (16 * index)) as u16).to_f32();
                assert_eq!(got, expected(&m, row, lane % 4 * 2 + index));
            }
        }
    }
}

#[test]
fn tf32_16x8x8() {
    let m = matrices(8);
    let mut registers: Vec<Vec<u32>> = (0..32)
        .map(|lane| {
            let (group, thread) = (lane / 4, lane % 4);
            let a = |register: usize| m.a[group + register % 2 * 8][thread + register / 2 * 4].to_bits();
            let b = |register: usize| m.b[thread + register * 4][group].to_bits();
            vec![a(0), a(1), a(2), a(3), b(0), b(1)]
        })
        .collect();
    add_sums(&m, &mut registers);
    let instruction = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r20,%r21,%r22,%r23}, \
                       {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%r6,%r7,%r8,%r9}";
    check_sums(&m, &multiply(instruction, 10, 4, &registers));
}

/// Each lane stores one row of the four matrices; then all load, plainly or transposed.
#[test]
fn matrices_from_shared_memory() {
    for transposed in [false, true] {
        let trans = if transposed { ".trans" } else { "" };
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 to) {{\n\
             .shared .align 16 .b8 tile[512]; .reg .b32 %r<16>; .reg .b64 %to;\n\
             ld.param.u64 %to, [to]; mov.u32 %r0, %tid.x; mad.wide.u32 %to, %r0, 16, %to; mov.u32 %r1, tile;\n\
             mad.lo.u32 %r1, %r0, 16, %r1; shl.b32 %r2, %r0, 3; add.u32 %r3, %r2, 65536; mul.lo.u32 %r4, %r2, 65537;\n\
             add.u32 %r5, %r4, 65536; add.u32 %r6, %r5, 131074; add.u32 %r7, %r6, 131074; add.u32 %r8, %r7, 131074;\n\
             st.shared.v4.u32 [%r1], {{%r5, %r6, %r7, %r8}}; bar.warp.sync -1;\n\
             ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%r9, %r10, %r11, %r12}}, [%r1];\n\
             st.global.v4.u32 [%to], {{%r9, %r10, %r11, %r12}}; ret; }}"
        );
        let module = Module::parse(&text).unwrap();
        let mut memory = Memory::new(1 << 20);
        let to = memory.allocate(512).unwrap();
        let params = to.to_le_bytes();
        launch(&Launch::new(module.kernel("k").unwrap(), 1, 32, &params), &mut memory, &Op::default()).unwrap();
        let out = memory.read(to, 512).unwrap();
        let half = |at: usize| u16::from_le_bytes([out[at], out[at + 1]]);
        for lane in 0..32 {
            for matrix in 0..4 {
                for index in 0..2 {
                    let (row, column) = (lane / 4, lane % 4 * 2 + index);
                    let (row, column) = if transposed { (column, row) } else { (row, column) };
                    let expected = ((matrix * 8 + row) * 8 + column) as u16;
                    assert_eq!(half(lane * 16 + matrix * 4 + index * 2), expected, "lane {lane} matrix {matrix}");
                }
            }
        }
    }
}

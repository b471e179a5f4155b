//! Runs the same random program of tile instructions twice: emulated in this process, which never asks for the
//! permission to use tiles, and on the processor's tiles in another process, which does. Every bit must be the same.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![expect(unsafe_code, reason = "tile instructions, and the permission to use them")]

use std::arch::asm;
use std::path::Path;
use std::process::Command;

use amx_emulator::{Unsupported, executed, install, skipped};

/// Environment variable with the file to which the process on the hardware writes what the program stored.
const OUTPUT: &str = "AMX_EMULATOR_TEST_OUTPUT";
const ROUNDS: usize = 400;

/// Random numbers by xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Returns a bf16 of a class: ordinary, small (products are denormal), large (sums overflow), any bits.
    fn bf16(&mut self, class: usize) -> u16 {
        let bits = self.next() as u16;
        let exponent = |low: u16, n: usize, random: &mut Self| (low + random.below(n) as u16) << 7;
        match class {
            0 => bits & 0x807f | exponent(120, 14, self),
            1 => bits & 0x807f | exponent(0, 100, self),
            2 => bits & 0x807f | exponent(180, 75, self),
            3 => bits & 0x807f | exponent(56, 16, self),
            _ => bits,
        }
    }

    fn word(&mut self, class: usize) -> u32 {
        u32::from(self.bf16(class)) | u32::from(self.bf16(class)) << 16
    }

    /// Returns an f32 of the same classes; in the small one it is as small as products, or a little larger.
    fn f32(&mut self, class: usize) -> u32 {
        let bits = self.word(class);
        // Differences of such sums and products are denormal.
        if class == 3 { bits & 0x807f_ffff | (self.below(20) as u32) << 23 } else { bits }
    }
}

/// Memory of the program, in cache lines.
#[repr(C, align(64))]
struct Memory([u8; 4096]);

fn filled(mut word: impl FnMut() -> u32) -> Memory {
    let mut memory = Memory([0; 4096]);
    memory.0.chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&word().to_le_bytes()));
    memory
}

/// Runs the program and returns all that it stored.
fn run() -> Vec<u8> {
    let (mut random, mut stored) = (Random(20_260_101), Vec::new());
    for round in 0..ROUNDS {
        let whole = round % 4 == 0;
        let mut extent = |most: usize| if whole { most } else { 1 + random.below(most) };
        let [rows, words, columns] = [extent(16), extent(16), extent(16)];
        let mut config = Memory([0; 4096]);
        config.0[0] = 1;
        // Sums in tmm0 and tmm3, left sides in tmm1, right sides in tmm2.
        for (tile, rows, width) in [(0, rows, columns), (1, rows, words), (2, words, columns), (3, rows, columns)] {
            (config.0[16 + 2 * tile], config.0[48 + tile]) = (4 * width as u8, rows as u8);
        }
        let class = random.below(5);
        let sums = filled(|| random.f32(class));
        let left = filled(|| random.word(class));
        let right = filled(|| random.word(class));
        let mut out = Memory([0xa5; 4096]);
        let stride = 4 * (16 + random.below(40));
        // SAFETY: the operands have 4096 bytes: more than 16 rows of the widest stride.
        unsafe {
            asm!(
                "ldtilecfg [{config}]",
                "tileloadd tmm0, [{sums} + {stride}*1]",
                "tileloaddt1 tmm1, [{left} + {quarter}*4]",
                "tileloadd tmm2, [{right} + {stride}*1 + 64]",
                "tdpbf16ps tmm0, tmm1, tmm2",
                "tilestored [{out} + {stride}*1], tmm0",
                "tilezero tmm3",
                "tdpbf16ps tmm3, tmm1, tmm2",
                "tdpbf16ps tmm3, tmm1, tmm2",
                "tilestored [{out} + {stride}*1 + 128], tmm3",
                "tileloadd tmm1, [{left}]",
                "sttilecfg [{out} + 4032]",
                config = in(reg) config.0.as_ptr(),
                sums = in(reg) sums.0.as_ptr(),
                left = in(reg) left.0.as_ptr(),
                right = in(reg) right.0.as_ptr(),
                out = in(reg) out.0.as_mut_ptr(),
                stride = in(reg) stride,
                quarter = in(reg) stride / 4,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                options(nostack),
            );
            // A row without a stride, and the end of the tiles' use.
            asm!(
                "tilestored [{out}], tmm1",
                "tilerelease",
                out = in(reg) out.0.as_mut_ptr().wrapping_add(3900),
                out("tmm1") _,
                options(nostack),
            );
        }
        stored.extend_from_slice(&out.0);
    }
    stored
}

/// Asks Linux for the tiles: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
fn permitted() -> bool {
    const SYS_ARCH_PRCTL: i64 = 158;
    let result: i64;
    // SAFETY: a system call that reads and writes no memory.
    unsafe {
        asm!("syscall", inlateout("rax") SYS_ARCH_PRCTL => result, in("rdi") 0x1023, in("rsi") 18, out("rcx") _,
             out("r11") _, options(nostack));
    }
    result == 0
}

#[test]
fn the_emulator_has_the_bits_of_the_hardware() {
    if let Some(path) = std::env::var_os(OUTPUT) {
        // In the other process. It writes nothing if the processor has no tiles.
        if permitted() {
            std::fs::write(path, run()).unwrap();
        }
        return;
    }
    if let Err(error @ (Unsupported::System | Unsupported::Avx512)) = install() {
        return skipped(error);
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("amx-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe().unwrap());
    let name = "the_emulator_has_the_bits_of_the_hardware";
    assert!(child.args(["--exact", name]).env(OUTPUT, &path).output().unwrap().status.success());
    let emulated = run();
    assert!(executed() >= 10 * ROUNDS as u64, "{} instructions were emulated", executed());
    let Ok(expected) = std::fs::read(&path) else {
        return skipped("the comparison with the hardware, because this processor has no AMX");
    };
    std::fs::remove_file(&path).unwrap();
    for (round, (found, expected)) in emulated.chunks(4096).zip(expected.chunks(4096)).enumerate() {
        let different = (0..4096).find(|at| found[*at] != expected[*at]);
        if let Some(at) = different {
            let word = |bytes: &[u8]| u32::from_le_bytes(bytes[at & !3..][..4].try_into().unwrap());
            panic!("round {round}, byte {at}: {:08x}, on the hardware {:08x}", word(found), word(expected));
        }
    }
    assert_eq!(emulated.len(), expected.len());
}

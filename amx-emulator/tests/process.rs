//! Effects of emulation on a process: each thread has its own tiles, and other illegal instructions still end the
//! process.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "tests")]
#![expect(unsafe_code, reason = "machine code")]

use std::arch::asm;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use amx_emulator::{install, skipped};

/// Environment variable that is set in the process that is to end.
const ENDS: &str = "AMX_EMULATOR_TEST_ENDS";
const SIGILL: i32 = 4;

/// Installs the emulator and returns whether instructions are emulated from now on.
fn installed() -> bool {
    install().map_err(skipped).is_ok()
}

#[repr(C, align(64))]
struct Lines([u8; 1024]);

#[test]
fn threads_have_tiles_of_their_own() {
    if !installed() {
        return;
    }
    let all_loaded = Barrier::new(2);
    let stored = |value: u8| {
        let mut config = Lines([0; 1024]);
        (config.0[0], config.0[16], config.0[48]) = (1, 64, 16);
        let (data, mut out) = (Lines([value; 1024]), Lines([0; 1024]));
        // SAFETY: a tile of 1024 bytes is loaded.
        unsafe {
            asm!(
                "ldtilecfg [{}]", "tileloadd tmm0, [{} + {}*1]",
                in(reg) config.0.as_ptr(), in(reg) data.0.as_ptr(), in(reg) 64usize, out("tmm0") _, options(nostack),
            );
        }
        all_loaded.wait();
        // SAFETY: a tile of 1024 bytes is stored; the emulator, like the processor, keeps it between two statements.
        unsafe { asm!("tilestored [{} + {}*1], tmm0", in(reg) out.0.as_mut_ptr(), in(reg) 64usize, options(nostack)) };
        out.0
    };
    let (one, two) = thread::scope(|scope| {
        let other = scope.spawn(|| stored(2));
        (stored(1), other.join().unwrap())
    });
    assert_eq!((one, two), ([1; 1024], [2; 1024]));
}

#[test]
fn other_illegal_instructions_end_the_process() {
    if !installed() {
        return;
    }
    if std::env::var_os(ENDS).is_some() {
        // SAFETY: the process ends.
        unsafe { asm!("ud2", options(noreturn, nostack)) };
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let child = child.args(["--exact", "other_illegal_instructions_end_the_process"]).env(ENDS, "1").output().unwrap();
    assert_eq!(child.status.signal(), Some(SIGILL));
}

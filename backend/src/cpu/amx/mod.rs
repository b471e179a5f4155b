//! Tile instructions of AMX with bf16 operands (Intel, "Architecture Instruction Set Extensions", chapter on AMX): whether
//! this process may use them, and how a thread configures them. The micro-kernels that all products are made of multiply two
//! sides (`product`), or several pairs of packed ones into the same sums (`segments`, `blocks`).
//!
//! Arithmetic of one `tdpbf16ps`, for each of 16 × 16 sums: the 16 products of even positions of `k` are added up by fused
//! multiply-adds from zero, those of odd positions likewise, then the two are added, and that to the old sum. Denormal inputs
//! and results count as zero. So the bits of an element depend only on the order of tiles along `k`: positions are
//! grouped
//! in runs of [`TILE_K`](super::tile_layout::TILE_K) from the first one that is multiplied.

#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(test)]
mod emulated_tests;
#[cfg(target_arch = "x86_64")]
mod product;
#[cfg(target_arch = "x86_64")]
mod segments;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_arch = "x86_64")]
pub(super) use blocks::multiply_blocks;
#[cfg(target_arch = "x86_64")]
pub(super) use product::multiply;
#[cfg(target_arch = "x86_64")]
pub(super) use segments::multiply_segments;

/// Whether the processor has AMX with bf16, the system saves its registers, and this process got the permission to use
/// them; or the instructions are emulated. Asked once.
pub(super) fn is_permitted() -> bool {
    static PERMITTED: OnceLock<bool> = OnceLock::new();
    *PERMITTED.get_or_init(|| is_emulated() || (is_enabled() && request_permission()))
}

static EMULATED: AtomicBool = AtomicBool::new(false);

/// Declares tile instructions available without asking the processor or the system, for tests. Must be called before
/// anything queries the available instruction sets.
///
/// # Safety
/// All threads of this process execute tile instructions as a processor would, because a handler of the signal that they raise
/// emulates them.
pub unsafe fn assume_emulated_amx() {
    EMULATED.store(true, Ordering::Relaxed);
}

fn is_emulated() -> bool {
    #[cfg(test)]
    if amx_emulator::is_rerun() {
        // SAFETY: the emulator is installed.
        unsafe { assume_emulated_amx() };
    }
    EMULATED.load(Ordering::Relaxed)
}

/// CPUID leaf 7 and the state components of XCR0.
#[cfg(target_arch = "x86_64")]
fn is_enabled() -> bool {
    use std::arch::x86_64::{__cpuid_count, _xgetbv};
    const AMX_BF16: u32 = 1 << 22;
    const AMX_TILE: u32 = 1 << 24;
    /// State components XTILECFG and XTILEDATA.
    const STATES: u64 = 1 << 17 | 1 << 18;

    #[target_feature(enable = "xsave")]
    fn states() -> u64 {
        // SAFETY: XCR0 may be read wherever the system has enabled XSAVE, as the caller checked.
        unsafe { _xgetbv(0) }
    }

    // The detection of XSAVE includes that the system has enabled it.
    if !is_x86_feature_detected!("xsave") {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    // SAFETY: the processor has XSAVE.
    features & AMX_BF16 != 0 && features & AMX_TILE != 0 && unsafe { states() } & STATES == STATES
}

/// Asks Linux for the tile registers: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn request_permission() -> bool {
    const SYS_ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let result: i64;
    // SAFETY: a system call that reads and writes no memory; it clobbers rcx and r11.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") SYS_ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn request_permission() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn is_enabled() -> bool {
    false
}

/// The operand of `ldtilecfg`.
#[cfg(target_arch = "x86_64")]
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// Configures the eight tile registers of this thread as 16 rows of 64 bytes, unless that happened before. They stay so.
///
/// # Safety
/// The process [`is_permitted`].
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) unsafe fn configure() {
    use std::cell::Cell;
    thread_local! {
        static CONFIGURED: Cell<bool> = const { Cell::new(false) };
    }
    if CONFIGURED.get() {
        return;
    }
    let mut config = TileConfig { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
    config.row_bytes[..8].fill(64);
    config.rows[..8].fill(16);
    // SAFETY: the operand has 64 bytes and is valid for palette 1.
    unsafe { std::arch::asm!("ldtilecfg [{}]", in(reg) &raw const config, options(nostack, readonly)) };
    CONFIGURED.set(true);
}

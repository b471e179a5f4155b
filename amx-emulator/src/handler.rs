//! The handler of SIGILL: decodes the instruction at which the program stopped, executes it and continues after it.
#![expect(unsafe_code, reason = "a signal handler gets the program's registers and memory as pointers")]

use std::arch::x86_64::__cpuid_count;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{mem, ptr, slice};

use super::Unsupported;
use super::arithmetic::multiply_bf16;
use super::decode::{Address, Base, Instruction, decode};
use super::tiles::{Config, Fault, Tiles};

/// General-purpose registers in the order of their numbers.
const REGISTERS: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

static EXECUTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    // Initialised by the compiler and never dropped: the handler may access it at any time.
    static TILES: RefCell<Tiles> = const { RefCell::new(Tiles::new()) };
}

/// Number of tile instructions emulated in this process.
pub fn executed() -> u64 {
    EXECUTED.load(Ordering::Relaxed)
}

/// Installs the handler if the processor has AVX-512.
pub(super) fn install() -> Result<(), Unsupported> {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_illegal_instruction;
    let installed = INSTALLED.get_or_init(|| {
        // SAFETY: all zeros is a valid action; its fields are set afterwards. The handler has the signature of
        // SA_SIGINFO.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGILL, &raw const action, ptr::null_mut()) == 0
        }
    });
    if *installed { Ok(()) } else { Err(Unsupported::Handler) }
}

extern "C" fn on_illegal_instruction(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the system passes the interrupted thread's registers, which nobody else accesses.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    match TILES.with_borrow_mut(|tiles| execute(tiles, context)) {
        Ok(()) => {}
        // The instruction is executed again, and the process ends as it would without a handler.
        // SAFETY: a change of the signal's disposition, which is allowed in a handler.
        Err(Fault) => drop(unsafe { libc::signal(libc::SIGILL, libc::SIG_DFL) }),
    }
}

/// Executes the instruction at which a thread stopped, then any tile instructions that follow directly, which saves one
/// signal for each of them. Moves the thread behind the last of them.
fn execute(tiles: &mut Tiles, context: &mut libc::ucontext_t) -> Result<(), Fault> {
    // SAFETY: the system passed this context to the handler.
    if let Some(config) = unsafe { loaded_config(context) } {
        // This processor has AMX. The thread's configuration is in the registers, because loading it does not need the
        // permission for tiles.
        if config != *tiles.config() {
            tiles.configure(config);
        }
    }
    let mut at = context.uc_mcontext.gregs[libc::REG_RIP as usize].cast_unsigned();
    let (instruction, end) = decode_at(at).ok_or(Fault)?;
    execute_one(tiles, context, instruction, end)?;
    at = end;
    while let Some((instruction, end)) = decode_at(at).filter(|(instruction, _)| instruction.keeps_config()) {
        // An instruction that is not valid here is executed again by the processor, as the first one would be.
        if execute_one(tiles, context, instruction, end).is_err() {
            break;
        }
        at = end;
    }
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = at.cast_signed();
    Ok(())
}

/// The tile instruction at an address, and the address behind it.
fn decode_at(address: u64) -> Option<(Instruction, u64)> {
    let mut at = address as *const u8;
    let next = || {
        // SAFETY: the processor has read these bytes as an instruction, or is about to; decoding stops at its end, or within the
        // first bytes of another one.
        let byte = unsafe { *at };
        at = at.wrapping_add(1);
        byte
    };
    let (instruction, length) = decode(next)?;
    Some((instruction, address + length as u64))
}

/// Executes an instruction with the registers of a thread; `end` is the address behind it.
fn execute_one(tiles: &mut Tiles, context: &libc::ucontext_t, instruction: Instruction, end: u64) -> Result<(), Fault> {
    let register = |number: usize| context.uc_mcontext.gregs[REGISTERS[number] as usize].cast_unsigned();
    let operand = |address: Address| {
        let base = match address.base {
            Base::Register(number) => register(number),
            Base::Next => end,
            Base::Nothing => 0,
        };
        let stride = address.index.map_or(0, |(number, scale)| register(number).wrapping_mul(scale));
        (base.wrapping_add_signed(i64::from(address.displacement)), stride)
    };
    let row = |(start, stride): (u64, u64), number: usize| start.wrapping_add(stride.wrapping_mul(number as u64));
    match instruction {
        Instruction::LoadConfig(address) => {
            // SAFETY: the instruction reads the 64 bytes of its operand.
            let bytes = unsafe { *(row(operand(address), 1) as *const [u8; 64]) };
            tiles.configure(Config::parse(bytes).ok_or(Fault)?);
        }
        Instruction::StoreConfig(address) => {
            let to = row(operand(address), 1) as *mut [u8; 64];
            // SAFETY: the instruction writes the 64 bytes of its operand.
            unsafe { to.write_unaligned(*tiles.config().bytes()) };
        }
        Instruction::Release => tiles.configure(Config::NONE),
        Instruction::Zero(tile) => tiles.zero(tile)?,
        Instruction::Load(tile, address) => {
            let from = operand(address);
            tiles.load(tile, |number, bytes| {
                // SAFETY: the instruction reads these bytes. They can't overlap the tile's own bytes, which the program
                // can't address.
                unsafe { ptr::copy_nonoverlapping(row(from, number) as *const u8, bytes.as_mut_ptr(), bytes.len()) };
            })?;
        }
        Instruction::Store(address, tile) => {
            let to = operand(address);
            tiles.store(tile, |number, bytes| {
                // SAFETY: the instruction writes these bytes.
                unsafe { slice::from_raw_parts_mut(row(to, number) as *mut u8, bytes.len()) }.copy_from_slice(bytes);
            })?;
        }
        Instruction::MultiplyBf16(operands) => {
            // SAFETY: the handler is installed only on processors with AVX-512; the tiles' configuration allows 1 to 16
            // rows and words.
            tiles.multiply(operands, |to, a, b, extents| unsafe { multiply_bf16(to, a, b, extents) })?;
        }
    }
    EXECUTED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Returns the tile configuration of the interrupted thread if the processor has tiles: part of the state that XSAVE
/// stores.
///
/// # Safety
/// The context is one that the system passed to a signal handler.
unsafe fn loaded_config(context: &libc::ucontext_t) -> Option<Config> {
    /// Number of the state component XTILECFG.
    const COMPONENT: u32 = 17;
    /// Offsets in the legacy area and in the header: the mark that more follows, the components present, and those that
    /// are not initial.
    const MARK: usize = 464;
    const COMPONENTS: usize = 472;
    const IN_USE: usize = 512;
    const EXTENDED: u32 = 0x4650_5853;
    let area = context.uc_mcontext.fpregs.cast::<u8>();
    // SAFETY: the area is 512 bytes or, where the mark says so, longer by the header and the components that it names, each at
    // the offset that the processor reports.
    unsafe {
        let has = |at: usize| area.add(at).cast::<u64>().read_unaligned() >> COMPONENT & 1 == 1;
        if area.is_null() || area.add(MARK).cast::<u32>().read_unaligned() != EXTENDED || !has(COMPONENTS) {
            return None;
        }
        if !has(IN_USE) {
            return Some(Config::NONE);
        }
        let offset = __cpuid_count(0xd, COMPONENT).ebx as usize;
        Config::parse(area.add(offset).cast::<[u8; 64]>().read_unaligned())
    }
}

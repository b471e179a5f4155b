//! Decoded instructions: every function, type and register is resolved.

use crate::row::{Binary, Quaternary, Ternary, Unary};
use crate::types::Type;
use crate::value::convert::Conversion;

/// Index of a register in a warp.
pub(crate) type Reg = u32;

/// Stands for the destination `_`.
pub(crate) const DISCARD: Reg = u32::MAX;

#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub(crate) op: Operation,
    /// `@p` or `@!p`: the register, and whether it is negated.
    pub(crate) guard: Option<(Reg, bool)>,
    pub(crate) line: u32,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operand {
    Reg(Reg),
    /// Register with a predicate that is negated.
    Not(Reg),
    Imm(u64),
    Special(Special),
    /// The address of a variable of the module.
    Variable(usize),
}

/// Registers that the hardware provides; `u8` is the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(u8),
    BlockDim(u8),
    Block(u8),
    GridDim(u8),
    Lane,
    Warp,
    WarpCount,
    LaneMask(Lanes),
    Clock,
    /// Start of dynamic shared memory, behind the static variables.
    DynamicShared,
}

/// Lanes in a `%lanemask_*`, relative to the own lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) base: Operand,
    pub(crate) offset: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Param,
    Const,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

/// A matrix instruction's operands: rows of A are 16, columns of B are 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MmaShape {
    /// The depth of the multiplication.
    pub(crate) k: usize,
    pub(crate) input: Type,
    /// The accumulator's type, of C and D.
    pub(crate) sum: Type,
}

/// New value of a memory location from the old one and one or two operands.
pub(crate) type AtomicFn = fn(u64, u64, u64) -> u64;

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Nop,
    Unary {
        f: Unary,
        d: Reg,
        a: Operand,
    },
    Binary {
        f: Binary,
        d: Reg,
        a: Operand,
        b: Operand,
    },
    Ternary {
        f: Ternary,
        d: Reg,
        a: Operand,
        b: Operand,
        c: Operand,
    },
    Quaternary {
        f: Quaternary,
        d: Reg,
        sources: [Operand; 4],
    },
    /// The second value where the comparison holds, else the first.
    Set {
        f: Binary,
        d: Reg,
        a: Operand,
        b: Operand,
        values: [u64; 2],
    },
    Convert {
        conversion: Conversion,
        d: Reg,
        a: Operand,
    },
    /// `lop3` with its table.
    Logic {
        d: Reg,
        a: Operand,
        b: Operand,
        c: Operand,
        table: u8,
    },
    Pack {
        d: Reg,
        sources: Vec<Operand>,
        bits: u32,
    },
    Unpack {
        d: Vec<Reg>,
        a: Operand,
        bits: u32,
    },
    SetPredicate {
        f: Binary,
        a: Operand,
        b: Operand,
        combine: Option<(Combine, Operand)>,
        d: Reg,
        complement: Reg,
    },
    /// `strong` for `.volatile`, `.relaxed`, `.acquire` and `.release`: no race with atomics.
    Load {
        space: Space,
        ty: Type,
        strong: bool,
        d: Vec<Reg>,
        address: Address,
    },
    Store {
        space: Space,
        ty: Type,
        strong: bool,
        sources: Vec<Operand>,
        address: Address,
    },
    Atomic {
        space: Space,
        size: usize,
        f: AtomicFn,
        d: Reg,
        address: Address,
        b: Operand,
        c: Operand,
    },
    ToGeneric {
        space: Space,
        d: Reg,
        a: Operand,
    },
    FromGeneric {
        space: Space,
        d: Reg,
        a: Operand,
    },
    IsSpace {
        space: Space,
        d: Reg,
        a: Operand,
    },
    Branch {
        target: usize,
    },
    Exit,
    Trap,
    Fence,
    Barrier {
        id: Operand,
        threads: Option<Operand>,
        arrive_only: bool,
    },
    BarrierReduce {
        id: Operand,
        mode: VoteMode,
        count: bool,
        d: Reg,
        a: Operand,
    },
    WarpBarrier {
        mask: Operand,
    },
    Shuffle {
        mode: ShuffleMode,
        d: Reg,
        valid: Reg,
        a: Operand,
        b: Operand,
        clamp: Operand,
        mask: Operand,
    },
    Vote {
        mode: VoteMode,
        d: Reg,
        a: Operand,
        mask: Operand,
    },
    MatchAny {
        size: usize,
        d: Reg,
        a: Operand,
        mask: Operand,
    },
    MatchAll {
        size: usize,
        d: Reg,
        valid: Reg,
        a: Operand,
        mask: Operand,
    },
    Reduce {
        f: fn(u64, u64) -> u64,
        d: Reg,
        a: Operand,
        mask: Operand,
    },
    ActiveMask {
        d: Reg,
    },
    AsyncCopy {
        size: usize,
        source_size: Option<Operand>,
        to: Address,
        from: Address,
    },
    AsyncCommit,
    AsyncWait {
        keep: usize,
    },
    LoadMatrix {
        transposed: bool,
        d: Vec<Reg>,
        address: Address,
    },
    Mma {
        shape: MmaShape,
        d: Vec<Reg>,
        a: Vec<Operand>,
        b: Vec<Operand>,
        c: Vec<Operand>,
    },
}

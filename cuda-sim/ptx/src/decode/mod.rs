//! A statement to a decoded instruction: every function, type and register is resolved here, once.

mod arithmetic;
mod control;
mod memory;
mod tensor;

use crate::instruction::Operation;
use crate::parse::{Names, Result, Statement};

/// Decodes everything but branches, whose labels the parser resolves.
pub(crate) fn decode(statement: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    match statement.opcode() {
        "ld" | "ldu" => memory::load(statement, names),
        "st" => memory::store(statement, names),
        "atom" | "red" => memory::atomic(statement, names),
        "cvta" | "isspacep" => memory::address(statement, names),
        "cp" => memory::async_copy(statement, names),
        "ldmatrix" => tensor::load_matrix(statement, names),
        "mma" => tensor::multiply(statement, names),
        "bar" | "barrier" => control::barrier(statement, names),
        "shfl" | "vote" | "match" | "redux" | "activemask" => control::warp(statement, names),
        "ret" | "exit" => Ok(Operation::Exit),
        "trap" | "brkpt" => Ok(Operation::Trap),
        "membar" | "fence" => Ok(Operation::Fence),
        "nanosleep" | "prefetch" | "prefetchu" | "pmevent" | "discard" | "applypriority" => Ok(Operation::Nop),
        _ => arithmetic::decode(statement, names),
    }
}

//! Decoding of `ldmatrix` and `mma.sync`.

use crate::instruction::{MmaShape, Operation};
use crate::parse::{Names, Result, Statement};
use crate::types::Type;

pub(crate) fn load_matrix(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    if !of.has("m8n8") || !of.has("b16") {
        return Err(of.unknown());
    }
    let d = names.destinations(of, of.operand(0)?)?;
    let expected = [("x1", 1), ("x2", 2), ("x4", 4)].into_iter().find(|(suffix, _)| of.has(suffix));
    if expected.map(|(_, count)| count) != Some(d.len()) {
        return Err(of.error("as many registers as matrices are expected"));
    }
    let address = names.address(of, of.operand(1)?)?;
    Ok(Operation::LoadMatrix { transposed: of.has("trans"), d, address })
}

pub(crate) fn multiply(of: &Statement<'_>, names: &mut Names<'_>) -> Result<Operation> {
    let [d_type, a_type, b_type, c_type] = of.types()[..] else { return Err(of.unknown()) };
    let k = [("m16n8k4", 4), ("m16n8k8", 8), ("m16n8k16", 16)].into_iter().find(|(shape, _)| of.has(shape));
    let (_, k) = k.ok_or_else(|| of.unknown())?;
    let known = match a_type {
        Type::Bf16 => k >= 8 && d_type == Type::F32,
        Type::F16 => k >= 8 && matches!(d_type, Type::F32 | Type::F16),
        Type::Tf32 => k <= 8 && d_type == Type::F32,
        _ => false,
    };
    if !known || a_type != b_type || c_type != d_type || !of.has("row") || !of.has("col") {
        return Err(of.unknown());
    }
    let d = names.destinations(of, of.operand(0)?)?;
    let a = names.sources(of, of.operand(1)?)?;
    let b = names.sources(of, of.operand(2)?)?;
    let c = names.sources(of, of.operand(3)?)?;
    let shape = MmaShape { k, input: a_type, sum: d_type };
    if a.len() != shape.a_registers() || b.len() * 2 != a.len() || d.len() != shape.sums() || c.len() != d.len() {
        return Err(of.error("the number of registers does not fit the shape"));
    }
    Ok(Operation::Mma { shape, d, a, b, c })
}

impl MmaShape {
    /// Elements of A and B in one register.
    pub(crate) fn packed(self) -> usize {
        4 / self.input.size()
    }

    /// Registers of A in each lane; B has half as many.
    pub(crate) fn a_registers(self) -> usize {
        16 * self.k / 32 / self.packed()
    }

    /// Registers of C and D in each lane.
    pub(crate) fn sums(self) -> usize {
        if self.sum == Type::F16 { 2 } else { 4 }
    }
}

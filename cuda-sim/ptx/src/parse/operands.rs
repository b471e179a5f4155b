//! Names inside a kernel: registers, parameters, variables, special registers, numbers.

use std::collections::HashMap;

use crate::instruction::{Address, DISCARD, Lanes, Operand, Reg, Special};
use crate::module::Variable;
use crate::parse::cursor::integer;
use crate::parse::directives::Declaration;
use crate::parse::{Raw, Result, Statement};

/// The names of one kernel.
pub(crate) struct Names<'a> {
    /// One map for each open brace.
    scopes: Vec<HashMap<String, Reg>>,
    pub(crate) registers: usize,
    /// Offsets of parameters, of local and of shared variables in their spaces.
    offsets: HashMap<String, u64>,
    pub(crate) shared: usize,
    pub(crate) local: usize,
    module_shared: &'a [Declaration],
    variables: &'a [Variable],
}

impl<'a> Names<'a> {
    pub(crate) fn new(variables: &'a [Variable], module_shared: &'a [Declaration]) -> Self {
        Self {
            scopes: vec![HashMap::new()],
            registers: 0,
            offsets: HashMap::new(),
            shared: 0,
            local: 0,
            module_shared,
            variables,
        }
    }

    pub(crate) fn open_scope(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Whether the kernel's own scope was closed.
    pub(crate) fn close_scope(&mut self) -> bool {
        self.scopes.pop();
        self.scopes.is_empty()
    }

    pub(crate) fn add_register(&mut self, name: String) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, self.registers as Reg);
        }
        self.registers += 1;
    }

    /// A parameter at an offset.
    pub(crate) fn add_offset(&mut self, name: &str, offset: usize) {
        self.offsets.insert(name.to_owned(), offset as u64);
    }

    /// Places a shared or local variable of the kernel.
    pub(crate) fn add_variable(&mut self, declared: &Declaration) {
        let area = if declared.space == ".shared" { &mut self.shared } else { &mut self.local };
        let offset = area.next_multiple_of(declared.align.max(1));
        *area = offset + declared.size;
        self.offsets.insert(declared.name.clone(), offset as u64);
    }

    fn register(&self, name: &str) -> Option<Reg> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name).copied())
    }

    /// A destination register; `_` is one that forgets.
    pub(crate) fn destination(&self, of: &Statement<'_>, raw: &Raw<'_>) -> Result<Reg> {
        match raw {
            Raw::Word { text: "_", .. } => Ok(DISCARD),
            Raw::Word { text, .. } => self.register(text).ok_or_else(|| of.error(format!("register `{text}`"))),
            _ => Err(of.error("a register is expected")),
        }
    }

    /// The register of a name, such as a guard's.
    pub(crate) fn named(&self, of: &Statement<'_>, name: &str) -> Result<Reg> {
        self.destination(of, &Raw::Word { text: name, minus: false })
    }

    /// One register or a list of them.
    pub(crate) fn destinations(&self, of: &Statement<'_>, raw: &Raw<'_>) -> Result<Vec<Reg>> {
        match raw {
            Raw::List(items) => items.iter().map(|item| self.destination(of, item)).collect(),
            one => Ok(vec![self.destination(of, one)?]),
        }
    }

    pub(crate) fn source(&mut self, of: &Statement<'_>, raw: &Raw<'_>) -> Result<Operand> {
        match raw {
            Raw::Word { text, minus: false } => self.word(text).ok_or_else(|| of.error(format!("operand `{text}`"))),
            Raw::Word { text, minus: true } => integer(text)
                .map(|value| Operand::Imm(value.wrapping_neg()))
                .ok_or_else(|| of.error(format!("operand `-{text}`"))),
            Raw::Not(name) => {
                let register = self.register(name).ok_or_else(|| of.error(format!("register `{name}`")))?;
                Ok(Operand::Not(register))
            }
            _ => Err(of.error("a register or a number is expected")),
        }
    }

    /// One source or a list of them.
    pub(crate) fn sources(&mut self, of: &Statement<'_>, raw: &Raw<'_>) -> Result<Vec<Operand>> {
        match raw {
            Raw::List(items) => items.iter().map(|item| self.source(of, item)).collect(),
            one => Ok(vec![self.source(of, one)?]),
        }
    }

    pub(crate) fn address(&mut self, of: &Statement<'_>, raw: &Raw<'_>) -> Result<Address> {
        match raw {
            Raw::Address { base, offset } => {
                let base = self.word(base).ok_or_else(|| of.error(format!("address `{base}`")))?;
                Ok(Address { base, offset: *offset })
            }
            _ => Err(of.error("an address in brackets is expected")),
        }
    }

    fn word(&mut self, text: &str) -> Option<Operand> {
        if let Some(register) = self.register(text) {
            return Some(Operand::Reg(register));
        }
        if let Some(special) = special(text) {
            return Some(special);
        }
        if let Some(value) = literal(text) {
            return Some(Operand::Imm(value));
        }
        if let Some(offset) = self.offsets.get(text) {
            return Some(Operand::Imm(*offset));
        }
        if let Some(declared) = self.module_shared.iter().find(|declared| declared.name == text) {
            if declared.open {
                return Some(Operand::Special(Special::DynamicShared));
            }
            self.add_variable(declared);
            return self.offsets.get(text).map(|offset| Operand::Imm(*offset));
        }
        self.variables.iter().position(|variable| variable.name == text).map(Operand::Variable)
    }
}

fn special(text: &str) -> Option<Operand> {
    let name = text.strip_prefix('%')?;
    let axis = match name.rsplit_once('.') {
        Some((_, "x")) => 0,
        Some((_, "y")) => 1,
        _ => 2,
    };
    let special = match name.split('.').next()? {
        "tid" => Special::Thread(axis),
        "ntid" => Special::BlockDim(axis),
        "ctaid" => Special::Block(axis),
        "nctaid" => Special::GridDim(axis),
        "laneid" => Special::Lane,
        "warpid" => Special::Warp,
        "nwarpid" => Special::WarpCount,
        "lanemask_eq" => Special::LaneMask(Lanes::Equal),
        "lanemask_lt" => Special::LaneMask(Lanes::Less),
        "lanemask_le" => Special::LaneMask(Lanes::LessOrEqual),
        "lanemask_gt" => Special::LaneMask(Lanes::Greater),
        "lanemask_ge" => Special::LaneMask(Lanes::GreaterOrEqual),
        "clock" | "clock_hi" | "clock64" | "globaltimer" => Special::Clock,
        "dynamic_smem_base" => Special::DynamicShared,
        _ => return None,
    };
    Some(Operand::Special(special))
}

/// Numbers, floats as `0f…` and `0d…` in hexadecimal, and `WARP_SZ`.
fn literal(text: &str) -> Option<u64> {
    if text == "WARP_SZ" {
        return Some(32);
    }
    if let Some(hex) = text.strip_prefix("0f").or_else(|| text.strip_prefix("0F")) {
        return u32::from_str_radix(hex, 16).ok().map(u64::from);
    }
    if let Some(hex) = text.strip_prefix("0d").or_else(|| text.strip_prefix("0D")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    integer(text)
}

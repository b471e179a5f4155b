//! The values of operands.

use std::ops::Deref;

use crate::exec::block::Place;
use crate::exec::warp::Warp;
use crate::instruction::{Address, Lanes, Operand, Special};
use crate::row::{LANES, Row};

/// An operand in all lanes: most are registers, which are not copied.
#[expect(clippy::large_enum_variant, reason = "lives for one instruction; an allocation would cost more than the copy")]
pub(crate) enum Source<'a> {
    Register(&'a Row),
    Values(Row),
}

impl Deref for Source<'_> {
    type Target = Row;

    fn deref(&self) -> &Row {
        match self {
            Self::Register(row) => row,
            Self::Values(row) => row,
        }
    }
}

impl Warp {
    /// An operand in all lanes; those that are not active have unspecified values.
    #[inline]
    pub(crate) fn source(&self, operand: Operand, place: &Place<'_>) -> Source<'_> {
        match operand {
            Operand::Reg(register) => Source::Register(self.register(register)),
            Operand::Not(register) => Source::Values(self.register(register).map(|bits| !bits & 1)),
            Operand::Imm(value) => Source::Values([value; LANES]),
            Operand::Variable(index) => Source::Values([place.variables.get(index).copied().unwrap_or(0); LANES]),
            Operand::Special(special) => Source::Values(self.special(special, place)),
        }
    }

    /// A copy of an operand in all lanes.
    pub(crate) fn row(&self, operand: Operand, place: &Place<'_>) -> Row {
        *self.source(operand, place)
    }

    /// Addresses of all lanes.
    pub(crate) fn addresses(&self, address: Address, place: &Place<'_>) -> Row {
        let base = self.source(address.base, place);
        base.map(|base| base.wrapping_add_signed(address.offset))
    }

    fn special(&self, special: Special, place: &Place<'_>) -> Row {
        let uniform = |value: u32| [u64::from(value); LANES];
        match special {
            Special::Thread(axis) => std::array::from_fn(|lane| {
                let thread = (self.index * LANES + lane) as u32;
                let [x, y, _] = place.block_dim;
                let coordinates = [thread % x, thread / x % y, thread / x / y];
                u64::from(coordinates[usize::from(axis)])
            }),
            Special::BlockDim(axis) => uniform(place.block_dim[usize::from(axis)]),
            Special::Block(axis) => uniform(place.block[usize::from(axis)]),
            Special::GridDim(axis) => uniform(place.grid_dim[usize::from(axis)]),
            Special::Lane => std::array::from_fn(|lane| lane as u64),
            Special::Warp => uniform(self.index as u32),
            Special::WarpCount => uniform(place.block_dim.iter().product::<u32>().div_ceil(32)),
            Special::LaneMask(lanes) => std::array::from_fn(|lane| u64::from(lane_mask(lanes, lane))),
            Special::Clock => [place.clock; LANES],
            Special::DynamicShared => [place.static_shared as u64; LANES],
        }
    }
}

fn lane_mask(lanes: Lanes, lane: usize) -> u32 {
    let equal = 1u32 << lane;
    let less = equal - 1;
    match lanes {
        Lanes::Equal => equal,
        Lanes::Less => less,
        Lanes::LessOrEqual => less | equal,
        Lanes::Greater => !(less | equal),
        Lanes::GreaterOrEqual => !less,
    }
}

//! The machine code of tile instructions (Intel, "Software Developer's Manual", volume 2, chapters 2.3 and 3): a VEX prefix of
//! three bytes, opcode, ModR/M, for operands in memory SIB and displacement.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    LoadConfig(Address),
    StoreConfig(Address),
    Release,
    Zero(usize),
    /// `tileloadd`, or `tileloaddt1`, which adds a hint for the caches.
    Load(usize, Address),
    Store(Address, usize),
    /// `tdpbf16ps`: the tiles of the sums, the left side and the right side.
    MultiplyBf16([usize; 3]),
}

impl Instruction {
    /// Whether the instruction neither changes nor stores the configuration.
    pub(crate) fn keeps_config(self) -> bool {
        !matches!(self, Self::LoadConfig(_) | Self::StoreConfig(_) | Self::Release)
    }
}

/// An operand in memory. For a tile, the index register times its scale is the stride between rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) base: Base,
    /// The number of a general-purpose register and its scale.
    pub(crate) index: Option<(usize, u64)>,
    pub(crate) displacement: i32,
}

/// The first part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Register(usize),
    /// The address of the next instruction.
    Next,
    Nothing,
}

/// Decodes an instruction and counts its bytes. Returns `None` unless the instruction is a tile instruction that is
/// emulated.
pub(crate) fn decode(next: impl FnMut() -> u8) -> Option<(Instruction, usize)> {
    let mut code = Code { next, read: 0 };
    if code.byte() != 0xc4 {
        return None;
    }
    let prefix = [code.byte(), code.byte()];
    // Map 0F 38; W = 0, L = 0.
    if prefix[0] & 0x1f != 2 || prefix[1] & 0x84 != 0 {
        return None;
    }
    // The prefix contains these bits inverted.
    let high = |bit: u8| if prefix[0] & bit == 0 { 8 } else { 0 };
    let (high_reg, high_index, high_base) = (high(0x80), high(0x40), high(0x20));
    let third = usize::from(!prefix[1] >> 3 & 15);
    let mandatory = prefix[1] & 3;
    let opcode = code.byte();
    let modrm = code.byte();
    let in_memory = modrm >> 6 != 3;
    let (reg, rm) = (usize::from(modrm >> 3 & 7) + high_reg, usize::from(modrm & 7) + high_base);
    let has_sib = modrm & 7 == 4;
    let mut address = || code.address(modrm, high_index, high_base);
    let instruction = match (opcode, mandatory) {
        (0x49, 0) if in_memory && reg == 0 && third == 0 => Instruction::LoadConfig(address()),
        (0x49, 1) if in_memory && reg == 0 && third == 0 => Instruction::StoreConfig(address()),
        (0x49, 0) if modrm == 0xc0 && third == 0 => Instruction::Release,
        (0x49, 3) if !in_memory && rm == 0 && third == 0 && reg < 8 => Instruction::Zero(reg),
        (0x4b, 1 | 3) if in_memory && has_sib && third == 0 && reg < 8 => Instruction::Load(reg, address()),
        (0x4b, 2) if in_memory && has_sib && third == 0 && reg < 8 => Instruction::Store(address(), reg),
        (0x5c, 2) if !in_memory && reg < 8 && rm < 8 && third < 8 => Instruction::MultiplyBf16([reg, rm, third]),
        _ => return None,
    };
    Some((instruction, code.read))
}

struct Code<F> {
    next: F,
    read: usize,
}

impl<F: FnMut() -> u8> Code<F> {
    fn byte(&mut self) -> u8 {
        self.read += 1;
        (self.next)()
    }

    fn displacement(&mut self) -> i32 {
        i32::from_le_bytes([(); 4].map(|()| self.byte()))
    }

    /// Decodes the SIB byte and displacement after a ModR/M byte.
    fn address(&mut self, modrm: u8, high_index: usize, high_base: usize) -> Address {
        let mode = modrm >> 6;
        let (mut base, mut index) = (Base::Register(usize::from(modrm & 7) + high_base), None);
        let mut long = mode == 2;
        if modrm & 7 == 4 {
            let sib = self.byte();
            let number = usize::from(sib >> 3 & 7) + high_index;
            // The stack pointer can't be an index.
            index = (number != 4).then_some((number, 1 << (sib >> 6)));
            base = Base::Register(usize::from(sib & 7) + high_base);
            if sib & 7 == 5 && mode == 0 {
                (base, long) = (Base::Nothing, true);
            }
        } else if modrm & 7 == 5 && mode == 0 {
            (base, long) = (Base::Next, true);
        }
        let displacement = match mode {
            1 => i32::from(self.byte().cast_signed()),
            _ if long => self.displacement(),
            _ => 0,
        };
        Address { base, index, displacement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(code: &[u8]) -> Option<Instruction> {
        let mut bytes = code.iter().copied();
        let (instruction, length) = decode(|| bytes.next().unwrap_or(0))?;
        assert_eq!(length, code.len());
        Some(instruction)
    }

    fn address(base: usize, index: Option<(usize, u64)>, displacement: i32) -> Address {
        Address { base: Base::Register(base), index, displacement }
    }

    #[test]
    fn instructions_are_those_of_the_assembler() {
        use Instruction::*;
        let cases: [(&[u8], Instruction); 12] = [
            // ldtilecfg [rax]
            (&[0xc4, 0xe2, 0x78, 0x49, 0x00], LoadConfig(address(0, None, 0))),
            // ldtilecfg [rsp - 64]
            (&[0xc4, 0xe2, 0x78, 0x49, 0x44, 0x24, 0xc0], LoadConfig(address(4, None, -64))),
            // ldtilecfg [rip + 0x100]
            (
                &[0xc4, 0xe2, 0x78, 0x49, 0x05, 0x00, 0x01, 0x00, 0x00],
                LoadConfig(Address { base: Base::Next, index: None, displacement: 0x100 }),
            ),
            // sttilecfg [r9]
            (&[0xc4, 0xc2, 0x79, 0x49, 0x01], StoreConfig(address(9, None, 0))),
            // tilerelease
            (&[0xc4, 0xe2, 0x78, 0x49, 0xc0], Release),
            // tilezero tmm5
            (&[0xc4, 0xe2, 0x7b, 0x49, 0xe8], Zero(5)),
            // tileloadd tmm6, [rdi + rsi*1]
            (&[0xc4, 0xe2, 0x7b, 0x4b, 0x34, 0x37], Load(6, address(7, Some((6, 1)), 0))),
            // tileloaddt1 tmm3, [r13 + r12*4 + 64]
            (&[0xc4, 0x82, 0x79, 0x4b, 0x5c, 0xa5, 0x40], Load(3, address(13, Some((12, 4)), 64))),
            // tileloadd tmm1, [rsi]: without an index
            (&[0xc4, 0xe2, 0x7b, 0x4b, 0x0c, 0x26], Load(1, address(6, None, 0))),
            // tileloadd tmm2, [rax*2 + 0x1000]
            (
                &[0xc4, 0xe2, 0x7b, 0x4b, 0x14, 0x45, 0x00, 0x10, 0x00, 0x00],
                Load(2, Address { base: Base::Nothing, index: Some((0, 2)), displacement: 0x1000 }),
            ),
            // tilestored [rbx + rcx*1 + 0x200], tmm0
            (&[0xc4, 0xe2, 0x7a, 0x4b, 0x84, 0x0b, 0x00, 0x02, 0x00, 0x00], Store(address(3, Some((1, 1)), 0x200), 0)),
            // tdpbf16ps tmm1, tmm4, tmm7
            (&[0xc4, 0xe2, 0x42, 0x5c, 0xcc], MultiplyBf16([1, 4, 7])),
        ];
        for (code, expected) in cases {
            assert_eq!(decoded(code), Some(expected), "{code:x?}");
        }
    }

    #[test]
    fn other_instructions_are_left_alone() {
        let cases: [&[u8]; 7] = [
            // ud2
            &[0x0f, 0x0b],
            // tdpbssd tmm0, tmm1, tmm2
            &[0xc4, 0xe2, 0x6b, 0x5e, 0xc1],
            // tdpbf16ps with W = 1
            &[0xc4, 0xe2, 0xc2, 0x5c, 0xcc],
            // tilezero with L = 1
            &[0xc4, 0xe2, 0x7f, 0x49, 0xe8],
            // tileloadd without SIB
            &[0xc4, 0xe2, 0x7b, 0x4b, 0x07],
            // tilezero tmm13
            &[0xc4, 0x62, 0x7b, 0x49, 0xe8],
            // Another map
            &[0xc4, 0xe1, 0x7b, 0x49, 0xe8],
        ];
        for code in cases {
            assert_eq!(decoded(code), None, "{code:x?}");
        }
    }
}

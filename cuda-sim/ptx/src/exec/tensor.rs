//! `ldmatrix` and `mma.sync`: which lane holds which element.
//!
//! A sum starts with the element of C and adds the products in the order of k, in f32; a GPU promises no order.

use half::{bf16, f16};

use crate::exec::access::{Access, Target};
use crate::exec::block::BlockState;
use crate::exec::machine::Machine;
use crate::exec::warp::Warp;
use crate::instruction::{Address, Instruction, MmaShape, Operand, Operation, Reg, Space};
use crate::row::{LANES, Row, Value};
use crate::stop::Stop;
use crate::types::Type;
use crate::value::convert::to_f16;

/// Rows of A, columns of B.
const M: usize = 16;
const N: usize = 8;

impl Machine<'_> {
    pub(crate) fn matrix(&mut self, block: &mut BlockState, warp: &mut Warp, at: &Instruction) -> Result<(), Stop> {
        match &at.op {
            Operation::LoadMatrix { transposed, d, address } => {
                self.load_matrix(block, warp, *transposed, d, *address, at)
            }
            Operation::Mma { shape, d, a, b, c } => {
                let place = self.place(block);
                let rows = |operands: &[Operand]| -> Vec<Row> {
                    operands.iter().map(|operand| warp.row(*operand, &place)).collect()
                };
                let sums = multiply(*shape, &rows(a), &rows(b), &rows(c));
                for (register, row) in d.iter().zip(&sums) {
                    warp.put(*register, row, u32::MAX);
                }
                self.counters.tensor_instructions += 1;
                self.counters.tensor_flop += (2 * M * N * shape.k) as u64;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Lane `8 i + r` names row `r` of matrix `i`; each lane gets two neighbours of a row.
    fn load_matrix(
        &mut self,
        block: &mut BlockState,
        warp: &mut Warp,
        transposed: bool,
        d: &[Reg],
        address: Address,
        at: &Instruction,
    ) -> Result<(), Stop> {
        let addresses = warp.addresses(address, &self.place(block));
        for (matrix, register) in d.iter().enumerate() {
            let mut elements = [[0u16; 8]; 8];
            for (row, elements) in elements.iter_mut().enumerate() {
                let lane = matrix * 8 + row;
                let access = Access {
                    space: Space::Shared,
                    address: addresses[lane],
                    length: 16,
                    lane,
                    write: false,
                    atomic: false,
                    stored: None,
                };
                let Target::Shared(start) = self.check(block, warp, &access, at)? else { continue };
                for (element, bytes) in elements.iter_mut().zip(block.shared.bytes(start, 16).chunks_exact(2)) {
                    *element = u16::from_le_bytes([bytes[0], bytes[1]]);
                }
            }
            let out = std::array::from_fn(|lane| {
                let (row, column) = (lane / 4, lane % 4 * 2);
                let element = |row: usize, column: usize| {
                    u64::from(if transposed { elements[column][row] } else { elements[row][column] })
                };
                element(row, column) | element(row, column + 1) << 16
            });
            warp.put(*register, &out, u32::MAX);
        }
        let active = (1u64 << (8 * d.len())) - 1;
        self.count(Space::Shared, &addresses, active as u32, 16, false);
        Ok(())
    }
}

/// Element `index` (of those that a register packs) as f32.
fn element(ty: Type, bits: u64, index: usize) -> f32 {
    match ty {
        Type::Bf16 => bf16::take(bits >> (16 * index)).to_f32(),
        Type::F16 => f16::take(bits >> (16 * index)).to_f32(),
        // The tensor core reads the upper 19 bits of a tf32.
        _ => f32::take(bits & 0xffff_e000),
    }
}

/// D = A·B + C, in the registers of the lanes.
fn multiply(shape: MmaShape, a: &[Row], b: &[Row], c: &[Row]) -> Vec<Row> {
    let (packed, k) = (shape.packed(), shape.k);
    let mut left = [[0f32; 16]; M];
    let mut right = [[0f32; N]; 16];
    let mut sums = [[0f32; N]; M];
    for lane in 0..LANES {
        let (group, thread) = (lane / 4, lane % 4);
        for (register, row) in a.iter().enumerate() {
            // Registers go through the two halves of the rows first, then along k.
            let (below, along) = (register % 2 * 8, register / 2 * 4 * packed);
            for index in 0..packed {
                left[group + below][along + thread * packed + index] = element(shape.input, row[lane], index);
            }
        }
        for (register, row) in b.iter().enumerate() {
            for index in 0..packed {
                let along = register * 4 * packed + thread * packed + index;
                right[along][group] = element(shape.input, row[lane], index);
            }
        }
        for (index, (row, column)) in places(lane).into_iter().enumerate() {
            sums[row][column] = match shape.sum {
                Type::F16 => f16::take(c[index / 2][lane] >> (16 * (index % 2))).to_f32(),
                _ => f32::take(c[index][lane]),
            };
        }
    }
    for (sums, left) in sums.iter_mut().zip(&left) {
        for (left, right) in left.iter().zip(&right).take(k) {
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum += left * right;
            }
        }
    }
    let register = |index: usize| -> Row {
        std::array::from_fn(|lane| {
            let sum = |index: usize| {
                let (row, column) = places(lane)[index];
                sums[row][column]
            };
            match shape.sum {
                Type::F16 => {
                    let half = |index: usize| to_f16(f64::from(sum(index))).put();
                    half(2 * index) | half(2 * index + 1) << 16
                }
                _ => sum(index).put(),
            }
        })
    };
    (0..c.len()).map(register).collect()
}

/// Row and column of a lane's four elements of C and D.
fn places(lane: usize) -> [(usize, usize); 4] {
    let (row, column) = (lane / 4, lane % 4 * 2);
    [(row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1)]
}

//! Weights as models hold them: packed once, with a transpose where backward passes need one.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use half::bf16;

use super::Cpu;
use super::gemm::GemmRhs;
use super::packed::{PackedMatrix, PartRows};
use super::parallel::{for_each, par_chunks};
use crate::blocks::{BLOCK, BlockRows};
use crate::{Dtype, MatrixRole, PlannedPart, Source};

/// A packed matrix. Repacking it leaves those that share it unchanged.
pub struct Matrix {
    packed: Arc<PackedMatrix>,
    /// Packed at the first backward pass, where GEMMs can't transpose `packed` while they read it.
    transposed: OnceLock<PackedMatrix>,
}

impl Matrix {
    pub(super) fn pack(cpu: &Cpu, parts: &[Source<'_, Cpu>], k: usize, role: MatrixRole) -> Self {
        let dtype = Self::dtype(cpu, role);
        let is_in_blocks = parts.iter().any(|part| matches!(part, Source::Blocks(_)));
        let packed = if is_in_blocks && k.is_multiple_of(BLOCK) {
            let dense = |part: &Source<'_, Cpu>| if part.is_dense() { part.host().into_owned() } else { Vec::new() };
            let dense: Vec<Vec<f32>> = parts.iter().map(dense).collect();
            let mut rows = Vec::with_capacity(parts.len());
            for (part, dense) in parts.iter().zip(&dense) {
                rows.push(if let Source::Blocks(blocks) = part {
                    PartRows::Blocks(blocks)
                } else {
                    PartRows::Values(dense)
                });
            }
            PackedMatrix::of_blocks(cpu, dtype, k, &rows)
        } else {
            PackedMatrix::pack(cpu, dtype, k, &refs(&hosts(parts)))
        };
        Self { packed: Arc::new(packed), transposed: OnceLock::new() }
    }

    /// Element type of a matrix of this role.
    pub(super) fn dtype(cpu: &Cpu, role: MatrixRole) -> Dtype {
        match role {
            MatrixRole::Base => cpu.dtype,
            MatrixRole::Adapter => cpu.input_type(cpu.dtype),
        }
    }

    /// Overwrites it with `values`, which are not in blocks then, on all threads or on this one.
    fn repack(&mut self, cpu: &Cpu, values: &[&[f32]], parallel: bool) {
        let dtype = self.packed.dtype();
        match Arc::get_mut(&mut self.packed) {
            Some(own) => own.repack(cpu, values, parallel),
            None => self.packed = Arc::new(PackedMatrix::pack_on(cpu, dtype, self.packed.k(), values, parallel)),
        }
        if let Some(transposed) = self.transposed.get_mut() {
            match values[..] {
                [only] => transposed.repack_transposed(cpu, only, parallel),
                _ => transposed.transpose_from(cpu, &self.packed, parallel),
            }
        }
    }

    /// Implementation of [`share`](crate::Backend::share) for a matrix.
    pub(super) fn share(&self) -> Self {
        Self { packed: Arc::clone(&self.packed), transposed: OnceLock::new() }
    }

    pub(super) fn packed(&self) -> &PackedMatrix {
        &self.packed
    }

    /// The transpose; where it has to be packed, at the first call, so that samplers do without.
    pub(super) fn transposed(&self, cpu: &Cpu) -> GemmRhs<'_> {
        GemmRhs::transposed_or_pack(cpu, &self.packed, &self.transposed)
    }

    pub(super) fn bytes(&self) -> usize {
        self.packed.bytes() + self.transposed.get().map_or(0, PackedMatrix::bytes)
    }

    pub(super) fn planned_bytes(cpu: &Cpu, n: usize, k: usize, role: MatrixRole, trains: bool) -> usize {
        let dtype = Self::dtype(cpu, role);
        let transposed = trains && GemmRhs::needs_packed_transpose(cpu, dtype);
        let bytes = |n: usize, k: usize| PackedMatrix::bytes_of(cpu.isa(), dtype, n, k);
        bytes(n, k) + if transposed { bytes(k, n) } else { 0 }
    }

    /// Bytes of a matrix that stays in blocks, which backward passes transpose while they read it; `None` of one that is packed
    /// wide.
    pub(super) fn planned_block_bytes(cpu: &Cpu, parts: &[PlannedPart], k: usize) -> Option<usize> {
        let is_in_blocks = parts.iter().any(|part| part.format.is_some()) && k.is_multiple_of(BLOCK);
        is_in_blocks.then(|| PackedMatrix::block_bytes_of(Self::dtype(cpu, MatrixRole::Base), parts, k))
    }
}

/// See [`repack`](crate::Backend::repack). Several matrices are a task each: those of adapters are small.
pub(super) fn repack(cpu: &Cpu, matrices: Vec<(&mut Matrix, Vec<Source<'_, Cpu>>)>) {
    let parallel = matrices.len() == 1;
    let hosts: Vec<_> = matrices.iter().map(|(_, parts)| hosts(parts)).collect();
    let mut tasks: Vec<_> = matrices.into_iter().map(|(matrix, _)| matrix).zip(&hosts).collect();
    for_each(cpu, &mut tasks, |_, (matrix, hosts)| matrix.repack(cpu, &refs(hosts), parallel));
}

fn hosts<'a>(parts: &[Source<'a, Cpu>]) -> Vec<Cow<'a, [f32]>> {
    parts.iter().map(|part| part.host()).collect()
}

fn refs<'a>(hosts: &'a [Cow<'_, [f32]>]) -> Vec<&'a [f32]> {
    hosts.iter().map(|part| &**part).collect()
}

/// Rows of an embedding, one per token.
pub enum EmbeddingTable {
    /// The bits of bf16 values, row by row.
    Bf16(Vec<u16>),
    F32(Vec<f32>),
    /// The blocks of a file, whose elements are of this type where they are read.
    Blocks(BlockRows, Dtype),
}

impl EmbeddingTable {
    pub(super) fn new(cpu: &Cpu, rows: Source<'_, Cpu>) -> Self {
        if let Source::Blocks(blocks) = rows {
            return Self::Blocks(blocks.clone(), cpu.dtype);
        }
        let rows = &*rows.host();
        match cpu.dtype {
            Dtype::F32 => Self::F32(rows.to_vec()),
            Dtype::Bf16 => {
                let mut bits = vec![0; rows.len()];
                par_chunks(&cpu.pool, &mut bits, 1 << 16, |i, bits| {
                    for (bits, x) in bits.iter_mut().zip(&rows[i << 16..]) {
                        *bits = bf16::from_f32(*x).to_bits();
                    }
                });
                Self::Bf16(bits)
            }
        }
    }

    /// Writes the row of a token.
    pub(super) fn row(&self, token: usize, out: &mut [f32]) {
        let at = token * out.len()..(token + 1) * out.len();
        match self {
            Self::Bf16(rows) => widen(&rows[at], out),
            Self::F32(rows) => out.copy_from_slice(&rows[at]),
            Self::Blocks(rows, dtype) => {
                rows.write_row(token, out);
                out.iter_mut().for_each(|x| *x = dtype.round(*x));
            }
        }
    }

    pub(super) fn to_host(&self) -> Vec<f32> {
        match self {
            Self::Bf16(rows) => {
                let mut out = vec![0.0; rows.len()];
                widen(rows, &mut out);
                out
            }
            Self::F32(rows) => rows.clone(),
            Self::Blocks(rows, dtype) => rows.values(0..rows.rows()).into_iter().map(|x| dtype.round(x)).collect(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Bf16(rows) => size_of_val(&rows[..]),
            Self::F32(rows) => size_of_val(&rows[..]),
            Self::Blocks(rows, _) => rows.bytes(),
        }
    }
}

fn widen(bits: &[u16], out: &mut [f32]) {
    for (out, bits) in out.iter_mut().zip(bits) {
        *out = f32::from_bits(u32::from(*bits) << 16);
    }
}

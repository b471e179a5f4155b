//! Reads runs of bytes of a tensor in pieces, on several threads, and widens them to f32.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;

use half::f16;
use safetensors::Dtype;

use super::{Entry, SafetensorsSource};
use crate::config::LoadError;
use crate::runs::Runs;

/// Bytes that are read at a time, so that a tensor is never held twice.
const PIECE: usize = 1 << 22;

/// Threads that read a tensor: copying from the page cache and widening take one each, and a disk has a queue.
const THREADS: usize = 4;

/// Bytes between two runs from which on they are read one by one. What is between them costs nothing where it is in the same
/// pages, and a call of the system takes as long as copying a page or two.
const GAP: usize = 4_096;

/// A part of the runs, and the elements that it becomes.
struct Piece<'v> {
    bytes: Runs,
    values: &'v mut [f32],
}

impl SafetensorsSource {
    /// The elements of some bytes of a tensor of floats, widened to f32. The tensor must have these bytes.
    pub(super) fn values(&self, entry: &Entry, bytes: Runs) -> Result<Vec<f32>, LoadError> {
        let width = entry.dtype.bitsize() / 8;
        let mut values = vec![0.0; bytes.elements() / width];
        let mut rest = &mut values[..];
        let mut pieces = Vec::new();
        for bytes in pieces_of(bytes) {
            let (values, behind) = rest.split_at_mut(bytes.elements() / width);
            pieces.push(Piece { bytes, values });
            rest = behind;
        }
        self.read_all(entry, pieces)?;
        Ok(values)
    }

    /// Reads all pieces; an error is that of the first piece that has one.
    fn read_all(&self, entry: &Entry, pieces: Vec<Piece<'_>>) -> Result<(), LoadError> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let threads = THREADS.min(processors).min(pieces.len());
        let (queue, failures) = (Mutex::new(pieces.into_iter().enumerate()), Mutex::new(BTreeMap::new()));
        let work = || {
            let mut buffer = Vec::new();
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((at, piece)) = next else { return };
                if let Err(error) = self.read_piece(entry, piece, &mut buffer) {
                    failures.lock().unwrap_or_else(PoisonError::into_inner).insert(at, error);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // This thread does what a missing one leaves.
                let _ = thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, work);
            }
            work();
        });
        let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
        failures.into_values().next().map_or(Ok(()), Err)
    }

    fn read_piece(&self, entry: &Entry, piece: Piece<'_>, buffer: &mut Vec<u8>) -> Result<(), LoadError> {
        let Piece { bytes, values } = piece;
        let parts = values.chunks_mut((bytes.len * 8 / entry.dtype.bitsize()).max(1));
        if bytes.stride - bytes.len < GAP {
            let span = bytes.span();
            let buffer = filled(buffer, span.len());
            self.read_exact(entry, span.start, buffer)?;
            for (run, values) in bytes.ranges().zip(parts) {
                widen(entry.dtype, &buffer[run.start - span.start..run.end - span.start], values);
            }
            return Ok(());
        }
        for (run, values) in bytes.ranges().zip(parts) {
            let buffer = filled(buffer, run.len());
            self.read_exact(entry, run.start, buffer)?;
            widen(entry.dtype, buffer, values);
        }
        Ok(())
    }
}

/// The first `len` bytes of a buffer that is made longer if need be.
fn filled(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// Divides runs into pieces of about [`PIECE`] bytes, in their order.
fn pieces_of(bytes: Runs) -> Vec<Runs> {
    let cut = |range: std::ops::Range<usize>| {
        let end = range.end;
        range.step_by(PIECE).map(move |start| Runs::one(start..end.min(start + PIECE)))
    };
    if bytes.is_joined() {
        return cut(bytes.span()).collect();
    }
    if bytes.len >= PIECE {
        return bytes.ranges().flat_map(cut).collect();
    }
    let each = (PIECE / bytes.stride).max(1);
    (0..bytes.count).step_by(each).map(|from| bytes.some(from, each.min(bytes.count - from))).collect()
}

fn widen(dtype: Dtype, bytes: &[u8], into: &mut [f32]) {
    fn each<const N: usize>(bytes: &[u8], into: &mut [f32], widen: impl Fn([u8; N]) -> f32) {
        into.iter_mut().zip(bytes.as_chunks().0).for_each(|(value, &bytes)| *value = widen(bytes));
    }
    match dtype {
        Dtype::F16 => each(bytes, into, |b| f16::from_le_bytes(b).to_f32()),
        // The upper half of an f32.
        Dtype::BF16 => each(bytes, into, |b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)),
        Dtype::F64 => each(bytes, into, |b| f64::from_le_bytes(b) as f32),
        // `floats` lets nothing else through.
        _ => each(bytes, into, f32::from_le_bytes),
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;

    /// Every number of 16 bits becomes the f32 that `half` has for it.
    #[test]
    fn halves_are_widened_without_loss() {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let (mut brain, mut half) = (vec![0.0; 1 << 16], vec![0.0; 1 << 16]);
        widen(Dtype::BF16, &bytes, &mut brain);
        widen(Dtype::F16, &bytes, &mut half);
        for bits in 0..=u16::MAX {
            let (brain, half) = (brain[usize::from(bits)], half[usize::from(bits)]);
            let (expected, of_half) = (bf16::from_bits(bits).to_f32(), f16::from_bits(bits).to_f32());
            assert!(brain.to_bits() == expected.to_bits() || brain.is_nan() && expected.is_nan(), "{bits:x}");
            assert!(half.to_bits() == of_half.to_bits(), "{bits:x}");
        }
    }

    #[test]
    fn pieces_cover_the_runs_in_their_order() {
        for runs in [
            Runs::one(5..5),
            Runs::one(3..3 * PIECE + 1),
            Runs { first: 8, len: 64, stride: 64, count: 3 * PIECE / 64 },
            Runs { first: 8, len: 64, stride: 4_096, count: 2_500 },
            Runs { first: 0, len: PIECE / 2, stride: 3 * PIECE, count: 3 },
            Runs { first: 4, len: 2 * PIECE + 4, stride: 5 * PIECE, count: 2 },
        ] {
            let pieces = pieces_of(runs);
            let joined = |all: &mut Vec<std::ops::Range<usize>>, range: std::ops::Range<usize>| match all.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if range.is_empty() => {}
                _ => all.push(range),
            };
            let (mut covered, mut expected) = (Vec::new(), Vec::new());
            pieces.iter().flat_map(Runs::ranges).for_each(|range| joined(&mut covered, range));
            runs.ranges().for_each(|range| joined(&mut expected, range));
            assert_eq!(covered, expected, "{runs:?}");
            assert!(pieces.iter().all(|piece| piece.elements() <= PIECE && piece.elements() > 0), "{runs:?}");
        }
    }
}

//! Batch invariance: a row has the bits that it has alone, wherever it is in a batch of any size.

use std::slice;

use super::numbers::Tile;
use super::projection::Projection;
use crate::check::HostAccess;
use crate::{Held, LoraSegment, Rows};

/// Rows that batches consist of. The first three are compared, the others are between them.
const BASE: usize = 257;

/// Rows that are compared: in a batch one is the first, one is within, one is the last.
const COMPARED: usize = 3;

/// Place of the compared row within a batch.
const WITHIN: usize = 77;

/// Side of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Inputs become outputs, as in forward passes.
    Forward,
    /// Gradients of outputs become those of inputs.
    Backward,
}

/// A linear layer whose rows are compared.
pub(super) struct Subject<'a, B: HostAccess> {
    pub(super) layer: &'a Projection<B>,
    pub(super) direction: Direction,
    /// Whether its adapters take part.
    pub(super) adapted: bool,
}

impl<B: HostAccess> Subject<'_, B> {
    /// Numbers of elements of the rows that are read, and of those that are computed.
    pub(super) fn widths(&self) -> [usize; 2] {
        let Projection { outputs, inputs, .. } = *self.layer;
        match self.direction {
            Direction::Forward => [inputs, outputs],
            Direction::Backward => [outputs, inputs],
        }
    }

    /// Compares rows alone with the same rows at several places of as many rows as each of `counts`.
    ///
    /// # Errors
    /// Fails with the number of rows, the place and the first element that differs.
    pub(super) fn check(&self, b: &B, tile: &Tile, counts: &[usize]) -> Result<(), String> {
        let [from, to] = self.widths();
        let base = b.rows(&tile.take(5, BASE * from, 1.0), from);
        let alone: Vec<_> = (0..COMPARED).map(|row| b.values(&self.product(b, b.gather(&base, &[row])))).collect();
        for count in counts {
            let places = places(*count);
            let row = |row: usize| {
                let compared = places.iter().find(|(place, _)| *place == row);
                compared.map_or(COMPARED + row * 31 % (BASE - COMPARED), |(_, own)| *own)
            };
            let batch = b.gather(&base, &(0..*count).map(row).collect::<Vec<_>>());
            let read: Vec<usize> = places.iter().map(|(place, _)| *place).collect();
            let found = b.values(&b.gather(&self.product(b, batch), &read));
            for ((place, own), found) in places.iter().zip(found.chunks_exact(to)) {
                if let Some(difference) = difference(found, &alone[*own]) {
                    return Err(format!("row {place} of {count} {difference}"));
                }
            }
        }
        Ok(())
    }

    fn product(&self, b: &B, rows: B::Rows) -> B::Rows {
        let count = rows.rows();
        let lora: Vec<LoraSegment<'_, B>> = if self.adapted { self.layer.segments(count) } else { Vec::new() };
        let call = &self.layer.call(&lora);
        let [_, to] = self.widths();
        let mut out = b.alloc(count, to);
        match self.direction {
            Direction::Forward => drop(b.linear(call, &b.lhs(&rows), None, &mut out)),
            Direction::Backward => {
                drop(b.linear_backward(
                    call,
                    &b.output_gradient(Held::Owned(rows), slice::from_ref(&(0..count))),
                    &mut out,
                ));
            }
        }
        out
    }
}

/// The places of a batch's compared rows, each with the row that is there.
fn places(count: usize) -> Vec<(usize, usize)> {
    let mut places = vec![(0, 0)];
    places.extend((count > WITHIN + 1).then_some((WITHIN, 1)));
    places.extend((count > 1).then_some((count - 1, 2)));
    places
}

/// What differs from the row alone; `None` if all bits are the same.
pub(super) fn difference(found: &[f32], alone: &[f32]) -> Option<String> {
    if found.len() != alone.len() {
        return Some(format!("has {} elements, {} alone", found.len(), alone.len()));
    }
    let differs = |(found, alone): (&f32, &f32)| found.to_bits() != alone.to_bits();
    let first = found.iter().zip(alone).position(differs)?;
    let count = found.iter().zip(alone).filter(|pair| differs(*pair)).count();
    let (found, alone, of) = (found[first], alone[first], found.len());
    Some(format!(
        "differs from the row alone in {count} of {of} elements; element {first} is {found:e} and alone {alone:e}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_first_last_and_within() {
        assert_eq!(places(1), [(0, 0)]);
        assert_eq!(places(78), [(0, 0), (77, 2)]);
        assert_eq!(places(79), [(0, 0), (77, 1), (78, 2)]);
    }

    #[test]
    fn a_bit_is_a_difference() {
        assert_eq!(difference(&[1.0, 2.0], &[1.0, 2.0]), None);
        let other = f32::from_bits(2f32.to_bits() + 1);
        assert!(
            difference(&[1.0, other], &[1.0, 2.0]).is_some_and(|text| text.contains("in 1 of 2 elements; element 1"))
        );
        assert!(difference(&[0.0], &[-0.0]).is_some());
        assert!(difference(&[0.0], &[0.0, 1.0]).is_some());
    }
}

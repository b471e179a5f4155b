//! Upsampling of components with fewer samples than pixels, with the bits of libjpeg.

use crate::jpeg::frame::{Component, Frame};
use crate::jpeg::planes::Plane;

/// How the rows of a component become rows of the image.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Upsampling {
    /// Each sample is repeated.
    Repeat {
        /// Pixels of a sample, across and down.
        across: usize,
        down: usize,
    },
    /// Twice as many columns: 3/4 of the nearer sample and 1/4 of the other one.
    Across,
    /// Twice as many rows, with the same weights.
    Down,
    /// Twice as many columns and rows.
    Both,
}

impl Upsampling {
    pub(super) fn new(component: &Component, frame: &Frame) -> Self {
        let (across, down) = (frame.across() / component.across, frame.down() / component.down);
        match (across, down) {
            (2, 1) if component.width > 2 => Self::Across,
            (1, 2) => Self::Down,
            (2, 2) if component.width > 2 => Self::Both,
            _ => Self::Repeat { across, down },
        }
    }

    /// Replaces `to` by a row of the image, which may be longer than the image's width.
    pub(super) fn row(&self, plane: &Plane, row: usize, to: &mut Vec<u8>) {
        to.clear();
        match self {
            Self::Repeat { across, down } => {
                plane.row(row / down).iter().for_each(|&sample| to.extend(std::iter::repeat_n(sample, *across)));
            }
            Self::Across => {
                let columns: Vec<u32> = plane.row(row).iter().map(|&sample| sample.into()).collect();
                widen(&columns, Rounding { left: 1, right: 2, bits: 2 }, to);
            }
            Self::Down => {
                let bias = if row.is_multiple_of(2) { 1 } else { 2 };
                to.extend(columns(plane, row).map(|sum| ((sum + bias) >> 2) as u8));
            }
            Self::Both => {
                let columns: Vec<u32> = columns(plane, row).collect();
                widen(&columns, Rounding { left: 8, right: 7, bits: 4 }, to);
            }
        }
    }
}

/// Returns 3 × the nearer sample + the farther one, of each column of a plane with half the rows.
fn columns(plane: &Plane, row: usize) -> impl Iterator<Item = u32> {
    let near = row / 2;
    let far = if row.is_multiple_of(2) { near.saturating_sub(1) } else { near + 1 };
    plane.row(near).iter().zip(plane.row(far)).map(|(&near, &far)| 3 * u32::from(near) + u32::from(far))
}

/// What is added before a sum loses its lower bits, for the left and the right pixel of a sample.
struct Rounding {
    left: u32,
    right: u32,
    bits: u32,
}

fn widen(columns: &[u32], rounding: Rounding, to: &mut Vec<u8>) {
    for (at, &column) in columns.iter().enumerate() {
        let left = columns[at.saturating_sub(1)];
        let right = columns[(at + 1).min(columns.len() - 1)];
        to.push(((3 * column + left + rounding.left) >> rounding.bits) as u8);
        to.push(((3 * column + right + rounding.right) >> rounding.bits) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_interpolated_between_their_neighbours() {
        let mut row = Vec::new();
        widen(&[0, 100, 50], Rounding { left: 1, right: 2, bits: 2 }, &mut row);
        assert_eq!(row, [0, 25, 75, 88, 62, 50]);
    }
}

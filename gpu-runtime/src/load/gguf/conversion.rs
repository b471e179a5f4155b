//! Changes that llama.cpp's converter makes to the elements of a tensor, and their inverses.

use crate::config::LoadError;

/// Order of a tensor's elements in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The order of Hugging Face's folders.
    Kept,
    /// The halves of each head's rows are interleaved.
    Interleaved { heads: usize },
    /// Rows of value heads are tiled.
    TiledRows(Tiles),
    /// Columns of value heads are tiled.
    TiledColumns(Tiles),
}

/// Value heads that are sorted by their number within a group before their key head: `v0` of all key heads, then `v1` of all.
/// Hugging Face's folders have the value heads of a key head one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiles {
    /// Rows or columns before those of the first value head.
    pub(super) first: usize,
    pub(super) key_heads: usize,
    pub(super) heads_per_key: usize,
    /// Rows or columns of a value head.
    pub(super) width: usize,
}

/// Function of each element that a file has in place of the element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// The sum `1 + x` of an element.
    OneAdded,
    /// The decay `-exp(x)` of its logarithm.
    NegativeExp,
}

/// Extents in Hugging Face's folders of a tensor that has others in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A single extent of all elements.
    Vector,
    /// A matrix with a single row.
    Row,
    /// `[channels, 1, kernel]`, which a file has as `[channels, kernel]`.
    Kernel,
}

impl Form {
    /// Extents of a tensor with these extents in a file.
    pub(super) fn extents(self, shape: &[usize], elements: usize) -> Vec<usize> {
        match (self, shape) {
            (Self::Vector, _) => vec![elements],
            (Self::Row, _) => vec![1, elements],
            (Self::Kernel, [channels, kernel]) => vec![*channels, 1, *kernel],
            (Self::Kernel, other) => other.to_vec(),
        }
    }
}

impl Order {
    /// Whether rows stay whole.
    pub(super) fn keeps_rows(&self) -> bool {
        !matches!(self, Self::TiledColumns(_))
    }

    /// Elements, or bytes of an order that [keeps rows](Self::keeps_rows), in the order of Hugging Face's folders; `rows` is the
    /// tensor's outermost extent.
    pub(super) fn restore<T: Copy>(&self, values: Vec<T>, rows: usize) -> Vec<T> {
        match self {
            Self::Kept => values,
            Self::Interleaved { heads } => split_halves(&values, rows, *heads),
            Self::TiledRows(tiles) => tiles.group(&values, values.len() / rows.max(1)),
            Self::TiledColumns(tiles) => {
                let columns = (values.len() / rows.max(1)).max(1);
                values.chunks(columns).flat_map(|row| tiles.group(row, 1)).collect()
            }
        }
    }

    /// Number of leading rows that are in place.
    pub(super) fn rows_in_place(&self, rows: usize) -> usize {
        match self {
            Self::Kept => rows,
            Self::TiledRows(tiles) => tiles.first.min(rows),
            Self::Interleaved { .. } | Self::TiledColumns(_) => 0,
        }
    }
}

impl Tiles {
    /// Rows of `length` elements with the value heads of each key head together. Rows that are not as many as described stay
    /// as they are; the shape check refuses them.
    fn group<T: Copy>(&self, values: &[T], length: usize) -> Vec<T> {
        let heads = self.key_heads * self.heads_per_key;
        let (first, head) = (self.first * length, self.width * length);
        if values.len() != first + heads * head {
            return values.to_vec();
        }
        let mut grouped = Vec::with_capacity(values.len());
        grouped.extend_from_slice(&values[..first]);
        for key in 0..self.key_heads {
            for value in 0..self.heads_per_key {
                let start = first + (value * self.key_heads + key) * head;
                grouped.extend_from_slice(&values[start..start + head]);
            }
        }
        grouped
    }
}

impl Change {
    /// The elements before the change, rounded once.
    ///
    /// # Errors
    /// An element that the change cannot produce.
    pub(super) fn undo(self, name: &str, mut values: Vec<f32>) -> Result<Vec<f32>, LoadError> {
        match self {
            Self::None => {}
            Self::OneAdded => values.iter_mut().for_each(|value| *value -= 1.0),
            Self::NegativeExp => {
                for value in &mut values {
                    if !(*value < 0.0 && value.is_finite()) {
                        return Err(LoadError::Unsupported(format!(
                            "tensor {name} with element {value} (expected finite negative numbers, -exp of {name})"
                        )));
                    }
                    *value = (-f64::from(*value)).ln() as f32;
                }
            }
        }
        Ok(values)
    }
}

/// Undoes the interleaving of rotary halves: rows `2j` and `2j + 1` of a head become `j` and `j + width / 2`.
/// Works for weights (`rows` of equal length) and biases (rows of one element). Rows that do not divide into
/// heads are left to the shape check.
fn split_halves<T: Copy>(values: &[T], rows: usize, heads: usize) -> Vec<T> {
    let (width, length) = (rows / heads, values.len() / rows.max(1));
    let mut out = Vec::with_capacity(values.len());
    for head in 0..heads {
        for half in 0..2 {
            for pair in 0..width / 2 {
                let row = head * width + 2 * pair + half;
                out.extend_from_slice(&values[row * length..][..length]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn tiled_value_heads_are_grouped_by_their_key_heads() {
        let tiles = |first, width| Tiles { first, key_heads: 2, heads_per_key: 3, width };
        // Two rows before the heads, heads of one row: numbers are 10 · key head + value head.
        let rows = vec![-1.0, -2.0, 0.0, 10.0, 1.0, 11.0, 2.0, 12.0];
        let grouped = [-1.0, -2.0, 0.0, 1.0, 2.0, 10.0, 11.0, 12.0];
        assert_eq!(Order::TiledRows(tiles(2, 1)).restore(rows.clone(), 8), grouped);
        assert_eq!(Order::TiledRows(tiles(2, 1)).rows_in_place(8), 2);
        // The same as columns of two rows.
        let both = [&rows[2..], &rows[2..]].concat();
        assert_eq!(Order::TiledColumns(tiles(0, 1)).restore(both, 2), [&grouped[2..], &grouped[2..]].concat());
        // Other extents are for the shape check.
        assert_eq!(Order::TiledRows(tiles(2, 2)).restore(rows.clone(), 8), rows);
        assert!(Order::TiledRows(tiles(2, 2)).restore(Vec::<f32>::new(), 0).is_empty());
    }

    #[test]
    fn decays_are_logarithms_again() {
        let logs = [-7.5_f32, -1.0, 0.0, 0.25, 2.7725887];
        let stored = logs.iter().map(|log| -log.exp()).collect();
        let found = Change::NegativeExp.undo("A_log", stored).unwrap();
        // A unit in the last place of exp is this much of the logarithm.
        let close = |(found, log): (&f32, &f32)| (found - log).abs() <= 2.0 * f32::EPSILON * log.abs().max(1.0);
        assert!(found.iter().zip(&logs).all(close), "{found:?}");
        for value in [0.0, 1.0, f32::NAN, f32::NEG_INFINITY] {
            let error = Change::NegativeExp.undo("A_log", vec![-1.0, value]).unwrap_err().to_string();
            assert!(error.contains(&format!("tensor A_log with element {value}")), "{error}");
        }
    }
}

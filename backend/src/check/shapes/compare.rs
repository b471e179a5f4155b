//! Results of large ops, compared row by row.

use crate::check::HostAccess;
use crate::{Params, Rows};

/// Most elements of one result that are copied to the host: of larger results, some rows.
const MOST: usize = 1 << 23;

/// Some rows of a result.
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) width: usize,
    /// Indices of the rows.
    pub(super) rows: Vec<usize>,
    pub(super) values: Vec<f32>,
}

impl Named {
    /// All elements, in rows of a width.
    pub(super) fn all(name: &'static str, width: usize, values: Vec<f32>) -> Self {
        Self { name, width, rows: (0..values.len() / width).collect(), values }
    }

    /// Rows of a device: all, or as many as are compared, the last one included.
    pub(super) fn of<B: HostAccess>(b: &B, name: &'static str, rows: &B::Rows) -> Self {
        let (count, width) = (rows.rows(), rows.width());
        let step = (count * width).div_ceil(MOST).max(1);
        if step == 1 {
            return Self::all(name, width, b.values(rows));
        }
        let mut picked: Vec<usize> = (0..count).step_by(step).collect();
        picked.push(count - 1);
        picked.dedup();
        Self { name, width, values: b.values(&b.gather(rows, &picked)), rows: picked }
    }

    /// Parameters in rows of a width each.
    pub(super) fn params(named: &[(&'static str, usize)], params: &impl Params) -> Vec<Self> {
        let of = |(index, (name, width)): (usize, &(&'static str, usize))| {
            Self::all(name, *width, params.host(index).into_owned())
        };
        named.iter().enumerate().map(of).collect()
    }
}

/// The result that differs, and by how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) name: &'static str,
    pub(super) row: usize,
    /// Error relative to the row's largest element, or to the root mean square of all rows if that is more.
    pub(super) error: f32,
}

/// Returns the worst row of the first result with an error above the tolerance; if there is none, the worst row of all.
///
/// # Errors
/// Fails if results have other extents, or a NaN.
pub(super) fn compare(found: &[Named], expected: &[Named], tolerance: f32) -> Result<Difference, String> {
    if found.len() != expected.len() {
        return Err(format!("{} results, not {}", found.len(), expected.len()));
    }
    let mut worst = Difference { name: "all", row: 0, error: 0.0 };
    for (found, expected) in found.iter().zip(expected) {
        let of = of_result(found, expected)?;
        if of.error > worst.error {
            worst = of;
        }
        if of.error > tolerance {
            return Ok(of);
        }
    }
    Ok(worst)
}

fn of_result(found: &Named, expected: &Named) -> Result<Difference, String> {
    let name = found.name;
    if (found.width, &found.rows) != (expected.width, &expected.rows) || found.values.len() != expected.values.len() {
        return Err(format!("{name} has {} elements, not {}", found.values.len(), expected.values.len()));
    }
    let most = |row: &[f32]| row.iter().fold(0f32, |most, x| most.max(x.abs()));
    // Sums that cancel have errors of the size of their terms: small rows count as those of usual size.
    let squares = expected.values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let usual = (squares / expected.values.len().max(1) as f64).sqrt() as f32;
    let least = usual.max(f32::MIN_POSITIVE);
    let mut worst = Difference { name, row: 0, error: 0.0 };
    let (found_rows, expected_rows) =
        (found.values.chunks_exact(found.width), expected.values.chunks_exact(found.width));
    for ((row, found), expected) in found.rows.iter().zip(found_rows).zip(expected_rows) {
        let error = found.iter().zip(expected).fold(0f32, |most, (x, y)| most.max((x - y).abs()));
        // The largest of numbers ignores NaN, their sum does not.
        let sum = found.iter().sum::<f32>() + expected.iter().sum::<f32>();
        let error = error / most(expected).max(least);
        if !sum.is_finite() || !error.is_finite() {
            return Err(format!("{name}: row {row} has elements that are not finite"));
        }
        if error > worst.error {
            worst = Difference { name, row: *row, error };
        }
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn of(name: &'static str, values: &[f32]) -> Named {
        Named::all(name, 2, values.to_vec())
    }

    #[test]
    fn errors_are_relative_to_their_row() {
        let expected = [of("x", &[4.0, 1.0, 3.0, 0.25])];
        let worst = compare(&[of("x", &[4.0, 1.5, 3.0, 1.0])], &expected, 1.0).unwrap();
        assert_eq!(worst, Difference { name: "x", row: 1, error: 0.25 });
        // A row of almost nothing counts as one of usual size.
        let tiny = [of("x", &[4.0, 1.0, 1e-9, 0.0])];
        let worst = compare(&[of("x", &[4.0, 1.0, 3e-9, 0.0])], &tiny, 1.0).unwrap();
        assert!(worst.error < 1e-6, "{worst:?}");
    }

    #[test]
    fn the_first_result_above_the_tolerance_is_named() {
        let expected = [of("x", &[1.0, 1.0]), of("y", &[1.0, 1.0]), of("z", &[1.0, 1.0])];
        let found = || [of("x", &[1.0, 1.01]), of("y", &[1.1, 1.0]), of("z", &[2.0, 1.0])];
        assert_eq!(compare(&found(), &expected, 0.05).unwrap().name, "y");
        assert_eq!(compare(&found(), &expected, 2.0).unwrap().name, "z");
    }

    #[test]
    fn what_is_not_comparable_is_an_error() {
        let expected = [of("x", &[1.0, 1.0])];
        for wrong in [of("x", &[f32::NAN, 1.0]), of("x", &[f32::INFINITY, 1.0]), of("x", &[1.0; 4])] {
            assert!(compare(&[wrong], &expected, 1.0).is_err());
        }
        assert!(compare(&[], &expected, 1.0).is_err());
    }
}

//! Positions of patches: the learned grid, and the rotation of queries and keys.

use std::ops::Range;

use trainyard_images::{Layout, Place};

use crate::backend::RowMix;
use crate::config::{PatchRotation, PositionGrid, Resampling, VisionConfig};

/// Parameter of the bicubic kernel, as in PyTorch.
const KEYS: f32 = -0.75;

/// Places along an axis of the learned grid, and the factor of each.
type Taps = Vec<(usize, f32)>;

/// Bilinear interpolation along an axis of `count` patches, whose ends are those of the `side` elements of the grid.
fn bilinear(at: usize, count: usize, side: usize) -> Taps {
    let position = at as f32 * ((side - 1) as f32 / count.saturating_sub(1).max(1) as f32);
    let low = (position as usize).min(side - 1);
    let part = position - low as f32;
    vec![(low, 1.0 - part), ((low + 1).min(side - 1), part)]
}

/// Bicubic interpolation along an axis of `count` patches, whose centres are between those of the `side` elements of the grid.
fn bicubic(at: usize, count: usize, side: usize) -> Taps {
    // In the order of operations of the reference.
    let position = (at as f32 + 0.5) * side as f32 / count as f32 - 0.5;
    let low = position.floor();
    let tap = |offset: i64| {
        let place = (low as i64 + offset).clamp(0, side as i64 - 1);
        (place as usize, cubic((position - low - offset as f32).abs()))
    };
    (-1..3).map(tap).collect()
}

/// The kernel of Keys 1981 (doi:10.1109/TASSP.1981.1163711) at a distance of at most two elements.
fn cubic(distance: f32) -> f32 {
    if distance <= 1.0 {
        return ((KEYS + 2.0) * distance - (KEYS + 3.0)) * distance * distance + 1.0;
    }
    ((KEYS * distance - 5.0 * KEYS) * distance + 8.0 * KEYS) * distance - 4.0 * KEYS
}

/// Rows of the learned grid that stand for some patches of an image.
pub(super) fn position_mix(config: &VisionConfig, layout: &Layout, patches: Range<usize>) -> RowMix {
    let PositionGrid { rows, columns, resampling, .. } = config.positions;
    let (taps, per_axis): (fn(usize, usize, usize) -> Taps, _) = match resampling {
        Resampling::Bilinear => (bilinear, 2),
        Resampling::Bicubic => (bicubic, 4),
    };
    let mut mix = RowMix { per_row: per_axis * per_axis, ..RowMix::default() };
    for patch in patches {
        let Place { row, column } = layout.place(patch);
        let down = taps(row, layout.grid_height() as usize, rows);
        let across = taps(column, layout.grid_width() as usize, columns);
        for (r, row_part) in down {
            for (c, column_part) in &across {
                mix.rows.push(r * columns + c);
                mix.weights.push(row_part * column_part);
            }
        }
    }
    mix
}

/// (cos, sin) of the angles of an image's patches, `[patch][half a head]`, the patches of a token one after the other: frequencies
/// by row, then the same by column, or each frequency by column and by row.
pub(super) fn rotations(config: &VisionConfig, layout: &Layout) -> Vec<(f32, f32)> {
    let quarter = config.hidden / config.heads / 4;
    let frequency = |j: usize| config.theta.powf(-(j as f64) / quarter as f64) as f32;
    let frequencies: Vec<f32> = (0..quarter).map(frequency).collect();
    let pair = |position: usize, frequency: f32| {
        // Rounded as in PyTorch.
        let angle = f64::from(position as f32 * frequency);
        (angle.cos() as f32, angle.sin() as f32)
    };
    let half = 2 * quarter;
    let mut table = vec![(0.0, 0.0); layout.patches() * half];
    for patch in 0..layout.patches() {
        let Place { row, column } = layout.place(patch);
        let own = &mut table[layout.index_by_token(patch) * half..][..half];
        for (j, frequency) in frequencies.iter().enumerate() {
            let [by_row, by_column] = match config.rotation {
                PatchRotation::Halves => [j, quarter + j],
                PatchRotation::Neighbours => [2 * j + 1, 2 * j],
            };
            own[by_row] = pair(row, *frequency);
            own[by_column] = pair(column, *frequency);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_an_axis_are_ends_of_the_grid() {
        assert_eq!(bilinear(0, 7, 4), [(0, 1.0), (1, 0.0)]);
        assert_eq!(bilinear(3, 7, 4), [(1, 0.5), (2, 0.5)]);
        assert_eq!(bilinear(6, 7, 4), [(3, 1.0), (3, 0.0)]);
        assert_eq!(bilinear(0, 1, 4), [(0, 1.0), (1, 0.0)]);
        assert_eq!(bilinear(0, 1, 1), [(0, 1.0), (0, 0.0)]);
    }

    /// Patch, patches and elements of an axis, and the factors of these elements.
    const REFERENCE: &[(usize, usize, usize, &[f32])] = &[
        (0, 8, 5, &[1.092_834_5, -0.092_834_47, 0.0, 0.0, 0.0]),
        (1, 8, 5, &[0.570_190_4, 0.510_559_1, -0.080_749_51, 0.0, 0.0]),
        (5, 8, 5, &[0.0, -0.002_746_582, 0.052_429_2, 0.991_516_1, -0.041_198_73]),
        (2, 3, 5, &[0.0, 0.0, -0.055_555_82, 0.370_370_57, 0.685_184_96]),
        (0, 1, 4, &[-0.093_75, 0.593_75, 0.593_75, -0.093_75]),
        (3, 7, 2, &[0.499_999_88, 0.500_000_1]),
    ];

    #[test]
    fn bicubic_factors_are_those_of_the_reference() {
        // Unit vectors, resampled by `torch.nn.functional.interpolate` with `mode="bicubic"` and `align_corners=False`.
        let resampled = |at, count, side| {
            let mut row = vec![0.0; side];
            bicubic(at, count, side).into_iter().for_each(|(place, factor)| row[place] += factor);
            row
        };
        for &(at, count, side, expected) in REFERENCE {
            let found = resampled(at, count, side);
            assert_eq!(found.len(), expected.len());
            for (a, b) in found.iter().zip(expected) {
                assert!((a - b).abs() < 1e-6, "{at} of {count}: {found:?}");
            }
        }
        // On a grid of its own size, a patch has its own element.
        assert_eq!(resampled(2, 5, 5), [0.0, 0.0, 1.0, 0.0, 0.0]);
    }
}

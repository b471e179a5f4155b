//! Positions of patches: the learned grid, and the rotation of queries and keys.

use trainyard_images::{Layout, Place};

use crate::backend::RowMix;
use crate::config::VisionConfig;

/// Rows of the learned grid that a patch adds up.
const NEIGHBOURS: usize = 4;

/// A coordinate on the learned grid: its two neighbours, and the part of the second one.
struct Between {
    low: usize,
    high: usize,
    part: f32,
}

/// Bilinear interpolation along an axis of `count` patches, whose ends are those of the grid.
fn between(at: usize, count: usize, side: usize) -> Between {
    let position = at as f32 * ((side - 1) as f32 / count.saturating_sub(1).max(1) as f32);
    let low = (position as usize).min(side - 1);
    Between { low, high: (low + 1).min(side - 1), part: position - low as f32 }
}

/// Rows of the learned grid that stand for some patches of an image.
pub(super) fn position_mix(config: &VisionConfig, layout: &Layout, patches: std::ops::Range<usize>) -> RowMix {
    let side = config.position_side;
    let mut mix = RowMix { per_row: NEIGHBOURS, ..RowMix::default() };
    for patch in patches {
        let Place { row, column } = layout.place(patch);
        let row = between(row, layout.grid_height() as usize, side);
        let column = between(column, layout.grid_width() as usize, side);
        for (r, row_part) in [(row.low, 1.0 - row.part), (row.high, row.part)] {
            for (c, column_part) in [(column.low, 1.0 - column.part), (column.high, column.part)] {
                mix.rows.push(r * side + c);
                mix.weights.push(row_part * column_part);
            }
        }
    }
    mix
}

/// (cos, sin) of the angles of an image's patches, `[patch][half a head]`: frequencies by row, then the same by column.
pub(super) fn rotations(config: &VisionConfig, layout: &Layout) -> Vec<(f32, f32)> {
    let quarter = config.hidden / config.heads / 4;
    let frequency = |j: usize| config.theta.powf(-(j as f64) / quarter as f64) as f32;
    let frequencies: Vec<f32> = (0..quarter).map(frequency).collect();
    let pair = |position: usize, frequency: f32| {
        // Rounded as in PyTorch.
        let angle = f64::from(position as f32 * frequency);
        (angle.cos() as f32, angle.sin() as f32)
    };
    let mut table = Vec::with_capacity(layout.patches() * 2 * quarter);
    for patch in 0..layout.patches() {
        let Place { row, column } = layout.place(patch);
        for position in [row, column] {
            table.extend(frequencies.iter().map(|frequency| pair(position, *frequency)));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_an_axis_are_ends_of_the_grid() {
        let at = |at, count| {
            let Between { low, high, part } = between(at, count, 4);
            (low, high, part)
        };
        assert_eq!(at(0, 7), (0, 1, 0.0));
        assert_eq!(at(3, 7), (1, 2, 0.5));
        assert_eq!(at(6, 7), (3, 3, 0.0));
        assert_eq!(at(0, 1), (0, 1, 0.0));
        assert_eq!(between(0, 1, 1).high, 0);
    }
}

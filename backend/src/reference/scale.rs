//! Sums with a factor.

use super::{Matrix, Reference};
use crate::ScaleOps;

impl ScaleOps<Self> for Reference {
    const HAS_SCALES: bool = true;

    fn add_scaled_rows(_: &Self, scale: f32, from: &Matrix, to: &mut Matrix) {
        assert!(from.data.len() == to.data.len(), "row extents differ");
        to.data.iter_mut().zip(&from.data).for_each(|(to, from)| *to = scale.mul_add(*from, *to));
    }
}

//! Norms and rotation of queries and keys.

use super::rows::HostRows;
use super::{Cpu, norm};
use crate::host::HostParams;
use crate::{Norm, Rotation};

/// First column, and number of heads, of what is normalised by each norm.
pub(super) fn normed_together(rotation: &Rotation<'_, Cpu>) -> [(usize, usize); 2] {
    let shape = rotation.shape;
    match rotation.whole_norms {
        true => [(0, 1), (shape.q_width(), 1)],
        false => [(0, shape.heads), (shape.q_width(), shape.kv_heads)],
    }
}

impl Cpu {
    /// Rotates queries and keys, by the negative angles where `inverse` is set.
    pub(super) fn turn(&self, rotation: &Rotation<'_, Self>, x: &mut HostRows, inverse: bool) {
        let Rotation { shape, rope, query_rope, positions, .. } = *rotation;
        let stride = shape.qkv_width();
        let of = |x: &mut HostRows, rope: &super::rope::Rope, at: usize, heads: usize| {
            rope.apply(self, x, stride, at, heads, shape.head_dim, positions, inverse);
        };
        match query_rope {
            None => of(x, rope, 0, shape.heads + shape.kv_heads),
            Some(query_rope) => {
                of(x, query_rope, 0, shape.heads);
                of(x, rope, shape.q_width(), shape.kv_heads);
            }
        }
    }

    /// Takes a gradient back through rotation and norms, in place; those of the norms are added to `dw`.
    pub(super) fn rotate_gradient(
        &self,
        rotation: &Rotation<'_, Self>,
        before: Option<&HostRows>,
        d_qkv: &mut HostRows,
        mut dw: Option<(&mut HostParams, [usize; 2])>,
    ) {
        self.turn(rotation, d_qkv, true);
        let (Some(norms), Some(before)) = (&rotation.norms, before) else { return };
        let stride = rotation.shape.qkv_width();
        for (i, (Norm { weight, eps }, (at, heads))) in norms.iter().zip(normed_together(rotation)).enumerate() {
            let dw = dw.as_mut().map(|(params, index)| &mut params[index[i]][..]);
            norm::rms_norm_heads_backward(self, before, stride, at, heads, weight, *eps, d_qkv, dw);
        }
    }
}

//! An adapter's part in a linear layer: `out += (alpha / rank) (x Aᵀ) Bᵀ` for groups of rows, and its backward.

use std::ops::Range;

use super::adapter::{Adapter, LoraPair, Module};
use super::forward::Group;
use super::params::Gradients;
use crate::kernels::Cpu;
use crate::kernels::elementwise::scale;
use crate::kernels::gemm::{
    Factor, Gradient, LowRank, Operand, Product, Rows, add_gradients, add_low_rank, run_products,
};
use crate::kernels::packed::{Dtype, NR, PackedMatrix};

/// Where a module's outputs are in its fused projection.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Which.
    pub module: Module,
    /// First column.
    pub at: usize,
}

/// A group of rows whose adapter has a pair on a module.
pub(super) struct Adapted<'a> {
    /// Index of the group.
    pub group: usize,
    /// Its rows.
    pub rows: Range<usize>,
    /// First column of the module's outputs.
    pub at: usize,
    /// The adapter.
    pub adapter: &'a Adapter,
    /// Its pair.
    pub pair: &'a LoraPair,
}

/// The pairs on the modules of a fused projection, module by module, group by group.
pub(super) fn adapted<'a>(groups: &'a [Group], layer: usize, places: &[Place]) -> Vec<Adapted<'a>> {
    let of_place = |place: Place| {
        groups.iter().enumerate().filter_map(move |(group, g)| {
            let adapter = g.adapter.as_deref()?;
            let pair = adapter.pair(layer, place.module)?;
            Some(Adapted { group, rows: g.rows.clone(), at: place.at, adapter, pair })
        })
    };
    places.iter().flat_map(|place| of_place(*place)).collect()
}

/// Scaled `x Aᵀ` of every pair.
pub(super) fn project_down(cpu: &Cpu, x: &Operand, adapted: &[Adapted<'_>]) -> Vec<Vec<f32>> {
    let mut zs: Vec<Vec<f32>> = adapted.iter().map(|a| vec![0.0; a.rows.len() * a.adapter.rank]).collect();
    let products = adapted.iter().zip(&mut zs).map(|(a, out)| Product {
        x,
        rows: a.rows.clone(),
        x_k: 0,
        w: Factor::Matrix(&a.pair.a),
        out,
        accumulate: false,
        low_rank: Vec::new(),
    });
    run_products(cpu, &mut products.collect::<Vec<_>>());
    adapted.iter().zip(&mut zs).for_each(|(a, z)| scale(z, a.adapter.scale));
    zs
}

/// `out (+)= x Wᵀ`, then `z Bᵀ` of every pair on its columns.
pub(super) fn project_up(
    cpu: &Cpu,
    x: &Operand,
    w: &PackedMatrix,
    adapted: &[Adapted<'_>],
    zs: &[impl AsRef<[f32]>],
    out: &mut [f32],
    accumulate: bool,
) {
    let operands: Vec<_> = adapted
        .iter()
        .zip(zs)
        .map(|(a, z)| Operand::small(cpu, a.pair.b.dtype(), z.as_ref(), a.adapter.rank))
        .collect();
    let parts = adapted.iter().zip(&operands).map(|(a, z)| LowRank {
        rows: a.rows.clone(),
        at: a.at,
        terms: vec![(z, Factor::Matrix(&a.pair.b))],
    });
    let (low_rank, others): (Vec<_>, Vec<_>) = parts.partition(|part| part.at.is_multiple_of(NR));
    let product = Product { x, rows: 0..x.rows(), x_k: 0, w: w.into(), out: &mut *out, accumulate, low_rank };
    run_products(cpu, &mut [product]);
    if !others.is_empty() {
        add_low_rank(cpu, out, w.n(), &others);
    }
}

/// Gradient by the unscaled `x Aᵀ` of every pair; `dy` has rows of all modules and `operand` is `dy`.
pub(super) fn backward_up(
    cpu: &Cpu,
    operand: &Operand,
    dy: &[f32],
    dtype: Dtype,
    adapted: &[Adapted<'_>],
) -> Vec<Vec<f32>> {
    let mut dzs: Vec<Vec<f32>> = adapted.iter().map(|a| vec![0.0; a.rows.len() * a.adapter.rank]).collect();
    // Operands are stored in pairs of columns, so a module that begins at an odd one needs its own.
    let stride = operand.k();
    let own: Vec<Option<Operand>> = adapted
        .iter()
        .map(|a| {
            let columns = |row: usize| dy[row * stride + a.at..][..a.pair.n].iter().copied();
            (!a.at.is_multiple_of(2))
                .then(|| Operand::new(cpu, dtype, &a.rows.clone().flat_map(columns).collect::<Vec<_>>(), a.pair.n))
        })
        .collect();
    let products = adapted.iter().zip(&own).zip(&mut dzs).map(|((a, own), out)| {
        let (x, rows, x_k) = match own {
            Some(own) => (own, 0..a.rows.len(), 0),
            None => (operand, a.rows.clone(), a.at),
        };
        Product { x, rows, x_k, w: a.pair.b_t(cpu), out, accumulate: false, low_rank: Vec::new() }
    });
    run_products(cpu, &mut products.collect::<Vec<_>>());
    adapted.iter().zip(&mut dzs).for_each(|(a, dz)| scale(dz, a.adapter.scale));
    dzs
}

/// A pair's part in a backward pass below its output.
pub(super) struct Down<'a> {
    /// Which.
    pub adapted: Adapted<'a>,
    /// Scaled `x Aᵀ`; `None` where B's gradient is computed elsewhere.
    pub z: Option<&'a [f32]>,
    /// Gradient by the unscaled `x Aᵀ`.
    pub dz: Vec<f32>,
}

/// Adds the gradients of A and B of each pair; `x` has rows of `k` and `dy`, the gradient by the output of all modules,
/// rows of `n`.
pub(super) fn pair_gradients(
    cpu: &Cpu,
    downs: &[Down<'_>],
    x: &[f32],
    k: usize,
    dy: &[f32],
    n: usize,
    sinks: &mut [Option<&mut Gradients>],
) {
    // Taken out, so that threads can write several of a run's gradients at once.
    let mut outs: Vec<[Vec<f32>; 2]> = downs
        .iter()
        .map(|d| match sinks[d.adapted.group].as_deref_mut() {
            Some(grads) => [0, 1].map(|i| std::mem::take(&mut grads[d.adapted.pair.place + i])),
            None => Default::default(),
        })
        .collect();
    let mut gradients = Vec::new();
    for (d, [a, b]) in downs.iter().zip(&mut outs) {
        if a.is_empty() {
            continue;
        }
        let (rows, rank) = (d.adapted.rows.clone(), d.adapted.adapter.rank);
        if let Some(z) = d.z {
            let right = Rows { data: &dy[rows.start * n + d.adapted.at..], stride: n, width: d.adapted.pair.n };
            gradients.push(Gradient { rows: rows.len(), left: Rows::dense(z, rank), right, transposed: true, out: b });
        }
        let (left, right) = (Rows::dense(&d.dz, rank), Rows::dense(&x[rows.start * k..], k));
        gradients.push(Gradient { rows: rows.len(), left, right, transposed: false, out: a });
    }
    add_gradients(cpu, &mut gradients);
    drop(gradients);
    for (d, [a, b]) in downs.iter().zip(outs) {
        if let Some(grads) = sinks[d.adapted.group].as_deref_mut() {
            grads[d.adapted.pair.place] = a;
            grads[d.adapted.pair.place + 1] = b;
        }
    }
}

/// `dx = dy W` where `base` gives both, then `dz A` of every pair, in order. `dx` has rows of `k`.
pub(super) fn backward_down(
    cpu: &Cpu,
    base: Option<(&Operand, Factor<'_>)>,
    downs: &[Down<'_>],
    k: usize,
    dx: &mut [f32],
) {
    let operand = |d: &Down<'_>| Operand::small(cpu, d.adapted.pair.a.dtype(), &d.dz, d.adapted.adapter.rank);
    let operands: Vec<_> = downs.iter().map(operand).collect();
    let mut parts: Vec<(usize, LowRank<'_>)> = Vec::new();
    for (d, operand) in downs.iter().zip(&operands) {
        let term = (operand, d.adapted.pair.a_t(cpu));
        match parts.iter_mut().find(|(group, _)| *group == d.adapted.group) {
            Some((_, part)) => part.terms.push(term),
            None => parts.push((d.adapted.group, LowRank { rows: d.adapted.rows.clone(), at: 0, terms: vec![term] })),
        }
    }
    let low_rank: Vec<_> = parts.into_iter().map(|(_, part)| part).collect();
    match base {
        Some((x, w)) => {
            let product = Product { x, rows: 0..x.rows(), x_k: 0, w, out: dx, accumulate: false, low_rank };
            run_products(cpu, &mut [product]);
        }
        None => add_low_rank(cpu, dx, k, &low_rank),
    }
}

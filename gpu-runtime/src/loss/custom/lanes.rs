//! Tensors as rows of the elements that are reduced, or scanned, together.

use candle_core::Tensor;

use super::error::Result;
use super::tape::Tape;
use super::tensor::{GraphTensor, dense, elements, volume};

/// A tensor whose last dimension is reduced.
pub(super) struct Lanes {
    /// Lanes as rows: `[rows, width]`.
    pub(super) tensor: GraphTensor,
    pub(super) width: usize,
    /// Extents of the dimensions that remain.
    outer: Vec<usize>,
    /// Current positions of the original dimensions.
    order: Vec<usize>,
    /// Shape of the original.
    shape: Vec<usize>,
}

impl Lanes {
    /// Moves `dims`, which ascend, to the end.
    pub(super) fn of(tape: &mut Tape, x: &GraphTensor, dims: &[usize]) -> Result<Self> {
        let shape = x.shape().to_vec();
        let stays = (0..shape.len()).filter(|dim| !dims.contains(dim));
        let order: Vec<usize> = stays.clone().chain(dims.iter().copied()).collect();
        let extent = |dim: &usize| shape.get(*dim).copied().unwrap_or(1);
        let outer: Vec<usize> = stays.map(|dim| extent(&dim)).collect();
        let width = dims.iter().map(extent).product();
        let rows = volume(&outer);
        let tensor = tape.traced(&[x], |x| arranged(x, &order, &[rows, width]))?;
        Ok(Self { tensor, width, outer, order, shape })
    }

    /// Elements of each row.
    pub(super) fn rows(&self) -> Result<Vec<Vec<f64>>> {
        Ok(split(self.tensor.to_floats()?, self.width, volume(&self.outer)))
    }

    /// The shape of one result per row.
    pub(super) fn reduced(&self, dims: &[usize], keepdim: bool) -> Vec<usize> {
        if !keepdim {
            return self.outer.clone();
        }
        let one = |(dim, &extent): (usize, &usize)| if dims.contains(&dim) { 1 } else { extent };
        self.shape.iter().enumerate().map(one).collect()
    }

    /// A tensor of the rows' form in the original's order of dimensions.
    pub(super) fn restored(&self, tape: &mut Tape, rows: &GraphTensor) -> Result<GraphTensor> {
        let moved: Vec<usize> = self.order.iter().map(|&dim| self.shape.get(dim).copied().unwrap_or(1)).collect();
        let back: Vec<usize> =
            (0..self.order.len()).map(|dim| self.order.iter().position(|&from| from == dim).unwrap_or(dim)).collect();
        tape.traced(&[rows], |rows| {
            let [rows] = rows else { candle_core::bail!("one tensor is restored") };
            arranged(&[rows.reshape(moved.as_slice())?], &back, &self.shape)
        })
    }
}

/// A tensor with its dimensions in this order, then in this shape.
fn arranged(x: &[Tensor], order: &[usize], shape: &[usize]) -> candle_core::Result<Tensor> {
    let [x] = x else { candle_core::bail!("one tensor is arranged") };
    let is_in_order = order.iter().enumerate().all(|(at, &dim)| at == dim);
    let ordered = if is_in_order { x.clone() } else { x.permute(order)?.contiguous()? };
    ordered.reshape(shape)
}

/// Divides values into `rows` rows of this width.
pub(super) fn split<T: Clone>(values: Vec<T>, width: usize, rows: usize) -> Vec<Vec<T>> {
    if width == 0 {
        return vec![Vec::new(); rows];
    }
    values.chunks(width).map(<[T]>::to_vec).collect()
}

/// A way back through rows: each row of the gradient from that row of the output's gradient and its number.
pub(super) fn by_row(
    width: usize,
    rows: usize,
    out_width: usize,
    function: impl Fn(usize, &[f64]) -> Vec<f64>,
) -> impl Fn(&Tensor) -> Result<Tensor> {
    move |gradient| {
        let of_output = split(elements::<f64>(gradient)?, out_width, rows);
        let found: Vec<f64> = of_output.iter().enumerate().flat_map(|(at, row)| function(at, row)).collect();
        dense(found, &[rows, width])
    }
}

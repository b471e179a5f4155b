//! D = alpha · op(A) op(B) + beta · C.

use cuda_sim_client::{Client, ClientError};
use half::{bf16, f16};

use crate::faults::Behaviour;
use crate::layout::{Element, INVALID_VALUE, Layout, Operation, Result};

/// A multiplication with everything that it needs when its stream reaches it.
#[derive(Debug, Clone)]
pub(crate) struct Multiplication {
    pub(crate) operation: Operation,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    /// Layouts and addresses of A, B, C and D.
    pub(crate) layouts: [Layout; 4],
    pub(crate) addresses: [u64; 4],
    /// Number of the algorithm, which decides the order of sums.
    pub(crate) algorithm: u8,
}

impl Multiplication {
    /// Refuses shapes that do not fit.
    pub(crate) fn check(&self) -> Result {
        let [a, b, c, d] = &self.layouts;
        let (m, k) = shape(a, self.operation.transpose_a);
        let (k_of_b, n) = shape(b, self.operation.transpose_b);
        let fits = k == k_of_b && [c, d].iter().all(|x| (x.rows, x.columns) == (m, n));
        let strides = self.layouts.iter().all(|x| x.stride >= if x.by_rows { x.columns } else { x.rows });
        let batches = self.layouts.iter().all(|x| x.batch == d.batch);
        if fits && strides && batches { Ok(()) } else { Err(INVALID_VALUE) }
    }

    /// Multiplies on the device of the stream that calls.
    pub(crate) fn run(&self, client: &Client) -> std::result::Result<(), ClientError> {
        let [a, b, c, d] = &self.layouts;
        let (m, k) = shape(a, self.operation.transpose_a);
        let n = d.columns;
        let behaviour = Behaviour::of_process();
        let part = k.div_ceil(behaviour.parts(self.algorithm, n)).max(1);
        let mut sums_of_part = vec![0f32; n];
        for index in 0..d.batch {
            let left = oriented(read(client, a, self.addresses[0], index)?, a, self.operation.transpose_a);
            let right = oriented(read(client, b, self.addresses[1], index)?, b, self.operation.transpose_b);
            let mut sums = vec![0f32; m * n];
            for row in 0..m {
                let sums = &mut sums[row * n..(row + 1) * n];
                for first in (0..k).step_by(part) {
                    sums_of_part.fill(0.0);
                    for depth in first..k.min(first + part) {
                        let left = self.rounded(left[row * k + depth]);
                        for (sum, right) in sums_of_part.iter_mut().zip(&right[depth * n..(depth + 1) * n]) {
                            *sum += left * self.rounded(*right);
                        }
                    }
                    sums.iter_mut().zip(&sums_of_part).for_each(|(sum, part)| *sum += part);
                }
            }
            behaviour.spoil(&mut sums, n);
            for sum in &mut sums {
                *sum *= self.alpha;
            }
            if self.beta != 0.0 {
                let before = oriented(read(client, c, self.addresses[2], index)?, c, false);
                for (sum, before) in sums.iter_mut().zip(before) {
                    *sum += self.beta * before;
                }
            }
            if let Some(address) = self.operation.bias {
                let bias = decode(d.element, &client.read(address, m * d.element.size())?);
                for (row, bias) in bias.iter().enumerate() {
                    sums[row * n..(row + 1) * n].iter_mut().for_each(|sum| *sum += bias);
                }
            }
            write(client, d, self.addresses[3], index, &sums)?;
        }
        Ok(())
    }

    fn rounded(&self, x: f32) -> f32 {
        if self.operation.tf32 && x.is_finite() {
            return f32::from_bits(x.to_bits().wrapping_add(0x1000) & 0xffff_e000);
        }
        x
    }
}

/// Rows and columns of a matrix as the multiplication sees it.
fn shape(layout: &Layout, transposed: bool) -> (usize, usize) {
    if transposed { (layout.columns, layout.rows) } else { (layout.rows, layout.columns) }
}

/// Lines of a layout, their length, and the address of the first one.
fn lines(layout: &Layout, address: u64, index: usize) -> (usize, usize, u64) {
    let (count, length) = if layout.by_rows { (layout.rows, layout.columns) } else { (layout.columns, layout.rows) };
    let offset = layout.batch_stride * index as i64 * layout.element.size() as i64;
    (count, length, address.wrapping_add_signed(offset))
}

/// The matrix as it lies in memory, without what is between its lines.
fn read(client: &Client, layout: &Layout, address: u64, index: usize) -> std::result::Result<Vec<f32>, ClientError> {
    let (count, length, base) = lines(layout, address, index);
    let size = layout.element.size();
    if layout.stride == length {
        return Ok(decode(layout.element, &client.read(base, count * length * size)?));
    }
    let mut values = Vec::with_capacity(count * length);
    for line in 0..count {
        let bytes = client.read(base + (line * layout.stride * size) as u64, length * size)?;
        values.extend(decode(layout.element, &bytes));
    }
    Ok(values)
}

/// Row after row, transposed if asked for.
fn oriented(values: Vec<f32>, layout: &Layout, transposed: bool) -> Vec<f32> {
    if layout.by_rows != transposed {
        return values;
    }
    let (count, length) = if layout.by_rows { (layout.rows, layout.columns) } else { (layout.columns, layout.rows) };
    let mut out = vec![0.0; values.len()];
    for line in 0..count {
        for at in 0..length {
            out[at * count + line] = values[line * length + at];
        }
    }
    out
}

/// Writes values that lie row after row.
fn write(
    client: &Client,
    layout: &Layout,
    address: u64,
    index: usize,
    values: &[f32],
) -> std::result::Result<(), ClientError> {
    let (count, length, base) = lines(layout, address, index);
    let size = layout.element.size();
    for line in 0..count {
        let value = |at: usize| {
            let (row, column) = if layout.by_rows { (line, at) } else { (at, line) };
            values[row * layout.columns + column]
        };
        let bytes = encode(layout.element, (0..length).map(value));
        client.write(base + (line * layout.stride * size) as u64, &bytes)?;
    }
    Ok(())
}

fn decode(element: Element, bytes: &[u8]) -> Vec<f32> {
    let half = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
    match element {
        Element::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Element::F16 => bytes.chunks_exact(2).map(|pair| f16::from_bits(half(pair)).to_f32()).collect(),
        Element::Bf16 => bytes.chunks_exact(2).map(|pair| bf16::from_bits(half(pair)).to_f32()).collect(),
    }
}

fn encode(element: Element, values: impl Iterator<Item = f32>) -> Vec<u8> {
    match element {
        Element::F32 => values.flat_map(f32::to_le_bytes).collect(),
        Element::F16 => values.flat_map(|value| f16::from_f32(value).to_le_bytes()).collect(),
        Element::Bf16 => values.flat_map(|value| bf16::from_f32(value).to_le_bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientations() {
        let layout = |by_rows| Layout {
            element: Element::F32,
            rows: 2,
            columns: 3,
            stride: 3,
            by_rows,
            batch: 1,
            batch_stride: 0,
        };
        let by_columns = vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        assert_eq!(oriented(by_columns.clone(), &layout(false), false), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(oriented(by_columns.clone(), &layout(false), true), by_columns);
        let by_rows = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(oriented(by_rows.clone(), &layout(true), true), by_columns);
        assert_eq!(oriented(by_rows.clone(), &layout(true), false), by_rows);
    }
}

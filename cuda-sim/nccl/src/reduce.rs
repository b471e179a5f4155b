//! Reductions of the ranks' data, in the order of ranks.

use half::{bf16, f16};

/// Bytes of an element, by the number of NCCL's data type.
pub(crate) fn size(element: u8) -> Option<usize> {
    Some(match element {
        0 | 1 => 1,
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        6 | 9 => 2,
        _ => return None,
    })
}

/// Reduces the ranks' data element by element; `None` for a type or operation that is not simulated.
///
/// 16-bit floats are added in f32 and rounded once, at the end.
pub(crate) fn reduce(element: u8, operation: u8, ranks: &[Vec<u8>]) -> Option<Vec<u8>> {
    match element {
        2 => integers(operation, ranks, i32::from_le_bytes, i32::to_le_bytes),
        4 => integers(operation, ranks, i64::from_le_bytes, i64::to_le_bytes),
        6 => floats(operation, ranks, |b| f16::from_le_bytes(b).to_f32(), |x| f16::from_f32(x).to_le_bytes()),
        7 => floats(operation, ranks, f32::from_le_bytes, f32::to_le_bytes),
        9 => floats(operation, ranks, |b| bf16::from_le_bytes(b).to_f32(), |x| bf16::from_f32(x).to_le_bytes()),
        _ => None,
    }
}

fn floats<const N: usize>(
    operation: u8,
    ranks: &[Vec<u8>],
    read: fn([u8; N]) -> f32,
    write: fn(f32) -> [u8; N],
) -> Option<Vec<u8>> {
    let combine: fn(f32, f32) -> f32 = match operation {
        0 | 4 => |x, y| x + y,
        1 => |x, y| x * y,
        2 => f32::max,
        3 => f32::min,
        _ => return None,
    };
    let scale = if operation == 4 { 1.0 / ranks.len() as f32 } else { 1.0 };
    elements(ranks, read, combine, |x| write(x * scale))
}

fn integers<const N: usize, T: Into<i128> + TryFrom<i128> + Copy>(
    operation: u8,
    ranks: &[Vec<u8>],
    read: fn([u8; N]) -> T,
    write: fn(T) -> [u8; N],
) -> Option<Vec<u8>> {
    let combine: fn(i128, i128) -> i128 = match operation {
        0 => |x, y| x + y,
        1 => |x, y| x.wrapping_mul(y),
        2 => Ord::max,
        3 => Ord::min,
        _ => return None,
    };
    // What does not fit is a mistake of the caller; zero shows it.
    elements(ranks, |bytes| read(bytes).into(), combine, |x| T::try_from(x).map_or([0; N], write))
}

fn elements<const N: usize, T: Copy>(
    ranks: &[Vec<u8>],
    read: impl Fn([u8; N]) -> T,
    combine: impl Fn(T, T) -> T,
    write: impl Fn(T) -> [u8; N],
) -> Option<Vec<u8>> {
    let length = ranks.first()?.len();
    let mut out = Vec::with_capacity(length);
    for at in (0..length).step_by(N) {
        let mut total = None;
        for rank in ranks {
            let value = read(rank.get(at..at + N)?.try_into().ok()?);
            total = Some(total.map_or(value, |total| combine(total, value)));
        }
        out.extend(write(total?));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_in_the_order_of_ranks() {
        let ranks: Vec<Vec<u8>> = [1e8f32, 1.0, -1e8].iter().map(|x| x.to_le_bytes().to_vec()).collect();
        assert_eq!(reduce(7, 0, &ranks), Some(0f32.to_le_bytes().to_vec()));
        let half: Vec<Vec<u8>> = [1.0f32, 2.0, 4.5].iter().map(|x| bf16::from_f32(*x).to_le_bytes().to_vec()).collect();
        assert_eq!(reduce(9, 0, &half), Some(bf16::from_f32(7.5).to_le_bytes().to_vec()));
        assert_eq!(reduce(9, 2, &half), Some(bf16::from_f32(4.5).to_le_bytes().to_vec()));
        assert_eq!(reduce(9, 4, &half), Some(bf16::from_f32(2.5).to_le_bytes().to_vec()));
    }
}

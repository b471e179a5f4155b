//! Comparisons: `setp`, `set`, and the conditions of `slct`.

use half::{bf16, f16};

use crate::row::{Binary, row};
use crate::types::Type;

/// Unordered comparisons (`equ`, `num`, …) are for floats; `lo`, `ls`, `hi`, `hs` are for unsigned integers.
pub(crate) fn comparison(name: &str, ty: Type) -> Option<Binary> {
    match ty {
        Type::F32 => float32(name),
        Type::F64 => float64(name),
        Type::F16 => half16(name),
        Type::Bf16 => bfloat16(name),
        _ => integer(name, ty),
    }
}

fn integer(name: &str, ty: Type) -> Option<Binary> {
    use crate::row::integers;
    match name {
        "eq" => integers!(ty, |x, y| x == y),
        "ne" => integers!(ty, |x, y| x != y),
        "lt" | "lo" => integers!(ty, |x, y| x < y),
        "le" | "ls" => integers!(ty, |x, y| x <= y),
        "gt" | "hi" => integers!(ty, |x, y| x > y),
        "ge" | "hs" => integers!(ty, |x, y| x >= y),
        _ => None,
    }
}

macro_rules! floats {
    ($function:ident, $ty:ty) => {
        fn $function(name: &str) -> Option<Binary> {
            Some(match name {
                "eq" => row!($ty, |x, y| x == y),
                "ne" => row!($ty, |x, y| x.partial_cmp(&y).is_some_and(|order| order.is_ne())),
                "lt" => row!($ty, |x, y| x < y),
                "le" => row!($ty, |x, y| x <= y),
                "gt" => row!($ty, |x, y| x > y),
                "ge" => row!($ty, |x, y| x >= y),
                "equ" => row!($ty, |x, y| x.partial_cmp(&y).is_none_or(|order| order.is_eq())),
                "neu" => row!($ty, |x, y| x != y),
                "ltu" => row!($ty, |x, y| x.partial_cmp(&y).is_none_or(|order| order.is_lt())),
                "leu" => row!($ty, |x, y| x.partial_cmp(&y).is_none_or(|order| order.is_le())),
                "gtu" => row!($ty, |x, y| x.partial_cmp(&y).is_none_or(|order| order.is_gt())),
                "geu" => row!($ty, |x, y| x.partial_cmp(&y).is_none_or(|order| order.is_ge())),
                "num" => row!($ty, |x, y| x.partial_cmp(&y).is_some()),
                "nan" => row!($ty, |x, y| x.partial_cmp(&y).is_none()),
                _ => return None,
            })
        }
    };
}
floats!(float32, f32);
floats!(float64, f64);
floats!(half16, f16);
floats!(bfloat16, bf16);

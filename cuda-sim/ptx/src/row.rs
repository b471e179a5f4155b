//! A register of a warp: one value for each of its 32 lanes, and functions on whole registers.
//!
//! A register's bits above its type's size are unspecified: readers take only as many low bits as they need.

use half::{bf16, f16};

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// One register of a warp.
pub(crate) type Row = [u64; LANES];

pub(crate) type Unary = fn(&Row) -> Row;
pub(crate) type Binary = fn(&Row, &Row) -> Row;
pub(crate) type Ternary = fn(&Row, &Row, &Row) -> Row;
pub(crate) type Quaternary = fn(&Row, &Row, &Row, &Row) -> Row;

/// A value that a register can hold.
pub(crate) trait Value: Copy {
    /// Takes the value from the low bits of a register.
    fn take(bits: u64) -> Self;
    /// The bits of the value in a register.
    fn put(self) -> u64;
}

macro_rules! integer_values {
    ($($ty:ident as $unsigned:ident),*) => {$(
        impl Value for $ty {
            fn take(bits: u64) -> Self {
                bits as Self
            }
            fn put(self) -> u64 {
                u64::from(self as $unsigned)
            }
        }
    )*};
}
integer_values!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

impl Value for f32 {
    fn take(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    fn put(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for f64 {
    fn take(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn put(self) -> u64 {
        self.to_bits()
    }
}

impl Value for f16 {
    fn take(bits: u64) -> Self {
        Self::from_bits(bits as u16)
    }
    fn put(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for bf16 {
    fn take(bits: u64) -> Self {
        Self::from_bits(bits as u16)
    }
    fn put(self) -> u64 {
        u64::from(self.to_bits())
    }
}

impl Value for bool {
    fn take(bits: u64) -> Self {
        bits & 1 != 0
    }
    fn put(self) -> u64 {
        u64::from(self)
    }
}

/// A function on rows from an expression on values of one type: `row!(u32, |x, y| x.wrapping_add(y))`.
macro_rules! row {
    ($ty:ty, |$x:ident| $e:expr) => {{
        fn lanes(a: &$crate::row::Row) -> $crate::row::Row {
            std::array::from_fn(|i| {
                let $x = <$ty as $crate::row::Value>::take(a[i]);
                $crate::row::Value::put($e)
            })
        }
        lanes as $crate::row::Unary
    }};
    ($ty:ty, |$x:ident, $y:ident| $e:expr) => {{
        fn lanes(a: &$crate::row::Row, b: &$crate::row::Row) -> $crate::row::Row {
            std::array::from_fn(|i| {
                let $x = <$ty as $crate::row::Value>::take(a[i]);
                let $y = <$ty as $crate::row::Value>::take(b[i]);
                $crate::row::Value::put($e)
            })
        }
        lanes as $crate::row::Binary
    }};
    ($ty:ty, |$x:ident, $y:ident, $z:ident| $e:expr) => {{
        fn lanes(a: &$crate::row::Row, b: &$crate::row::Row, c: &$crate::row::Row) -> $crate::row::Row {
            std::array::from_fn(|i| {
                let $x = <$ty as $crate::row::Value>::take(a[i]);
                let $y = <$ty as $crate::row::Value>::take(b[i]);
                let $z = <$ty as $crate::row::Value>::take(c[i]);
                $crate::row::Value::put($e)
            })
        }
        lanes as $crate::row::Ternary
    }};
}

/// Chooses `row!` for each integer type of 16 to 64 bits; `None` for other types.
macro_rules! integers {
    ($ty:expr, |$($x:ident),+| $e:expr) => {{
        use $crate::types::Type as T;
        match $ty {
            T::B16 | T::U16 => Some($crate::row::row!(u16, |$($x),+| $e)),
            T::B32 | T::U32 => Some($crate::row::row!(u32, |$($x),+| $e)),
            T::B64 | T::U64 => Some($crate::row::row!(u64, |$($x),+| $e)),
            T::S16 => Some($crate::row::row!(i16, |$($x),+| $e)),
            T::S32 => Some($crate::row::row!(i32, |$($x),+| $e)),
            T::S64 => Some($crate::row::row!(i64, |$($x),+| $e)),
            _ => None,
        }
    }};
}

pub(crate) use {integers, row};

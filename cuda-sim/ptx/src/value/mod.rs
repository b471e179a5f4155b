//! Functions of instructions on rows, chosen by name and type when a module is parsed.

pub(crate) mod atomic;
pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod double;
pub(crate) mod float;
pub(crate) mod half_precision;
pub(crate) mod integer;
pub(crate) mod rounding;

//! Payloads between ranks: f32 elements or bytes, shared within a process.

use std::sync::Arc;

use super::call::{Call, CollectiveError};

/// Data from one rank for another.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Values of rows, gradients or parameters.
    Floats(Arc<Vec<f32>>),
    /// Encoded plans and identifiers.
    Bytes(Arc<Vec<u8>>),
}

impl From<Vec<f32>> for Payload {
    fn from(values: Vec<f32>) -> Self {
        Self::Floats(Arc::new(values))
    }
}

impl From<Vec<u8>> for Payload {
    fn from(values: Vec<u8>) -> Self {
        Self::Bytes(Arc::new(values))
    }
}

impl Payload {
    /// Size of the payload in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Floats(values) => size_of_val(values.as_slice()),
            Self::Bytes(values) => values.len(),
        }
    }

    /// A description of type and size, for errors.
    fn describe(&self) -> String {
        match self {
            Self::Floats(values) => format!("{} f32 elements", values.len()),
            Self::Bytes(values) => format!("{} bytes", values.len()),
        }
    }
}

/// The elements of a part that has to have `len` of them.
pub(super) fn floats<'a>(
    call: &Call,
    rank: usize,
    part: &'a Payload,
    len: usize,
) -> Result<&'a [f32], CollectiveError> {
    match part {
        Payload::Floats(values) if values.len() == len => Ok(values),
        other => Err(malformed(call, rank, other, format!("{len} f32 elements"))),
    }
}

/// The elements of a part, none where it has bytes.
#[cfg(test)]
pub(super) fn floats_of(part: &Payload) -> &[f32] {
    match part {
        Payload::Floats(values) => values,
        Payload::Bytes(_) => &[],
    }
}

/// The elements of a part of any length.
pub(super) fn shared_floats(call: &Call, rank: usize, part: &Payload) -> Result<Arc<Vec<f32>>, CollectiveError> {
    match part {
        Payload::Floats(values) => Ok(Arc::clone(values)),
        other => Err(malformed(call, rank, other, "f32 elements".to_owned())),
    }
}

/// The elements of a part of whole rows.
pub(super) fn shared_rows(
    call: &Call,
    rank: usize,
    part: &Payload,
    width: usize,
) -> Result<Arc<Vec<f32>>, CollectiveError> {
    let values = shared_floats(call, rank, part)?;
    if values.len().checked_rem(width).unwrap_or(values.len()) == 0 {
        return Ok(values);
    }
    Err(malformed(call, rank, part, format!("rows of {width} f32 elements")))
}

/// The bytes of a part.
pub(super) fn bytes(call: &Call, rank: usize, part: Option<&Payload>) -> Result<Arc<Vec<u8>>, CollectiveError> {
    match part {
        Some(Payload::Bytes(values)) => Ok(Arc::clone(values)),
        Some(other) => Err(malformed(call, rank, other, "bytes".to_owned())),
        None => {
            let (found, expected) = ("nothing from this rank".to_owned(), "bytes".to_owned());
            Err(CollectiveError::Malformed { rank, call: call.clone(), found, expected })
        }
    }
}

fn malformed(call: &Call, rank: usize, found: &Payload, expected: String) -> CollectiveError {
    CollectiveError::Malformed { rank, call: call.clone(), found: found.describe(), expected }
}

//! Metadata values of a GGUF file.

use std::io::BufRead;

use super::error::Error;
use super::reader::Reader;

/// Arrays of arrays below this depth are refused.
const MAX_DEPTH: usize = 16;

pub(super) enum Value {
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    Text(String),
    Texts(Vec<String>),
    Numbers(Numbers),
    /// An array of arrays, which no supported key uses.
    Nested,
}

/// An array of numbers or truth values, as stored: bytes cost one byte each.
pub(super) struct Numbers {
    kind: Kind,
    bytes: Vec<u8>,
}

/// The types of the format, scalars first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
    Bool,
    Text,
    Array,
}

impl Value {
    /// A whole number that is not negative.
    pub(super) fn integer(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(value) => Some(value),
            Self::Signed(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// The number that was meant before it was stored in single precision: 1e-5, not 9.999999747378752e-6.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::F32(value) => value.to_string().parse().ok(),
            Self::F64(value) => Some(*value),
            other => other.integer().map(|value| value as f64),
        }
    }

    /// Whether it is an array without elements, of whatever type.
    pub(super) fn is_empty_array(&self) -> bool {
        match self {
            Self::Texts(texts) => texts.is_empty(),
            Self::Numbers(numbers) => numbers.bytes.is_empty(),
            _ => false,
        }
    }

    /// The elements of an array of truth values, which some writers store as integers.
    pub(super) fn flags(&self) -> Option<Vec<bool>> {
        let flag = |value: Self| match value {
            Self::Bool(flag) => Some(flag),
            other => other.integer().filter(|&value| value <= 1).map(|value| value == 1),
        };
        self.numbers()?.map(flag).collect()
    }

    /// The elements of an array of numbers.
    pub(super) fn numbers(&self) -> Option<impl Iterator<Item = Self>> {
        let numbers = match self {
            Self::Numbers(numbers) => Some(numbers),
            _ => None,
        };
        numbers.map(Numbers::values)
    }
}

impl Numbers {
    fn values(&self) -> impl Iterator<Item = Value> {
        // An array is read in whole elements, so that none is left over.
        self.bytes.chunks_exact(self.kind.least_bytes() as usize).map(|bytes| decode(self.kind, bytes))
    }
}

impl Kind {
    fn read(reader: &mut Reader<impl BufRead>) -> Result<Self, Error> {
        Ok(match reader.u32()? {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            8 => Self::Text,
            9 => Self::Array,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            other => return Err(format!("value type {other} is unknown").into()),
        })
    }

    /// Bytes of a scalar; the fewest that any other value takes in the file.
    fn least_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Text => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::Array => 8,
        }
    }
}

/// Reads a value and its type.
pub(super) fn read(reader: &mut Reader<impl BufRead>) -> Result<Value, Error> {
    match Kind::read(reader)? {
        Kind::Text => text(reader).map(Value::Text),
        Kind::Array => array(reader),
        kind => {
            let bytes = reader.bytes(kind.least_bytes())?;
            checked(kind, bytes).map(|bytes| decode(kind, &bytes))
        }
    }
}

/// Some writers store text that is not UTF-8: what is wrong in it becomes U+FFFD.
fn text(reader: &mut Reader<impl BufRead>) -> Result<String, Error> {
    let bytes = reader.string()?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn array(reader: &mut Reader<impl BufRead>) -> Result<Value, Error> {
    let kind = Kind::read(reader)?;
    let count = reader.count(kind.least_bytes())?;
    match kind {
        Kind::Text => {
            let mut texts = Vec::with_capacity(count);
            for _ in 0..count {
                texts.push(text(reader)?);
            }
            Ok(Value::Texts(texts))
        }
        Kind::Array => {
            for _ in 0..count {
                skip_array(reader, 1)?;
            }
            Ok(Value::Nested)
        }
        kind => {
            let bytes = reader.bytes(count as u64 * kind.least_bytes())?;
            Ok(Value::Numbers(Numbers { kind, bytes: checked(kind, bytes)? }))
        }
    }
}

fn skip_array(reader: &mut Reader<impl BufRead>, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(format!("arrays are nested more than {MAX_DEPTH} deep").into());
    }
    let kind = Kind::read(reader)?;
    let count = reader.count(kind.least_bytes())?;
    match kind {
        Kind::Array => (0..count).try_for_each(|_| skip_array(reader, depth + 1)),
        Kind::Text => (0..count).try_for_each(|_| reader.string().map(drop)),
        kind => reader.bytes(count as u64 * kind.least_bytes()).map(drop),
    }
}

/// Truth values are 0 or 1.
fn checked(kind: Kind, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    match bytes.iter().find(|&&byte| kind == Kind::Bool && byte > 1) {
        Some(byte) => Err(format!("truth value {byte}").into()),
        None => Ok(bytes),
    }
}

/// A scalar from as many bytes as its type has.
fn decode(kind: Kind, bytes: &[u8]) -> Value {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(wide);
    match kind {
        Kind::I8 => Value::Signed((unsigned as i8).into()),
        Kind::I16 => Value::Signed((unsigned as i16).into()),
        Kind::I32 => Value::Signed((unsigned as i32).into()),
        Kind::I64 => Value::Signed(unsigned as i64),
        Kind::F32 => Value::F32(f32::from_bits(unsigned as u32)),
        Kind::F64 => Value::F64(f64::from_bits(unsigned)),
        Kind::Bool => Value::Bool(unsigned == 1),
        _ => Value::Unsigned(unsigned),
    }
}

//! Lists of JSON numbers that take eight bytes per number.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers as they were written: integers up to the first number that is not one, floats from there on.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    /// Numbers before the first float.
    integers: Vec<i64>,
    floats: Vec<f64>,
}

impl Numbers {
    /// Returns all numbers as integers, or the index of the first that is not a 64-bit integer.
    pub fn integers(&self) -> Result<&[i64], usize> {
        if self.floats.is_empty() { Ok(&self.integers) } else { Err(self.integers.len()) }
    }

    /// Returns all numbers as floats.
    pub fn floats(&self) -> impl Iterator<Item = f64> + '_ {
        self.integers.iter().map(|&integer| integer as f64).chain(self.floats.iter().copied())
    }
}

impl From<Vec<i64>> for Numbers {
    fn from(integers: Vec<i64>) -> Self {
        Self { integers, floats: Vec::new() }
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(floats: Vec<f64>) -> Self {
        Self { integers: Vec::new(), floats }
    }
}

/// A number that is being read.
enum Read {
    Integer(i64),
    Float(f64),
}

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Read;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON number")
            }

            fn visit_i64<E>(self, value: i64) -> Result<Read, E> {
                Ok(Read::Integer(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Read, E> {
                Ok(i64::try_from(value).map_or(Read::Float(value as f64), Read::Integer))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Read, E> {
                Ok(Read::Float(value))
            }
        }

        deserializer.deserialize_any(Number)
    }
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
                let mut numbers = Numbers { integers: Vec::new(), floats: Vec::new() };
                while let Some(number) = list.next_element()? {
                    match number {
                        Read::Integer(integer) if numbers.floats.is_empty() => numbers.integers.push(integer),
                        Read::Integer(integer) => numbers.floats.push(integer as f64),
                        Read::Float(float) => numbers.floats.push(float),
                    }
                }
                Ok(numbers)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;

        let mut list = serializer.serialize_seq(Some(self.integers.len() + self.floats.len()))?;
        self.integers.iter().try_for_each(|integer| list.serialize_element(integer))?;
        self.floats.iter().try_for_each(|float| list.serialize_element(float))?;
        list.end()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(text: &str) -> Numbers {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn integers_stay_exact() {
        let text = "[1,-9223372036854775808,9223372036854775807]";
        assert_eq!(read(text).integers().unwrap(), [1, i64::MIN, i64::MAX]);
        assert_eq!(serde_json::to_string(&read(text)).unwrap(), text);
        assert_eq!(read("[]").integers().unwrap(), [0_i64; 0]);
    }

    #[test]
    fn the_first_float_is_found() {
        for text in ["[1,2,4.5,3]", "[1,2,4.0]", "[1,2,9223372036854775808]", "[1,2,-0,7]"] {
            assert_eq!(read(text).integers(), Err(2), "{text}");
            assert_eq!(read(&serde_json::to_string(&read(text)).unwrap()), read(text));
        }
        assert_eq!(read("[1,0.5,3]").floats().collect::<Vec<_>>(), [1.0, 0.5, 3.0]);
    }

    #[test]
    fn anything_else_is_no_number() {
        for text in ["[null]", "[\"1\"]", "[[1]]", "1", "[1e999]"] {
            assert!(serde_json::from_str::<Numbers>(text).is_err(), "{text}");
        }
    }
}

//! The JSON header of a safetensors file. The crate's own type holds every number in a buffer of variants first, which
//! takes up to fifty times the header's size; this one takes a few times as much.

use std::collections::BTreeMap;
use std::fmt;

use safetensors::Dtype;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// The tensors of a file by name.
pub(super) struct Infos(pub(super) BTreeMap<String, Info>);

/// A tensor of the file.
#[derive(Deserialize)]
pub(super) struct Info {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// First byte and end, from the header's end.
    pub(super) data_offsets: (u64, u64),
}

impl Infos {
    /// Bytes of all tensors, which follow each other without gaps; or what is wrong with one.
    pub(super) fn data_length(&self) -> Result<u64, String> {
        let mut tensors: Vec<_> = self.0.iter().collect();
        tensors.sort_by_key(|(_, info)| info.data_offsets);
        let mut length = 0;
        for (name, info) in tensors {
            let (first, end) = info.data_offsets;
            if first != length || end < first {
                return Err(format!("tensor {name} is at bytes {first} to {end}, expected from {length}"));
            }
            if info.bytes() != Some(end - first) {
                let (dtype, shape) = (info.dtype, &info.shape);
                return Err(format!("tensor {name} has {} bytes for {dtype:?} of shape {shape:?}", end - first));
            }
            length = end;
        }
        Ok(length)
    }
}

impl Info {
    /// Bytes of its elements, if they are whole and can be counted.
    fn bytes(&self) -> Option<u64> {
        let elements =
            self.shape.iter().try_fold(1_u64, |all, &extent| all.checked_mul(u64::try_from(extent).ok()?))?;
        let bits = elements.checked_mul(self.dtype.bitsize() as u64)?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }
}

impl<'de> Deserialize<'de> for Infos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Infos;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Infos, A::Error> {
        let mut infos = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "__metadata__" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let info = map.next_value().map_err(|e| A::Error::custom(format!("tensor {name}: {e}")))?;
            if infos.contains_key(&name) {
                return Err(A::Error::custom(format!("tensor {name} occurs twice")));
            }
            infos.insert(name, info);
        }
        Ok(Infos(infos))
    }
}

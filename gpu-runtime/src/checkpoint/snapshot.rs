//! Run snapshots: the whole state of a run in a folder, for recovery, not for clients. The manifest has the length and
//! checksum of every tensor file, so that damage is detected before it is trained on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use trainyard_protocol::{OpError, RunSpec};

use super::{
    Elements, NamedTensor, TensorMap, io_error, malformed, read_tensors, unwritable, write_json, write_tensors,
};
use crate::config::LoadError;
use crate::interrupt;

const MANIFEST: &str = "run.json";
const FORMAT: u32 = 1;
/// Bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// A kind of tensors of a run. A snapshot has each for all parameters of the run, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The parameters in f32.
    Masters,
    FirstMoments,
    SecondMoments,
    Gradient,
}

impl Kind {
    fn file(self) -> &'static str {
        match self {
            Self::Masters => "masters.safetensors",
            Self::FirstMoments => "first_moments.safetensors",
            Self::SecondMoments => "second_moments.safetensors",
            Self::Gradient => "gradient.safetensors",
        }
    }
}

#[derive(Serialize, Deserialize)]
struct SnapshotManifest {
    format: u32,
    spec: RunSpec,
    step: u64,
    files: BTreeMap<Kind, FileSum>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileSum {
    bytes: u64,
    crc32: u32,
}

/// A run as it was read.
#[derive(Debug)]
pub(crate) struct RunSnapshot {
    /// Spec of the trained parameters.
    pub spec: RunSpec,
    /// Number of optimizer steps taken.
    pub step: u64,
    /// Tensors of each kind.
    pub tensors: BTreeMap<Kind, TensorMap>,
}

/// Writes a run into the folder `dir`. Elements keep their bits.
pub(crate) fn write_run<T: Elements + ?Sized>(
    dir: &Path,
    spec: &RunSpec,
    step: u64,
    tensors: &BTreeMap<Kind, Vec<NamedTensor<'_, T>>>,
) -> Result<(), OpError> {
    let mut files = BTreeMap::new();
    for (kind, tensors) in tensors {
        let path = dir.join(kind.file());
        write_tensors(&path, tensors)?;
        files.insert(*kind, file_sum(&path).map_err(|error| unwritable(&path, &error))?);
    }
    write_json(&dir.join(MANIFEST), &SnapshotManifest { format: FORMAT, spec: spec.clone(), step, files })
}

/// Reads a run from the folder `dir`. What is missing, damaged or of another format is refused by name.
pub(crate) fn read_run(dir: &Path) -> Result<RunSnapshot, LoadError> {
    let path = dir.join(MANIFEST);
    let bytes = std::fs::read(&path).map_err(|error| io_error(&path, error))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| malformed(&path, error))?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    if format != Some(u64::from(FORMAT)) {
        return Err(malformed(&path, format_args!("has format {format:?}, this version reads {FORMAT}")));
    }
    let manifest: SnapshotManifest = serde_json::from_value(value).map_err(|error| malformed(&path, error))?;
    let mut tensors = BTreeMap::new();
    for (kind, expected) in manifest.files {
        let path = dir.join(kind.file());
        let found = file_sum(&path).map_err(|error| io_error(&path, error))?;
        if found != expected {
            return Err(malformed(&path, format_args!("is damaged: it has {found:?}, expected {expected:?}")));
        }
        tensors.insert(kind, read_tensors(&path)?);
    }
    Ok(RunSnapshot { spec: manifest.spec, step: manifest.step, tensors })
}

fn file_sum(path: &Path) -> std::io::Result<FileSum> {
    let mut file = File::open(path)?;
    let (mut hasher, mut bytes, mut chunk) = (crc32fast::Hasher::new(), 0, vec![0; CHUNK]);
    loop {
        interrupt::check()?;
        match file.read(&mut chunk)? {
            0 => return Ok(FileSum { bytes, crc32: hasher.finalize() }),
            read => {
                hasher.update(&chunk[..read]);
                bytes += read as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;
    use trainyard_protocol::Optimizer;

    use super::*;

    fn spec() -> RunSpec {
        RunSpec {
            base_model: "m".into(),
            lora: None,
            optimizer: Optimizer::AdamW,
            head: trainyard_protocol::ModelHead::Unembedding,
        }
    }

    fn write(dir: &Path) {
        let odd = [f32::NAN, -0.0, 1e-42, 3.5];
        let one = |name: &str| vec![(name.to_owned(), vec![2, 2], &odd[..])];
        let tensors = BTreeMap::from([(Kind::Masters, one("a")), (Kind::Gradient, one("a"))]);
        write_run(dir, &spec(), 7, &tensors).unwrap();
    }

    #[test]
    fn a_run_keeps_its_bits() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path());
        let run = read_run(dir.path()).unwrap();
        assert_eq!((&run.spec, run.step), (&spec(), 7));
        assert_eq!(run.tensors.keys().copied().collect::<Vec<_>>(), [Kind::Masters, Kind::Gradient]);
        let bits: Vec<u32> = run.tensors[&Kind::Gradient]["a"].1.iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [f32::NAN, -0.0, 1e-42, 3.5].map(f32::to_bits));
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_run(dir.path()).unwrap_err().to_string().contains(MANIFEST));
        write(dir.path());
        let manifest = std::fs::read_to_string(dir.path().join(MANIFEST)).unwrap();
        std::fs::write(dir.path().join(MANIFEST), manifest.replace("\"format\": 1", "\"format\": 9")).unwrap();
        assert!(read_run(dir.path()).unwrap_err().to_string().contains("has format Some(9)"));
        std::fs::write(dir.path().join(MANIFEST), manifest).unwrap();
        std::fs::remove_file(dir.path().join("gradient.safetensors")).unwrap();
        assert!(read_run(dir.path()).unwrap_err().to_string().contains("gradient.safetensors"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_damage_is_noticed(cut in 0usize..1000, at in 0usize..1000, mask in 1u8.., masters in any::<bool>()) {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path());
            let kind = if masters { Kind::Masters } else { Kind::Gradient };
            let path = dir.path().join(kind.file());
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..cut % bytes.len()]).unwrap();
            prop_assert!(read_run(dir.path()).is_err());
            let mut flipped = bytes.clone();
            flipped[at % bytes.len()] ^= mask;
            std::fs::write(&path, &flipped).unwrap();
            prop_assert!(read_run(dir.path()).unwrap_err().to_string().contains("is damaged"));
        }
    }
}

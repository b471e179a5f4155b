//! Tensors in safetensors files: an 8-byte header length, a JSON header, then the elements, little-endian. Reading and
//! writing are streamed; only f32 is supported.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use trainyard_protocol::OpError;

use super::elements::Elements;
use super::{io_error, malformed, unwritable};
use crate::config::LoadError;
use crate::interrupt;

/// A tensor to write: its name, its extents, its elements in row-major order.
pub(crate) type NamedTensor<'a, T = [f32]> = (String, Vec<usize>, &'a T);
/// Tensors that were read: extents and elements by name.
pub(crate) type TensorMap = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Longest header, as the format's own library has it.
pub(super) const MAX_HEADER: u64 = 100_000_000;
/// Elements that are converted at a time.
const CHUNK: usize = 16_384;
const METADATA: &str = "__metadata__";

/// A tensor's entry in the header.
#[derive(Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    pub(super) data_offsets: (u64, u64),
}

/// Writes tensors in the order given. Elements keep their bits. The file is not synced. An interrupt of this thread's work
/// leaves a file that is not complete.
///
/// A repeated name is an error of the server, and so is a number of elements, announced or written, that differs from
/// the product of the extents.
pub(crate) fn write_tensors<T: Elements + ?Sized>(path: &Path, tensors: &[NamedTensor<'_, T>]) -> Result<(), OpError> {
    let header = header_of(tensors)?;
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        let mut bytes = Vec::with_capacity(4 * CHUNK);
        for (name, _, values) in tensors {
            let mut left = values.count();
            let differs =
                || io::Error::other(format!("tensor {name} must have the {} elements of its shape", values.count()));
            values.for_each_chunk(&mut |chunk| {
                left = left.checked_sub(chunk.len()).ok_or_else(differs)?;
                chunk.chunks(CHUNK).try_for_each(|part| {
                    interrupt::check()?;
                    bytes.clear();
                    bytes.extend(part.iter().flat_map(|value| value.to_le_bytes()));
                    file.write_all(&bytes)
                })
            })?;
            // The header says where each tensor ends: a file with fewer elements would be read as another one.
            if left > 0 {
                return Err(differs());
            }
        }
        file.flush()
    };
    write().map_err(|error| unwritable(path, &error))
}

fn header_of<T: Elements + ?Sized>(tensors: &[NamedTensor<'_, T>]) -> Result<Vec<u8>, OpError> {
    let mut entries = BTreeMap::new();
    let mut start = 0u64;
    for (name, shape, values) in tensors {
        let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        if elements != Some(values.count()) {
            let count = values.count();
            return Err(OpError::server(format!("tensor {name} of shape {shape:?} has {count} elements")));
        }
        let end = start + 4 * values.count() as u64;
        let entry = Entry { dtype: "F32".to_owned(), shape: shape.clone(), data_offsets: (start, end) };
        let entry = serde_json::to_value(entry).map_err(|error| OpError::server(error.to_string()))?;
        if name == METADATA || entries.insert(name.as_str(), entry).is_some() {
            return Err(OpError::server(format!("tensor name {name} is taken")));
        }
        start = end;
    }
    // transformers refuses files that do not say this.
    entries.insert(METADATA, serde_json::json!({"format": "pt"}));
    let mut header = serde_json::to_vec(&entries).map_err(|error| OpError::server(error.to_string()))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// Reads all tensors of a file. Whatever is in the file, no more is allocated than it is long; a header that
/// does not fit the file is refused, and so are other element types.
pub(crate) fn read_tensors(path: &Path) -> Result<TensorMap, LoadError> {
    let mut file = File::open(path).map_err(|error| io_error(path, error))?;
    let length = file.metadata().map_err(|error| io_error(path, error))?.len();
    let (entries, data_length) = read_header(path, &mut file, length, MAX_HEADER)?;
    let mut tensors = TensorMap::new();
    let mut end = 0;
    for (name, entry) in entries {
        let bytes = checked_size(path, &name, &entry, end)?;
        end = entry.data_offsets.1;
        if end > data_length {
            return Err(malformed(path, format_args!("is cut short within tensor {name}")));
        }
        let values = read_values(&mut file, bytes / 4).map_err(|error| io_error(path, error))?;
        tensors.insert(name, (entry.shape, values));
    }
    if end != data_length {
        return Err(malformed(path, format_args!("has {} bytes after its tensors", data_length - end)));
    }
    Ok(tensors)
}

/// The entries in the order of their data, and the length of the data, of a file of `length` bytes whose header may take `most`.
pub(super) fn read_header(
    path: &Path,
    file: &mut impl Read,
    length: u64,
    most: u64,
) -> Result<(Vec<(String, Entry)>, u64), LoadError> {
    let mut prefix = [0; 8];
    if length < 8 {
        return Err(malformed(path, "is too short for a header"));
    }
    file.read_exact(&mut prefix).map_err(|error| io_error(path, error))?;
    let header_length = u64::from_le_bytes(prefix);
    if header_length > most || header_length > length - 8 {
        return Err(malformed(path, format_args!("has a header of {header_length} bytes in a file of {length}")));
    }
    let mut header = vec![0; header_length as usize];
    file.read_exact(&mut header).map_err(|error| io_error(path, error))?;
    let bad = |error: serde_json::Error| malformed(path, format_args!("its header is not understood: {error}"));
    let mut entries: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&header).map_err(bad)?;
    entries.remove(METADATA);
    let parse = |(name, value)| Ok((name, serde_json::from_value::<Entry>(value).map_err(bad)?));
    let mut entries = entries.into_iter().map(parse).collect::<Result<Vec<_>, LoadError>>()?;
    entries.sort_by_key(|(_, entry)| entry.data_offsets);
    Ok((entries, length - 8 - header_length))
}

/// Bytes of a tensor whose data must begin at `start`.
fn checked_size(path: &Path, name: &str, entry: &Entry, start: u64) -> Result<u64, LoadError> {
    if entry.dtype != "F32" {
        return Err(malformed(path, format_args!("tensor {name} is {}, expected F32", entry.dtype)));
    }
    let size = entry.shape.iter().try_fold(4u64, |product, &extent| product.checked_mul(extent as u64));
    let (from, to) = entry.data_offsets;
    match size {
        Some(size) if from == start && to.checked_sub(from) == Some(size) => Ok(size),
        _ => {
            let Entry { shape, data_offsets, .. } = entry;
            Err(malformed(path, format_args!("tensor {name} of shape {shape:?} cannot be at {data_offsets:?}")))
        }
    }
}

fn read_values(file: &mut File, count: u64) -> std::io::Result<Vec<f32>> {
    let mut values = Vec::with_capacity(count as usize);
    let mut bytes = vec![0; 4 * CHUNK.min(count as usize)];
    let mut left = 4 * count as usize;
    while left > 0 {
        let size = left.min(bytes.len());
        let piece = &mut bytes[..size];
        interrupt::check()?;
        file.read_exact(piece)?;
        left -= size;
        values.extend(piece.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;
    use trainyard_protocol::SaveTarget;

    use super::*;
    use crate::checkpoint::{unreadable, write_atomically};
    use crate::interrupt::{Interrupt, interruptible};

    fn example() -> (Vec<f32>, Vec<f32>) {
        let odd = [f32::NAN, -0.0, f32::MIN_POSITIVE / 3.0, f32::INFINITY, 1.5];
        (odd.to_vec(), (0..40_000).map(|i| (i as f32).sin()).collect())
    }

    fn write(path: &Path) {
        let (odd, long) = example();
        let tensors: [NamedTensor<'_>; 4] = [
            ("z".into(), vec![5], &odd),
            ("a \"b\"".into(), vec![200, 200], &long),
            ("empty".into(), vec![0, 3], &[]),
            ("scalar".into(), vec![], &[2.5]),
        ];
        write_tensors(path, &tensors).unwrap();
    }

    #[test]
    fn round_trip_keeps_bits_and_the_format() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        write(&path);
        let (odd, long) = example();
        let read = read_tensors(&path).unwrap();
        assert_eq!(read.len(), 4);
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((read["z"].0.as_slice(), bits(&read["z"].1)), ([5].as_slice(), bits(&odd)));
        assert_eq!(read["a \"b\""], (vec![200, 200], long));
        assert_eq!((&read["empty"], &read["scalar"]), (&(vec![0, 3], vec![]), &(vec![], vec![2.5])));
        // The format's own library agrees.
        let bytes = std::fs::read(&path).unwrap();
        let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(theirs.tensor("a \"b\"").unwrap().shape(), [200, 200]);
        assert_eq!(theirs.tensor("scalar").unwrap().data(), 2.5f32.to_le_bytes());
        let (_, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(metadata.metadata().as_ref().unwrap()["format"], "pt");
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        let wrong: [NamedTensor<'_>; 1] = [("a".into(), vec![2, 2], &[1.0])];
        assert!(write_tensors(&path, &wrong).unwrap_err().message.contains("tensor a of shape [2, 2] has 1 elements"));
        let twice: [NamedTensor<'_>; 2] = [("a".into(), vec![1], &[1.0]), ("a".into(), vec![1], &[1.0])];
        assert!(write_tensors(&path, &twice).unwrap_err().message.contains("name a is taken"));
        assert!(
            write_tensors(&dir.path().join("no/t"), &[] as &[NamedTensor<'_>])
                .unwrap_err()
                .message
                .contains("cannot be written: t")
        );
    }

    /// An interrupt that is set from the question of this index on, and how often it was asked.
    fn interrupt_at(index: usize) -> (Interrupt, Arc<AtomicUsize>) {
        let asked = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&asked);
        (Interrupt::new(move || count.fetch_add(1, Ordering::Relaxed) >= index), asked)
    }

    #[test]
    fn reading_and_writing_end_between_pieces() {
        let root = tempfile::tempdir().unwrap();
        let save = |interrupt: Interrupt, name: &str| {
            let target = SaveTarget { dir: root.path().join(name), overwrite: false };
            let fill = |dir: &Path| write_tensors(&dir.join("t"), &[("a".into(), vec![200, 200], &example().1[..])]);
            interruptible(interrupt, || write_atomically(&target, fill))
        };
        let (never, asked) = interrupt_at(usize::MAX);
        save(never, "whole").unwrap();
        let pieces = asked.load(Ordering::Relaxed);
        assert_eq!(pieces, 3);
        for at in 0..pieces {
            let (interrupt, asked) = interrupt_at(at);
            assert!(save(interrupt, "cut").unwrap_err().message.contains("its session ended"));
            assert_eq!(asked.load(Ordering::Relaxed), at + 1);
            assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1, "a folder that is not complete is left");
            let (interrupt, asked) = interrupt_at(at);
            let error = interruptible(interrupt, || read_tensors(&root.path().join("whole/t"))).unwrap_err();
            assert!(unreadable(&error).message.contains("its session ended"), "{error}");
            assert_eq!(asked.load(Ordering::Relaxed), at + 1);
        }
    }

    /// Elements whose number differs from the announced one.
    struct Announced(usize, Vec<f32>);

    impl Elements for Announced {
        fn count(&self) -> usize {
            self.0
        }

        fn for_each_chunk(&self, sink: &mut crate::backend::ChunkSink<'_>) -> io::Result<()> {
            self.1.chunks(3).try_for_each(sink)
        }
    }

    #[test]
    fn a_file_has_as_many_elements_as_its_header_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        let write = |written: usize| {
            let values = Announced(8, vec![1.0; written]);
            write_tensors(
                &path,
                &[("a".into(), vec![2, 4], &values), ("b".into(), vec![8], &Announced(8, vec![2.0; 8]))],
            )
        };
        write(8).unwrap();
        for written in [0, 7, 9, 100] {
            let error = write(written).unwrap_err();
            assert!(error.message.contains("tensor a must have the 8 elements of its shape"), "{error}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.safetensors");
        let refused = |header: &str, data: &[u8]| {
            let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat();
            std::fs::write(&path, bytes).unwrap();
            read_tensors(&path).unwrap_err().to_string()
        };
        let bf16 = refused(r#"{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}"#, &[0; 2]);
        assert!(bf16.contains("tensor a is BF16"), "{bf16}");
        let huge = r#"{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}}"#;
        assert!(refused(huge, &[0; 4]).contains("cannot be at"));
        let hole = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#;
        assert!(refused(hole, &[0; 8]).contains("cannot be at"));
        let long = r#"{"a":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}"#;
        assert!(refused(long, &[0; 4]).contains("cut short within tensor a"));
        assert!(refused("{}", &[0; 3]).contains("3 bytes after"));
        assert!(refused("[]", &[]).contains("not understood"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn damaged_files_never_panic(cut in 0usize..161_000, flip in 0usize..400, mask in 1u8..) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("t.safetensors");
            write(&path);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..cut.min(bytes.len() - 1)]).unwrap();
            prop_assert!(read_tensors(&path).is_err());
            let mut flipped = bytes.clone();
            flipped[flip] ^= mask;
            std::fs::write(&path, &flipped).unwrap();
            let _ = read_tensors(&path);
        }
    }
}

//! Files that no converter has written. Whatever they contain, loading returns a model or an error that names the
//! place. It never panics, and never holds more than a few times the file's size.

use std::path::Path;

use trainyard_test_support::heap;

use crate::config::LoadError;
use crate::load::load;

mod config;
mod fuzz;
mod gguf;
mod safetensors;

/// Bytes that a loader may hold for each byte of the file.
const PER_BYTE: usize = 16;

/// Bytes that it may hold whatever the file's size: buffers, and the names of the parameters that the configuration
/// of a deep model needs.
const FIXED: usize = 8 << 20;

/// Loads what is at `path`, and reads every tensor if that works. `size` is that of the file under test.
fn attempt(path: &Path, size: usize) -> Result<(), LoadError> {
    let (loaded, peak) = heap::peak(|| load(path));
    let most = PER_BYTE * size + FIXED;
    assert!(peak <= most, "{peak} bytes held at once for a file of {size}, at most {most}");
    let source = loaded.inspect_err(|error| assert_names_its_place(error, path))?;
    for name in source.tensors.names() {
        let elements = source.tensors.shape(&name).into_iter().flatten().product::<usize>();
        assert_eq!(source.tensors.read(&name).map(|values| values.len()).ok(), Some(elements), "{name}");
    }
    Ok(())
}

/// The text of the refusal.
fn refusal(path: &Path, size: usize) -> String {
    attempt(path, size).unwrap_err().to_string()
}

fn assert_names_its_place(error: &LoadError, path: &Path) {
    let folder = path.to_str().unwrap();
    let named = match error {
        LoadError::Io { path, .. } | LoadError::Malformed { path, .. } => path.starts_with(folder),
        LoadError::Unsupported(what) | LoadError::MissingTensor(what) => !what.is_empty(),
        LoadError::WrongShape { name, .. } => !name.is_empty(),
        LoadError::Memory { .. }
        | LoadError::Blocks(_)
        | LoadError::Layout(_)
        | LoadError::Rank { .. }
        | LoadError::Device
        | LoadError::DeviceMemory => false,
    };
    assert!(named, "{error}");
}

#[test]
fn the_most_bytes_held_at_once_are_counted() {
    let work = || {
        // The optimizer may leave out an allocation that nothing reads.
        drop(std::hint::black_box(vec![0_u8; 5000]));
        vec![0_u8; 3000]
    };
    assert_eq!(heap::peak(work), (vec![0; 3000], 5000));
}

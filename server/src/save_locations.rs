//! Locations of saves in the storage.

use std::path::PathBuf;

use trainyard_protocol::{RequestId, RunId, TinkerPath};
use trainyard_scheduler::RequestKind;

/// The folder of a save, relative to the storage: `checkpoints/<run>/<segment>/<name>.<request>-<attempt>`. Each
/// attempt has its own folder, so a finished save is never overwritten.
pub(crate) fn checkpoint_location(path: &TinkerPath, request: &RequestId, attempt: u64) -> PathBuf {
    let folder = format!("{}.{}-{attempt:016x}", path.name, folder_name(request.as_str()));
    [CHECKPOINTS, &folder_name(path.run.as_str()), path.kind.segment(), &folder].iter().collect()
}

/// The folder of a run's snapshot, which recovery needs. Every attempt to save has its own folder.
pub(crate) fn snapshot_location(run: &RunId, kind: RequestKind, attempt: u64) -> PathBuf {
    ["snapshots", &folder_name(run.as_str()), &format!("{}-{attempt:016x}", kind.as_str())].iter().collect()
}

/// The folder of all checkpoints in the storage.
const CHECKPOINTS: &str = "checkpoints";

/// Makes a folder name of an id: every character that is unsafe in a file name is written as `%` and its bytes in
/// hexadecimal.
fn folder_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_save_has_a_folder_of_its_own_below_the_checkpoints() {
        let path: TinkerPath = "tinker://0c1f-2:train:0/sampler_weights/step-400".parse().unwrap();
        let request = RequestId::new("0c20");
        let expected = "checkpoints/0c1f-2%3atrain%3a0/sampler_weights/step-400.0c20-000000000000002a";
        assert_eq!(checkpoint_location(&path, &request, 42), PathBuf::from(expected));
        assert_ne!(checkpoint_location(&path, &request, 42), checkpoint_location(&path, &request, 43));
        let path: TinkerPath = "tinker://../weights/a".parse().unwrap();
        let expected = "checkpoints/%2e%2e/weights/a.%2e%2e%2fx-0000000000000000";
        assert_eq!(checkpoint_location(&path, &RequestId::new("../x"), 0), PathBuf::from(expected));
    }

    proptest! {
        #[test]
        fn different_runs_have_different_folders(a in "[a%:/.]{1,4}", b in "[a%:/.]{1,4}") {
            prop_assert_eq!(folder_name(&a) == folder_name(&b), a == b);
        }
    }
}

//! Encrypting all files of a folder.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::{AgeError, Recipient, encrypt};

/// Behind the names of encrypted files.
const SUFFIX: &str = "age";

/// Encrypts every file of a folder that contains only files: `name` becomes `name.age`. Returns the total bytes of the
/// encrypted files, which are synced together with the folder. If some files were encrypted by an earlier call, the
/// others are completed.
///
/// # Errors
/// Fails if reading or writing fails; some files are encrypted then and others are not.
pub fn encrypt_folder(folder: &Path, recipients: &[Recipient]) -> Result<u64, AgeError> {
    let mut size = 0;
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<Result<BTreeSet<_>, AgeError>>()?;
    for name in &names {
        let path = folder.join(name);
        if path.extension().is_some_and(|suffix| suffix == SUFFIX) {
            // Written by an earlier attempt, and complete when its plaintext is gone.
            if Path::new(name).file_stem().is_none_or(|plain| !names.contains(plain)) {
                size += fs::metadata(&path)?.len();
            }
            continue;
        }
        let mut encrypted = name.clone();
        encrypted.push(".");
        encrypted.push(SUFFIX);
        let mut file = BufWriter::new(File::create(folder.join(encrypted))?);
        size += encrypt(File::open(&path)?, &mut file, recipients)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::remove_file(&path)?;
    }
    File::open(folder)?.sync_all()?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::super::tests::RECIPIENT;
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_file_is_replaced_by_its_encryption() {
        let folder = tempfile::tempdir().unwrap();
        let recipients = [RECIPIENT.parse().unwrap()];
        let secret = b"weights".repeat(20_000);
        fs::write(folder.path().join("adapter_config.json"), &secret[..100]).unwrap();
        fs::write(folder.path().join("adapter_model.safetensors"), &secret).unwrap();
        let size = encrypt_folder(folder.path(), &recipients).unwrap();
        let expected = ["adapter_config.json.age", "adapter_model.safetensors.age"];
        assert_eq!(names(folder.path()), expected);
        let files = expected.map(|name| fs::read(folder.path().join(name)).unwrap());
        assert_eq!(files.iter().map(|file| file.len() as u64).sum::<u64>(), size);
        for file in &files {
            assert!(file.starts_with(b"age-encryption.org/v1\n-> X25519 "));
            assert!(!file.windows(7).any(|bytes| bytes == b"weights"));
        }
        // Repeated, as after an answer that was lost, it changes nothing; interrupted, it goes on.
        assert_eq!(encrypt_folder(folder.path(), &recipients).unwrap(), size);
        fs::write(folder.path().join("adapter_model.safetensors"), &secret).unwrap();
        let size = encrypt_folder(folder.path(), &recipients).unwrap();
        assert_eq!(names(folder.path()), expected);
        let sizes = expected.map(|name| fs::metadata(folder.path().join(name)).unwrap().len());
        assert_eq!(sizes.iter().sum::<u64>(), size);
        assert_eq!(fs::read(folder.path().join(expected[0])).unwrap(), files[0]);
    }
}

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use object_store::ObjectStore;
use tempfile::TempDir;

use super::*;

const BLOBS: Area = Area { root: "blobs", depth: 1 };
const CHECKPOINTS: Area = Area { root: "checkpoints", depth: 3 };
const HOUR: Duration = Duration::from_secs(3600);

/// A storage of each kind, and a folder that keeps what they need.
fn storages() -> (TempDir, [Storage; 3]) {
    let dir = tempfile::tempdir().unwrap();
    let prefixed = Storage::from(Backend::Objects(Objects::new(InMemory::new(), "/some/prefix/")));
    let storages = [Storage::folder(dir.path().join("storage")), Storage::in_memory(), prefixed];
    (dir, storages)
}

fn hour_hence() -> SystemTime {
    SystemTime::now() + HOUR
}

fn hour_ago() -> SystemTime {
    SystemTime::now() - HOUR
}

/// A folder on this machine with files of these sizes.
fn written(dir: &TempDir, files: &[(&str, usize)]) -> PathBuf {
    let from = dir.path().join("written");
    let _ = fs::remove_dir_all(&from);
    fs::create_dir(&from).unwrap();
    for (name, size) in files {
        fs::write(from.join(name), content(*size)).unwrap();
    }
    from
}

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

async fn read(storage: &Storage, location: &Path, file: &str) -> (u64, Vec<u8>) {
    let (size, pieces) = storage.read(location, file).await.unwrap();
    (size, pieces.try_collect::<Vec<_>>().await.unwrap().concat())
}

/// All entries that a walk in small steps finds.
async fn walk(storage: &Storage, area: Area, before: SystemTime) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..100 {
        let older = storage.older(area, before, after, 4).await.unwrap();
        found.extend(older.entries.into_iter().map(|entry| entry.display().to_string()));
        match older.next {
            Some(next) => after = Some(next),
            None => return found,
        }
    }
    panic!("the walk does not end");
}

/// What is written to this device finds no space.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_is_said_and_keeps_no_part_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::folder(dir.path());
    storage.prepare("blobs").await.unwrap();
    let file = dir.path().join("blobs/a");
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    let refused = storage.put("blobs/a", Bytes::from_static(b"bytes")).await;
    assert_eq!(refused, Err(StorageError::NoSpace { doing: "write", name: "blobs/a".to_owned() }));
    assert!(file.symlink_metadata().is_err(), "it was removed");
    storage.put("blobs/a", Bytes::from_static(b"bytes")).await.unwrap();
    let (mut registry, mut text) = (prometheus_client::registry::Registry::default(), String::new());
    storage.times().register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for outcome in ["ok", "no_space"] {
        let line = format!("storage_request_seconds_count{{operation=\"put\",outcome=\"{outcome}\"}} 1");
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn bytes_are_put_got_and_removed() {
    let (_dir, storages) = storages();
    for storage in storages {
        storage.prepare("blobs").await.unwrap();
        for text in ["one", "two"] {
            storage.put("blobs/a", Bytes::from(text)).await.unwrap();
            assert_eq!(storage.get("blobs/a").await.unwrap(), text);
        }
        storage.remove(vec!["blobs/none".to_owned(), "blobs/a".to_owned()]).await.unwrap();
        assert_eq!(storage.get("blobs/a").await, Err(StorageError::NotFound("blobs/a".to_owned())));
    }
}

#[tokio::test]
async fn folders_are_published_read_fetched_and_removed() {
    let (dir, storages) = storages();
    // The largest goes to a bucket in parts.
    let files = [("config.json", 3), ("empty", 0), ("model.safetensors", (17 << 20) + 5)];
    for storage in storages {
        let (a, b) = (Path::new("checkpoints/r%3a0/weights/a.1"), Path::new("checkpoints/r%3a0/weights/a.11"));
        assert!(matches!(storage.files(a).await, Err(StorageError::NotFound(_))));
        storage.publish(&written(&dir, &files), a).await.unwrap();
        storage.publish(&written(&dir, &[("x", 1)]), b).await.unwrap();
        let sizes = files.map(|(name, size)| (name.to_owned(), size as u64)).into();
        assert_eq!(storage.files(a).await.unwrap(), sizes);
        for (name, size) in files {
            assert!(read(&storage, a, name).await == (size as u64, content(size)), "{name}");
        }
        assert!(matches!(storage.read(a, "none").await.err(), Some(StorageError::NotFound(_))));
        let copy = tempfile::tempdir().unwrap();
        assert_eq!(storage.fetch(a, copy.path()).await.unwrap(), sizes.values().sum::<u64>());
        assert!(fs::read(copy.path().join("model.safetensors")).unwrap() == content((17 << 20) + 5));
        for _ in 0..2 {
            storage.remove_folder(a).await.unwrap();
        }
        assert!(matches!(storage.files(a).await, Err(StorageError::NotFound(_))));
        assert_eq!(storage.files(b).await.unwrap().len(), 1, "a name that only starts the same is another");
    }
}

#[tokio::test]
async fn a_folder_in_its_place_is_published_without_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::folder(dir.path());
    let location = Path::new("checkpoints/r/weights/a");
    let place = storage.local(location).unwrap();
    assert!(matches!(storage.publish(&place, location).await, Err(StorageError::NotFound(_))));
    fs::create_dir_all(&place).unwrap();
    storage.publish(&place, location).await.unwrap();
    assert_eq!(storage.local(Path::new("/elsewhere/a")), Some(PathBuf::from("/elsewhere/a")), "rows may be old");
    assert_eq!(Storage::in_memory().local(location), None);
}

#[tokio::test]
async fn a_walk_finds_each_entry_once_in_steps() {
    let (dir, storages) = storages();
    for storage in storages {
        assert_eq!(walk(&storage, BLOBS, hour_hence()).await, Vec::<String>::new());
        storage.prepare("blobs").await.unwrap();
        let blobs: Vec<String> = (0..5).map(|n| format!("blobs/{n}.payload")).collect();
        for blob in &blobs {
            storage.put(blob, Bytes::from_static(b"x")).await.unwrap();
        }
        let mut folders = Vec::new();
        for name in ["a/weights/x.1", "a/weights/x.2", "a/weights-2/x.1", "b/weights/x.3", "b/weights/x.4"] {
            folders.push(format!("checkpoints/{name}"));
            let from = written(&dir, &[("f", 1), ("g", 1), ("h", 1)]);
            storage.publish(&from, Path::new(folders.last().unwrap())).await.unwrap();
        }
        let mut found = walk(&storage, CHECKPOINTS, hour_hence()).await;
        found.sort();
        folders.sort();
        assert_eq!(found, folders);
        assert_eq!(walk(&storage, BLOBS, hour_hence()).await, blobs);
        assert_eq!(walk(&storage, BLOBS, hour_ago()).await, Vec::<String>::new());
        assert_eq!(walk(&storage, CHECKPOINTS, hour_ago()).await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_entry_that_is_larger_than_a_step_is_passed_over() {
    let storage = Storage::in_memory();
    for name in ["a", "a-1", "b"] {
        let dir = tempfile::tempdir().unwrap();
        let files: &[(&str, usize)] =
            if name == "a" { &[("1", 1), ("2", 1), ("3", 1), ("4", 1), ("5", 1)] } else { &[("1", 1)] };
        storage.publish(&written(&dir, files), &Path::new("checkpoints/r/weights").join(name)).await.unwrap();
    }
    let found = walk(&storage, CHECKPOINTS, hour_hence()).await;
    assert_eq!(found, ["checkpoints/r/weights/a-1", "checkpoints/r/weights/b"]);
}

#[tokio::test]
async fn a_folder_is_as_old_as_its_newest_file() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::folder(dir.path());
    let old = SystemTime::now() - Duration::from_secs(7200);
    let age = |path: &str| File::open(dir.path().join(path)).unwrap().set_modified(old).unwrap();
    for path in ["checkpoints/r/weights/.a.saving", "checkpoints/r/weights/b", "checkpoints/s/weights"] {
        fs::create_dir_all(dir.path().join(path)).unwrap();
    }
    fs::write(dir.path().join("checkpoints/r/weights/b/being-written"), b"x").unwrap();
    for path in ["r/weights/.a.saving", "r/weights/b", "r/weights", "r", "s/weights", "s"] {
        age(&format!("checkpoints/{path}"));
    }
    assert_eq!(walk(&storage, CHECKPOINTS, hour_ago()).await, ["checkpoints/r/weights/.a.saving"]);
    assert!(!dir.path().join("checkpoints/s/weights").exists(), "it was empty for long");
    assert!(dir.path().join("checkpoints/s").exists(), "it has just changed");
}

#[test]
fn urls_name_a_folder_or_a_bucket() {
    let local = |url: &str| Storage::open(url).unwrap().local(Path::new("a"));
    assert_eq!(local("data"), Some(PathBuf::from("data/a")));
    assert_eq!(local("/data"), Some(PathBuf::from("/data/a")));
    assert_eq!(local("file:///data"), Some(PathBuf::from("/data/a")));
    for url in ["", "gs://bucket", "s3://", "s3:///prefix", "file://data"] {
        assert!(matches!(Storage::open(url), Err(StorageError::Settings(_))), "{url:?}");
    }
    for (url, key) in [("s3://bucket", "a"), ("s3://bucket/", "a"), ("s3://bucket/deep/prefix/", "deep/prefix/a")] {
        let objects = Objects::s3(url).unwrap();
        assert_eq!(objects.key(Path::new("a")).unwrap().as_ref(), key, "{url}");
    }
}

#[tokio::test]
async fn no_name_leads_out_of_a_bucket() {
    let store: std::sync::Arc<dyn ObjectStore> = std::sync::Arc::new(InMemory::new());
    let storage = Storage::from(Backend::Objects(Objects::new(store, "p")));
    for location in ["../other", "/absolute", "a/../../b"] {
        assert!(matches!(storage.files(Path::new(location)).await, Err(StorageError::Failed { .. })), "{location}");
    }
}

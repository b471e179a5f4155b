//! A bucket of an S3-compatible service as storage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
#[cfg(feature = "s3")]
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, WriteMultipart};
use tokio::io::AsyncReadExt;

use super::{Area, Older, Pieces, StorageError};

/// Bytes of a request. Large files go in parts, so that each request is short and can be repeated.
const PART: u64 = 8 << 20;
/// Maximum number of parts that a file may have.
const MAX_PARTS: u64 = 10_000;
/// Parts of a file that are on their way at the same time.
const PARALLEL: usize = 4;
/// How long the service may take to answer for the first time.
const CHECK_LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(super) struct Objects {
    store: Arc<dyn ObjectStore>,
    /// Prefix of all names; empty, or without slashes at its ends.
    prefix: Arc<str>,
}

impl Objects {
    pub(super) fn new(store: impl ObjectStore, prefix: &str) -> Self {
        Self { store: Arc::new(store), prefix: prefix.trim_matches('/').into() }
    }

    /// Refuses: the client of the service is not in this build.
    #[cfg(not(feature = "s3"))]
    pub(super) fn s3(_: &str) -> Result<Self, StorageError> {
        Err(StorageError::Settings(
            "this build has no storage in buckets: build trainyard-server with `--features s3`".to_owned(),
        ))
    }

    /// The address of the storage: `s3://BUCKET/PREFIX`.
    #[cfg(feature = "s3")]
    pub(super) fn s3(url: &str) -> Result<Self, StorageError> {
        let (bucket, prefix) = url
            .strip_prefix("s3://")
            .and_then(|rest| rest.split_once('/').or(Some((rest, ""))))
            .filter(|(bucket, _)| !bucket.is_empty())
            .ok_or_else(|| StorageError::Settings(format!("{url:?} names no bucket: give s3://BUCKET/PREFIX")))?;
        // The first one that is installed counts; there is but one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let settings = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let endpoint = settings
            .get_config_value(&AmazonS3ConfigKey::S3Endpoint)
            .or_else(|| settings.get_config_value(&AmazonS3ConfigKey::Endpoint));
        let plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
        let settings = if plain { settings.with_allow_http(true) } else { settings };
        let store = settings.build().map_err(|error| StorageError::Settings(format!("{url}: {error}")))?;
        Ok(Self::new(store, prefix))
    }

    pub(super) async fn check(&self, root: &str) -> Result<(), StorageError> {
        let key = self.key(Path::new(root))?;
        let mut objects = self.store.list(Some(&key));
        // Requests are repeated for minutes; whoever starts a server wants to know sooner.
        match tokio::time::timeout(CHECK_LIMIT, objects.try_next()).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(StorageError::failed("open", root, error)),
            Err(_) => Err(StorageError::failed("open", root, format!("no answer in {} s", CHECK_LIMIT.as_secs()))),
        }
    }

    pub(super) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let key = self.key(Path::new(name))?;
        self.store.put(&key, bytes.into()).await.map_err(failed("write", name))?;
        Ok(())
    }

    pub(super) async fn get(&self, name: &str) -> Result<Bytes, StorageError> {
        let key = self.key(Path::new(name))?;
        let got = self.store.get(&key).await.map_err(failed("read", name))?;
        got.bytes().await.map_err(failed("read", name))
    }

    pub(super) async fn remove(&self, names: Vec<String>) -> Result<(), StorageError> {
        let first = names.first().cloned().unwrap_or_default();
        let keys = names.iter().map(|name| self.key(Path::new(name))).collect::<Result<Vec<_>, _>>()?;
        self.delete(keys, &first).await
    }

    pub(super) async fn files(&self, location: &Path) -> Result<BTreeMap<String, u64>, StorageError> {
        let name = location.display().to_string();
        let folder = self.key(location)?;
        let mut objects = self.store.list(Some(&folder));
        let mut files = BTreeMap::new();
        while let Some(object) = objects.try_next().await.map_err(failed("list", &name))? {
            if let Some(file) = object.location.filename() {
                files.insert(file.to_owned(), object.size);
            }
        }
        if files.is_empty() { Err(StorageError::NotFound(name)) } else { Ok(files) }
    }

    pub(super) async fn read(&self, location: &Path, file: &str) -> Result<(u64, Pieces), StorageError> {
        let name = location.join(file);
        let key = self.key(&name)?;
        let name = name.display().to_string();
        let size = self.store.head(&key).await.map_err(failed("read", &name))?.size;
        let store = Arc::clone(&self.store);
        let ranges = (0..size.div_ceil(PART)).map(move |part| part * PART..size.min((part + 1) * PART));
        let pieces = stream::iter(ranges).map(move |range| {
            let (store, key, name) = (Arc::clone(&store), key.clone(), name.clone());
            async move { store.get_range(&key, range).await.map_err(failed("read", &name)) }
        });
        Ok((size, pieces.buffered(PARALLEL).boxed()))
    }

    pub(super) async fn publish(&self, from: &Path, location: &Path) -> Result<(), StorageError> {
        let sizes = local_files(from)?;
        for (file, size) in &sizes {
            self.upload(&from.join(file), &location.join(file), *size).await?;
        }
        // An upload that took so long that garbage collection removed a part of it must not be recorded.
        if self.files(location).await? != sizes {
            let detail = "the stored files differ from those that were written";
            return Err(StorageError::failed("write", location.display(), detail));
        }
        Ok(())
    }

    async fn upload(&self, from: &Path, name: &Path, size: u64) -> Result<(), StorageError> {
        let key = self.key(name)?;
        let name = name.display().to_string();
        let unreadable = |error: std::io::Error| StorageError::failed("read", from.display(), error);
        if size <= PART {
            let bytes = tokio::fs::read(from).await.map_err(unreadable)?;
            self.store.put(&key, PutPayload::from(bytes)).await.map_err(failed("write", &name))?;
            return Ok(());
        }
        let part = PART.max(size.div_ceil(MAX_PARTS));
        let mut file = tokio::fs::File::open(from).await.map_err(unreadable)?;
        let started = self.store.put_multipart(&key).await.map_err(failed("write", &name))?;
        let mut parts = WriteMultipart::new_with_chunk_size(started, usize::try_from(part).unwrap_or(usize::MAX));
        let sent = async {
            loop {
                let mut piece = BytesMut::with_capacity(1 << 20);
                if file.read_buf(&mut piece).await.map_err(unreadable)? == 0 {
                    return Ok(());
                }
                parts.wait_for_capacity(PARALLEL).await.map_err(failed("write", &name))?;
                parts.put(piece.freeze());
            }
        }
        .await;
        if let Err(error) = sent {
            // Its parts cost space until the bucket's own rules remove them.
            if let Err(error) = parts.abort().await {
                tracing::warn!(name, %error, "unfinished upload remains in the bucket");
            }
            return Err(error);
        }
        parts.finish().await.map_err(failed("write", &name))?;
        Ok(())
    }

    pub(super) async fn remove_folder(&self, location: &Path) -> Result<(), StorageError> {
        let name = location.display().to_string();
        let folder = self.key(location)?;
        let objects = self.store.list(Some(&folder)).map_ok(|object| object.location);
        let mut keys: Vec<Key> = objects.try_collect().await.map_err(failed("list", &name))?;
        // An entry that garbage collection found may be an object itself.
        if keys.is_empty() {
            keys.push(folder);
        }
        self.delete(keys, &name).await
    }

    async fn delete(&self, keys: Vec<Key>, name: &str) -> Result<(), StorageError> {
        let mut deleted = self.store.delete_stream(stream::iter(keys.into_iter().map(Ok)).boxed());
        while let Some(done) = deleted.next().await {
            match done {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed("remove", name)(error)),
            }
        }
        Ok(())
    }

    pub(super) async fn older(
        &self,
        area: Area,
        before: SystemTime,
        after: Option<String>,
        limit: usize,
    ) -> Result<Older, StorageError> {
        let root = self.key(Path::new(area.root))?;
        let objects = match &after {
            Some(after) => self.store.list_with_offset(Some(&root), &self.key(Path::new(after))?),
            None => self.store.list(Some(&root)),
        };
        let objects: Vec<ObjectMeta> =
            objects.take(limit + 1).try_collect().await.map_err(failed("list", area.root))?;
        Ok(self.group(area, before, objects, limit))
    }

    /// Joins objects to entries. Objects come in the order of their names.
    fn group(&self, area: Area, before: SystemTime, mut objects: Vec<ObjectMeta>, limit: usize) -> Older {
        let cut = objects.len() > limit;
        objects.truncate(limit);
        let mut entries: Vec<(PathBuf, bool, String)> = Vec::new();
        for object in objects {
            let name = self.name(&object.location);
            let entry: PathBuf = Path::new(&name).components().take(area.depth + 1).collect();
            let old = SystemTime::from(object.last_modified) < before;
            match entries.last_mut() {
                Some((last, all_old, end)) if *last == entry => {
                    *all_old &= old;
                    *end = name;
                }
                _ => entries.push((entry, old, name)),
            }
        }
        // The last entry may go on behind the limit: the next call looks at all of it, unless it is larger than that.
        if cut && entries.len() > 1 {
            entries.pop();
        } else if let (true, Some((entry, old, end))) = (cut, entries.last_mut()) {
            *old = false;
            // What comes first behind all that is in the entry.
            *end = format!("{}0", entry.display());
        }
        let next = entries.last().filter(|_| cut).map(|(.., end)| end.clone());
        Older { entries: entries.into_iter().filter(|(_, old, _)| *old).map(|(entry, ..)| entry).collect(), next }
    }

    /// Where a name is in the bucket.
    pub(super) fn key(&self, name: &Path) -> Result<Key, StorageError> {
        let mut key = String::from(&*self.prefix);
        for part in name.components() {
            match part {
                Component::Normal(part) => {
                    key.push('/');
                    key.push_str(&part.to_string_lossy());
                }
                _ => {
                    let detail = "it is not in the bucket";
                    return Err(StorageError::failed("find", name.display(), detail));
                }
            }
        }
        Key::parse(key.trim_start_matches('/')).map_err(|error| StorageError::failed("find", name.display(), error))
    }

    /// The name of what is there in the bucket.
    fn name(&self, key: &Key) -> String {
        let text = key.as_ref();
        text.strip_prefix(&*self.prefix).unwrap_or(text).trim_start_matches('/').to_owned()
    }
}

/// The files of a folder on this machine with their sizes.
fn local_files(dir: &Path) -> Result<BTreeMap<String, u64>, StorageError> {
    let unreadable = |error: std::io::Error| StorageError::failed("read", dir.display(), error);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let metadata = entry.metadata().map_err(unreadable)?;
        match entry.file_name().into_string() {
            Ok(name) if metadata.is_file() => files.insert(name, metadata.len()),
            _ => return Err(StorageError::failed("read", entry.path().display(), "it is not a file")),
        };
    }
    Ok(files)
}

fn failed<'a>(doing: &'static str, name: &'a str) -> impl Fn(object_store::Error) -> StorageError + use<'a> {
    move |error| match error {
        object_store::Error::NotFound { .. } => StorageError::NotFound(name.to_owned()),
        error => StorageError::failed(doing, name, error),
    }
}

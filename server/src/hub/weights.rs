//! The weights of a model as the hub offers them: files that are too large to hold in memory, read piece by piece.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use futures::Stream;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use trainyard_protocol::hex;

/// The map from tensors to files, for a model that has several files.
const INDEX: &str = "model.safetensors.index.json";
/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// A file of a model's weights, or their index.
#[derive(Clone, Debug)]
pub struct WeightFile {
    /// Name in the repository.
    pub name: String,
    path: PathBuf,
    /// Size in bytes when the process started.
    pub size: u64,
    /// Version of the content, which changes when the file is replaced.
    pub version: String,
    /// SHA-256 in hex, once it is computed.
    digest: Arc<OnceCell<String>>,
}

/// Returns the weight files of a model: the safetensors files of a folder with their index, or the single file at
/// `path`.
///
/// # Errors
/// Fails if the folder or a file can't be read.
pub fn weight_files(path: &Path) -> io::Result<Vec<WeightFile>> {
    if path.is_file() {
        return Ok(vec![WeightFile::at(path.to_owned())?]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let offered = path.extension().is_some_and(|ending| ending == "safetensors") || path.ends_with(INDEX);
        // The cache of the hub's own tools has links here.
        if offered && path.is_file() {
            files.push(WeightFile::at(path)?);
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

impl WeightFile {
    fn at(path: PathBuf) -> io::Result<Self> {
        let metadata = std::fs::metadata(&path)?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let version = format!("{} {}", metadata.len(), modified.as_nanos());
        Ok(Self { name, path, size: metadata.len(), version, digest: Arc::default() })
    }

    /// The SHA-256 in hex. The first call reads the whole file; others wait for it.
    pub(super) async fn digest(&self) -> io::Result<&str> {
        let computed = self.digest.get_or_try_init(|| async {
            let path = self.path.clone();
            spawn_blocking(move || digest(&path)).await.map_err(io::Error::other)?
        });
        computed.await.map(String::as_str)
    }

    /// Reads a part of the file, in pieces.
    pub(super) async fn read(&self, part: Range<u64>) -> io::Result<impl Stream<Item = io::Result<Bytes>> + use<>> {
        let mut file = tokio::fs::File::open(&self.path).await?;
        file.seek(SeekFrom::Start(part.start)).await?;
        let rest = file.take(part.end.saturating_sub(part.start));
        Ok(futures::stream::try_unfold(rest, async |mut rest| {
            if rest.limit() == 0 {
                return Ok(None);
            }
            let mut piece = Vec::with_capacity(PIECE);
            (&mut rest).take(PIECE as u64).read_to_end(&mut piece).await?;
            if piece.is_empty() {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was truncated while it was read"));
            }
            Ok(Some((Bytes::from(piece), rest)))
        }))
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut hash, mut piece) = (File::open(path)?, Sha256::new(), vec![0; PIECE]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&piece[..read]);
    }
}

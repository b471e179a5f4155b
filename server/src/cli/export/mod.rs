//! `trainyard export`: downloads the weights of a checkpoint, merges an adapter into its base model, or writes it for `peft`.

use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use reqwest::Method;
use tokio::io::AsyncWriteExt as _;
use trainyard_gpu_runtime::{load, merge, write_for_peft};
use trainyard_protocol::{OpError, TinkerPath};
use trainyard_wire::weights::ExternalUrlsResponse;

use super::client::{Api, described};
use super::process::create_folder;
use super::table;
use crate::config::{ExportFlags, ServerFlags, size};

/// The end of the name of a file that is not complete yet.
const PART: &str = ".part";

/// The folder within `--output` that contains an adapter until it is merged.
const ADAPTER: &str = "adapter.part";

/// The file that describes an adapter.
const ADAPTER_CONFIG: &str = "adapter_config.json";

/// The file of a scalar head.
const HEAD: &str = "value_head.safetensors";

/// Downloads the files of a checkpoint to an empty or new folder, and lists them.
///
/// # Errors
/// Fails if the folder has content, the server refuses, a file is not complete, or the base model does not fit; what is
/// complete stays.
pub(super) fn export(flags: ExportFlags) -> Result<(), Box<dyn Error>> {
    let ExportFlags { path, output, merge: base, peft, server } = flags;
    let path: TinkerPath = path.parse().map_err(|error: OpError| error.message)?;
    let base = base.map(|base| load::location(&base).map_err(|error| format!("--merge: {error}"))).transpose()?;
    let peft = peft.map(|base| load::location(&base).map_err(|error| format!("--peft: {error}"))).transpose()?;
    let folder = output.unwrap_or_else(|| PathBuf::from(path.name.as_str()));
    ensure_empty(&folder)?;
    let downloads = if base.is_some() || peft.is_some() { folder.join(ADAPTER) } else { folder.clone() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(download(server, &path, &downloads))?;
    if let Some(base) = base {
        if !downloads.join(ADAPTER_CONFIG).exists() {
            return Err(
                format!("--merge: {path} is not an adapter: pass no base model, its files are in {ADAPTER}").into()
            );
        }
        merge(&downloads, &base, &folder).map_err(|error| format!("--merge: {error}"))?;
        copy_head(&downloads, &folder)?;
        remove(&downloads)?;
    }
    if let Some(base) = peft {
        if !downloads.join(ADAPTER_CONFIG).exists() {
            return Err(format!("--peft: {path} is not an adapter: its files are in {ADAPTER}").into());
        }
        let config = load::describe(&base).map_err(|error| format!("--peft: {error}"))?;
        write_for_peft(&downloads, &config, &folder).map_err(|error| format!("--peft: {error}"))?;
        copy_head(&downloads, &folder)?;
        remove(&downloads)?;
    }
    table::print(["FILE", "SIZE"], listed(&folder)?)?;
    writeln!(io::stderr(), "{path} is in {}", folder.display())?;
    Ok(())
}

/// Copies the scalar head of a critic or a reward model, which no base model has.
fn copy_head(adapter: &Path, out: &Path) -> Result<(), String> {
    let (head, target) = (adapter.join(HEAD), out.join(HEAD));
    if head.exists() {
        fs::copy(&head, &target).map_err(|error| format!("{}: {error}", target.display()))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

async fn download(server: ServerFlags, path: &TinkerPath, folder: &Path) -> Result<(), Box<dyn Error>> {
    let api = Api::new(server)?;
    let at = format!("training_runs/{}/checkpoints/{}/{}", path.run, path.kind.segment(), path.name);
    let urls: ExternalUrlsResponse = api.call(Method::GET, &format!("{at}/external_weights_urls")).await?;
    create_folder("--output", folder)?;
    for (name, url) in &urls.urls {
        fetch(&api, folder, name, url).await?;
    }
    Ok(())
}

/// Lists the files of a folder with their sizes.
fn listed(folder: &Path) -> Result<Vec<[String; 2]>, String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let bytes = entry.metadata().map_err(failed)?.len();
        files.push([entry.file_name().to_string_lossy().into_owned(), size::rounded(bytes)]);
    }
    files.sort_unstable();
    Ok(files)
}

/// Refuses a folder with content, which would be mixed up with the checkpoint.
fn ensure_empty(folder: &Path) -> Result<(), String> {
    match fs::read_dir(folder) {
        Ok(mut content) => match content.next() {
            Some(_) => Err(format!("--output: {} is not empty: pass an empty or new folder", folder.display())),
            None => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("--output: {}: {error}", folder.display())),
    }
}

/// Downloads a file. Under its name it is complete.
async fn fetch(api: &Api, folder: &Path, name: &str, url: &str) -> Result<(), Box<dyn Error>> {
    let file = place(folder, name)?;
    let failed = |error: io::Error| format!("{}: {error}", file.display());
    let mut response = api.open(name, url).await?;
    let (expected, mut received) = (response.content_length(), 0);
    let part = folder.join(format!("{name}{PART}"));
    let mut out = tokio::fs::File::create(&part).await.map_err(failed)?;
    while let Some(chunk) =
        response.chunk().await.map_err(|error| format!("{name}: {}", described(&error.without_url())))?
    {
        received += chunk.len() as u64;
        out.write_all(&chunk).await.map_err(failed)?;
    }
    if expected.is_some_and(|expected| expected != received) {
        return Err(format!("{name}: expected {} bytes, found {received}", expected.unwrap_or_default()).into());
    }
    out.sync_all().await.map_err(failed)?;
    Ok(fs::rename(&part, &file).map_err(failed)?)
}

/// Returns the path of a file, whose name the server chooses: it must not lead out of the folder.
fn place(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(_)), None) => Ok(folder.join(name)),
        _ => Err(format!("{name:?}: expected the name of a file without a folder")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn only_empty_and_new_folders_are_filled() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ensure_empty(dir.path()), Ok(()));
        assert_eq!(ensure_empty(&dir.path().join("new")), Ok(()));
        fs::write(dir.path().join("notes"), "").unwrap();
        assert!(ensure_empty(dir.path()).unwrap_err().contains("is not empty"));
        assert!(ensure_empty(&dir.path().join("notes")).unwrap_err().starts_with("--output: "));
    }

    #[test]
    fn names_do_not_lead_out_of_the_folder() {
        let folder = Path::new("models");
        assert_eq!(place(folder, "adapter_model.safetensors"), Ok(folder.join("adapter_model.safetensors")));
        for name in ["", ".", "..", "../x", "/etc/passwd", "a/b"] {
            assert!(place(folder, name).is_err(), "{name:?}");
        }
    }
}

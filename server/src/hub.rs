//! The part of the Hugging Face hub protocol that `AutoTokenizer.from_pretrained` needs, so that a client on a closed
//! network sets `HF_ENDPOINT=<server>/hf` and nothing else. It serves tokenizer and configuration files, and weights if
//! the operator enables them. The protocol is that of `huggingface_hub`: file metadata in headers, errors distinguished
//! by `X-Error-Code`.

mod content;
mod weights;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use trainyard_gpu_runtime::config::ModelFiles;
use trainyard_protocol::hex;

use self::content::content;
pub use self::weights::{WeightFile, weight_files};

const REPO_COMMIT: &str = "x-repo-commit";
const ERROR_CODE: &str = "x-error-code";
const ERROR_MESSAGE: &str = "x-error-message";

const BRANCH: &str = "main";

/// The models' tokenizers. Cheap to clone; all clones are one hub.
#[derive(Clone, Default)]
pub struct Hub(Arc<RwLock<Arc<Repos>>>);

impl Hub {
    /// Replaces the models that the hub serves, each as a repository of its name.
    pub fn set(&self, models: &BTreeMap<String, ModelFiles>) {
        let repos = models.iter().map(|(name, files)| (name.clone(), Repo::new(files))).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Repos(repos));
    }

    /// Offers the weights of a model too. Their digests are computed in the background, one after the other; a client
    /// that asks earlier waits.
    pub fn offer_weights(&self, model: &str, weights: Vec<WeightFile>) {
        let mut repos = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = repos.0.clone();
        if let Some(repo) = changed.get_mut(model) {
            let mut files = repo.files.clone();
            files.extend(weights.iter().map(|file| (file.name.clone(), File::OnDisk(file.clone()))));
            *repo = Repo::of(files);
        }
        *repos = Arc::new(Repos(changed));
        tokio::spawn(async move {
            for file in weights {
                if let Err(error) = file.digest().await {
                    tracing::error!(file = file.name, %error, "failed to read weights for /hf");
                }
            }
        });
    }

    /// Returns the routes, to be nested under `/hf`. Requests for other models are redirected to `upstream`, another
    /// hub.
    pub fn router(&self, upstream: Option<String>) -> Router {
        let state = Routes { hub: self.clone(), upstream: upstream.map(Arc::from) };
        // Names have one segment or more, which no route pattern can express before a fixed segment.
        Router::new().route("/{*path}", any(answer)).with_state(state)
    }

    /// The tokenizer and configuration files of a model.
    pub(crate) fn files(&self, model: &str) -> Option<HeldFiles> {
        let repos = self.repos();
        let commit = repos.0.get(model)?.commit.clone();
        Some(HeldFiles { repos, model: model.to_owned(), commit })
    }

    fn repos(&self) -> Arc<Repos> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The files of a model that are held in memory.
pub(crate) struct HeldFiles {
    repos: Arc<Repos>,
    model: String,
    /// Identifies the files: other files have another commit.
    pub(crate) commit: String,
}

impl HeldFiles {
    /// The content of a file.
    pub(crate) fn content(&self, name: &str) -> Option<Bytes> {
        match self.repos.0.get(&self.model)?.files.get(name)? {
            File::Held { content, .. } => Some(content.clone()),
            File::OnDisk(_) => None,
        }
    }
}

/// State of the routes.
#[derive(Clone)]
struct Routes {
    hub: Hub,
    upstream: Option<Arc<str>>,
}

/// All repositories by name.
#[derive(Default)]
struct Repos(BTreeMap<String, Repo>);

#[derive(Clone)]
struct Repo {
    commit: String,
    files: BTreeMap<String, File>,
}

#[derive(Clone)]
enum File {
    /// Content in memory, with its SHA-256 in hex.
    Held {
        content: Bytes,
        digest: String,
    },
    OnDisk(WeightFile),
}

impl File {
    fn size(&self) -> u64 {
        match self {
            Self::Held { content, .. } => content.len() as u64,
            Self::OnDisk(file) => file.size,
        }
    }

    /// Version of the content; other contents have another version.
    fn version(&self) -> &str {
        match self {
            Self::Held { digest, .. } => digest,
            Self::OnDisk(file) => &file.version,
        }
    }

    /// The SHA-256 of the content, in hex.
    async fn digest(&self) -> io::Result<&str> {
        match self {
            Self::Held { digest, .. } => Ok(digest),
            Self::OnDisk(file) => file.digest().await,
        }
    }

    /// Reads a part, which must lie within the file.
    async fn read(&self, part: Range<u64>) -> io::Result<Body> {
        match self {
            Self::Held { content, .. } => {
                let part = usize::try_from(part.start).ok().zip(usize::try_from(part.end).ok());
                let (start, end) = part.ok_or(io::ErrorKind::InvalidInput)?;
                Ok(content.slice(start..end).into())
            }
            Self::OnDisk(file) => Ok(Body::from_stream(file.read(part).await?)),
        }
    }
}

impl Repo {
    fn new(files: &ModelFiles) -> Self {
        let file =
            |content: &Vec<u8>| File::Held { content: content.clone().into(), digest: hex(&Sha256::digest(content)) };
        Self::of(files.iter().map(|(name, content)| (name.clone(), file(content))).collect())
    }

    fn of(files: BTreeMap<String, File>) -> Self {
        let mut commit = Sha256::new();
        for (name, file) in &files {
            commit.update(format!("{} {name}\n", file.version()));
        }
        let mut commit = hex(&commit.finalize());
        commit.truncate(40);
        Self { commit, files }
    }

    fn at(&self, revision: &str) -> Result<&Self, Missing> {
        if revision == BRANCH || revision == self.commit { Ok(self) } else { Err(Missing::Revision) }
    }
}

impl Repos {
    fn get(&self, name: &str) -> Result<&Repo, Missing> {
        self.0.get(name).ok_or(Missing::Repo)
    }
}

/// What a 404 is about.
#[derive(Clone, Copy)]
enum Missing {
    Repo,
    Revision,
    Entry,
}

impl IntoResponse for Missing {
    fn into_response(self) -> Response {
        let (code, message) = match self {
            Self::Repo => ("RepoNotFound", "Repository not found"),
            Self::Revision => ("RevisionNotFound", "Invalid rev id"),
            Self::Entry => ("EntryNotFound", "Entry not found"),
        };
        let headers = [(ERROR_CODE, code), (ERROR_MESSAGE, message)];
        (StatusCode::NOT_FOUND, headers, Json(json!({"error": message}))).into_response()
    }
}

async fn answer(
    State(Routes { hub, upstream }): State<Routes>,
    Path(path): Path<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let repos = hub.repos();
    let answer = match path.strip_prefix("api/models/") {
        Some(path) => describe(&repos, path).map(|json| Json(json).into_response()),
        None => resolve(&repos, &path, &method, headers.get(header::RANGE)).await,
    };
    match (answer, upstream) {
        (Err(Missing::Repo), Some(upstream)) => redirect(&upstream, &uri),
        (Ok(_), _) if !matches!(method, Method::GET | Method::HEAD) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        (answer, _) => answer.unwrap_or_else(IntoResponse::into_response),
    }
}

/// Redirects the client to another hub, keeping method and body. Clients follow that to the public hub's own address.
fn redirect(upstream: &str, uri: &Uri) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    match HeaderValue::try_from(format!("{upstream}{path}")) {
        Ok(location) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response(),
        Err(_) => Missing::Repo.into_response(),
    }
}

/// `<repo>`, `<repo>/revision/<revision>` or `<repo>/tree/<revision>[/<folder>]`.
fn describe(repos: &Repos, path: &str) -> Result<Value, Missing> {
    if let Some((name, revision)) = path.split_once("/revision/") {
        return Ok(info(name, repos.get(name)?.at(revision)?));
    }
    let Some((name, rest)) = path.split_once("/tree/") else {
        return Ok(info(path, repos.get(path)?));
    };
    let (revision, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let repo = repos.get(name)?.at(revision)?;
    let inside = |path: &str| folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let entries = tree(repo, inside);
    if entries.is_empty() && !folder.is_empty() { Err(Missing::Entry) } else { Ok(entries.into()) }
}

fn info(name: &str, repo: &Repo) -> Value {
    let siblings: Vec<_> = repo.files.keys().map(|file| json!({"rfilename": file})).collect();
    json!({
        "_id": &repo.commit[..24],
        "id": name,
        "modelId": name,
        "sha": repo.commit,
        "private": false,
        "gated": false,
        "disabled": false,
        "downloads": 0,
        "likes": 0,
        "tags": ["transformers"],
        "library_name": "transformers",
        "siblings": siblings,
    })
}

/// The forty hexadecimal digits that identify a content, as in Git.
fn oid(file: &File) -> String {
    let mut digest = hex(&Sha256::digest(file.version()));
    digest.truncate(40);
    digest
}

/// The files whose paths are `inside` a folder, also in folders within.
fn tree(repo: &Repo, inside: impl Fn(&str) -> bool) -> Vec<Value> {
    let entry =
        |(path, file): (&String, &File)| json!({"type": "file", "path": path, "size": file.size(), "oid": oid(file)});
    repo.files.iter().filter(|(path, _)| inside(path)).map(entry).collect()
}

/// `<repo>/resolve/<revision>/<file>`: the file, or the requested part of it.
async fn resolve(repos: &Repos, path: &str, method: &Method, range: Option<&HeaderValue>) -> Result<Response, Missing> {
    let (name, rest) = path.split_once("/resolve/").ok_or(Missing::Repo)?;
    let (revision, file) = rest.split_once('/').ok_or(Missing::Entry)?;
    let repo = repos.get(name)?.at(revision)?;
    // A missing file names its commit too: the client remembers the absence under it.
    let commit = [(REPO_COMMIT, repo.commit.clone())];
    let Some(found) = repo.files.get(file) else {
        return Ok((commit, Missing::Entry).into_response());
    };
    Ok((commit, content(file, found, method, range).await).into_response())
}

#[cfg(test)]
#[path = "hub/tests.rs"]
mod tests;

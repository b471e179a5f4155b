//! The part of the Hugging Face hub protocol that `AutoTokenizer.from_pretrained` needs, so that a client on a
//! closed network sets `HF_ENDPOINT=<server>/hf` and nothing else. Serves tokenizer and configuration files,
//! never weights. The protocol is that of `huggingface_hub`: file metadata in headers, errors distinguished by
//! `X-Error-Code`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use trainyard_gpu_runtime::config::ModelFiles;

const REPO_COMMIT: &str = "x-repo-commit";
const ERROR_CODE: &str = "x-error-code";
const ERROR_MESSAGE: &str = "x-error-message";

/// The only branch.
const BRANCH: &str = "main";

/// The models' tokenizers. Cheap to clone; all clones are one hub.
#[derive(Clone, Default)]
pub struct Hub(Arc<RwLock<Arc<Repos>>>);

impl Hub {
    /// Has these models from now on, each a repository of its name.
    pub fn set(&self, models: &BTreeMap<String, ModelFiles>) {
        let repos = models.iter().map(|(name, files)| (name.clone(), Repo::new(files))).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Repos(repos));
    }

    /// Its routes, to be nested under `/hf`. What it does not have is redirected to `upstream`, another hub.
    pub fn router(&self, upstream: Option<String>) -> Router {
        let state = Routes { hub: self.clone(), upstream: upstream.map(Arc::from) };
        // Names have one segment or more, which no route pattern can express before a fixed segment.
        Router::new().route("/{*path}", any(answer)).with_state(state)
    }

    fn repos(&self) -> Arc<Repos> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What answers.
#[derive(Clone)]
struct Routes {
    hub: Hub,
    upstream: Option<Arc<str>>,
}

/// All repositories by name.
#[derive(Default)]
struct Repos(BTreeMap<String, Repo>);

struct Repo {
    commit: String,
    files: BTreeMap<String, File>,
}

struct File {
    content: Bytes,
    /// SHA-256 in hex.
    digest: String,
}

impl Repo {
    fn new(files: &ModelFiles) -> Self {
        let file = |content: &Vec<u8>| File { content: content.clone().into(), digest: hex(&Sha256::digest(content)) };
        let files: BTreeMap<_, _> = files.iter().map(|(name, content)| (name.clone(), file(content))).collect();
        let mut commit = Sha256::new();
        for (name, file) in &files {
            commit.update(format!("{} {name}\n", file.digest));
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
        None => resolve(&repos, &path, headers.get(header::RANGE)),
    };
    match (answer, upstream) {
        (Err(Missing::Repo), Some(upstream)) => redirect(&upstream, &uri),
        (Ok(_), _) if !matches!(method, Method::GET | Method::HEAD) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        (answer, _) => answer.unwrap_or_else(IntoResponse::into_response),
    }
}

/// Sends the client to another hub, with its method and body. Clients follow that to the public hub's own address.
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
    // Files lie flat: every folder is absent.
    if folder.is_empty() { Ok(tree(repo)) } else { Err(Missing::Entry) }
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

fn tree(repo: &Repo) -> Value {
    let entry = |(path, file): (&String, &File)| json!({"type": "file", "path": path, "size": file.content.len(), "oid": &file.digest[..40]});
    repo.files.iter().map(entry).collect()
}

/// `<repo>/resolve/<revision>/<file>`: the file, or the part of it that is asked for.
fn resolve(repos: &Repos, path: &str, range: Option<&HeaderValue>) -> Result<Response, Missing> {
    let (name, rest) = path.split_once("/resolve/").ok_or(Missing::Repo)?;
    let (revision, file) = rest.split_once('/').ok_or(Missing::Entry)?;
    let repo = repos.get(name)?.at(revision)?;
    // A missing file names its commit too: the client remembers the absence under it.
    let commit = [(REPO_COMMIT, repo.commit.clone())];
    let Some(found) = repo.files.get(file) else {
        return Ok((commit, Missing::Entry).into_response());
    };
    Ok((commit, content(file, found, range)).into_response())
}

fn content(name: &str, file: &File, range: Option<&HeaderValue>) -> Response {
    let size = file.content.len();
    let kind = match name.rsplit_once('.') {
        Some((_, "json")) => "application/json",
        Some((_, "txt" | "jinja")) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let shared = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::ETAG, format!("\"{}\"", file.digest)),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ];
    let length = |bytes: usize| [(header::CONTENT_LENGTH, bytes.to_string())];
    match range.and_then(|range| part(range, size)) {
        None => (shared, length(size), file.content.clone()).into_response(),
        Some(part) if part.is_empty() => {
            let extent = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            (StatusCode::RANGE_NOT_SATISFIABLE, extent).into_response()
        }
        Some(part) => {
            let extent = [(header::CONTENT_RANGE, format!("bytes {}-{}/{size}", part.start, part.end - 1))];
            let content = file.content.slice(part.clone());
            (StatusCode::PARTIAL_CONTENT, shared, length(part.len()), extent, content).into_response()
        }
    }
}

/// The bytes that a `Range` header asks for: empty if there are none, `None` to send everything (what a server
/// may do with a header that it does not understand, such as several ranges).
fn part(range: &HeaderValue, size: usize) -> Option<Range<usize>> {
    let (first, last) = range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let count: usize = last.parse().ok()?;
        return Some(size - count.min(size)..size);
    }
    let first: usize = first.parse().ok()?;
    let end = if last.is_empty() { size } else { last.parse::<usize>().ok()?.checked_add(1)?.min(size) };
    Some(first.min(end)..end)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    const CONFIG: &str = r#"{"model_type": "llama"}"#;

    fn served(upstream: Option<&str>) -> Router {
        let files = |config: &str| ModelFiles::from([("config.json".to_owned(), config.as_bytes().to_vec())]);
        let models = [("org/model".to_owned(), files(CONFIG)), ("tiny".to_owned(), files("{}"))];
        let hub = Hub::default();
        hub.set(&models.into());
        Router::new().nest("/hf", hub.router(upstream.map(ToOwned::to_owned)))
    }

    async fn call(method: Method, path: &str, range: Option<&str>) -> (StatusCode, HeaderMap, Bytes) {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(range) = range {
            request = request.header("range", range);
        }
        let response = served(None).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap())
    }

    async fn get(path: &str) -> (StatusCode, HeaderMap, Bytes) {
        call(Method::GET, path, None).await
    }

    async fn json(path: &str) -> Value {
        let (status, _, body) = get(path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        serde_json::from_slice(&body).unwrap()
    }

    #[tokio::test]
    async fn head_gives_metadata_and_get_the_file() {
        for method in [Method::HEAD, Method::GET] {
            let (status, headers, body) = call(method.clone(), "/hf/org/model/resolve/main/config.json", None).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(body, if method == Method::GET { CONFIG } else { "" });
            assert_eq!(headers["content-length"], CONFIG.len().to_string());
            assert_eq!(headers["content-type"], "application/json");
            assert_eq!(headers["accept-ranges"], "bytes");
            assert_eq!(headers["etag"].len(), 66);
            assert_eq!(headers["x-repo-commit"].len(), 40);
        }
    }

    #[tokio::test]
    async fn a_commit_is_a_revision_and_names_may_have_one_segment() {
        let (_, headers, _) = get("/hf/tiny/resolve/main/config.json").await;
        let commit = headers["x-repo-commit"].to_str().unwrap().to_owned();
        let (status, repeated, body) = get(&format!("/hf/tiny/resolve/{commit}/config.json")).await;
        assert_eq!((status, body.as_ref()), (StatusCode::OK, &b"{}"[..]));
        assert_eq!(headers, repeated);
    }

    #[tokio::test]
    async fn missing_things_are_distinguished() {
        for (path, code) in [
            ("/hf/org/model/resolve/main/model.safetensors", "EntryNotFound"),
            ("/hf/org/model/resolve/main/../../config.json", "EntryNotFound"),
            ("/hf/org/model/resolve/other/config.json", "RevisionNotFound"),
            ("/hf/org/other/resolve/main/config.json", "RepoNotFound"),
            ("/hf/api/models/org/other", "RepoNotFound"),
            ("/hf/api/models/org/model/revision/other", "RevisionNotFound"),
            ("/hf/api/models/org/model/tree/main/additional_chat_templates", "EntryNotFound"),
            ("/hf/anything", "RepoNotFound"),
        ] {
            for method in [Method::GET, Method::HEAD] {
                let (status, headers, _) = call(method, path, None).await;
                assert_eq!(
                    (status, &headers["x-error-code"]),
                    (StatusCode::NOT_FOUND, &code.parse().unwrap()),
                    "{path}"
                );
            }
        }
        let (_, headers, _) = get("/hf/org/model/resolve/main/absent").await;
        assert_eq!(headers["x-repo-commit"].len(), 40);
    }

    #[tokio::test]
    async fn models_are_described() {
        let info = json("/hf/api/models/org/model").await;
        let (_, headers, _) = get("/hf/org/model/resolve/main/config.json").await;
        assert_eq!((&info["id"], info["sha"].as_str()), (&"org/model".into(), headers["x-repo-commit"].to_str().ok()));
        assert_eq!(info["siblings"], serde_json::json!([{"rfilename": "config.json"}]));
        assert_eq!(json("/hf/api/models/org/model/revision/main").await, info);
        let tree = json("/hf/api/models/org/model/tree/main?recursive=true").await;
        assert_eq!((&tree[0]["path"], &tree[0]["size"]), (&"config.json".into(), &CONFIG.len().into()));
    }

    #[tokio::test]
    async fn parts_of_a_file_can_be_asked_for() {
        let path = "/hf/org/model/resolve/main/config.json";
        for (range, expected) in
            [("bytes=2-6", &CONFIG[2..7]), ("bytes=20-", &CONFIG[20..]), ("bytes=-3", &CONFIG[20..])]
        {
            let (status, headers, body) = call(Method::GET, path, Some(range)).await;
            assert_eq!((status, body.as_ref()), (StatusCode::PARTIAL_CONTENT, expected.as_bytes()), "{range}");
            assert_eq!(headers["content-length"], expected.len().to_string());
            assert!(headers["content-range"].to_str().unwrap().ends_with("/23"));
        }
        let (status, headers, _) = call(Method::GET, path, Some("bytes=23-")).await;
        assert_eq!(
            (status, &headers["content-range"]),
            (StatusCode::RANGE_NOT_SATISFIABLE, &"bytes */23".parse().unwrap())
        );
        let (status, _, body) = call(Method::GET, path, Some("bytes=0-1,3-4")).await;
        assert_eq!((status, body.len()), (StatusCode::OK, 23));
    }

    #[tokio::test]
    async fn what_is_not_served_is_redirected_to_the_upstream() {
        let ask = async |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let response = served(Some("https://hub.test")).oneshot(request).await.unwrap();
            let location = response.headers().get("location").map(|value| value.to_str().unwrap().to_owned());
            (response.status().as_u16(), location)
        };
        for path in [
            "/org/other/resolve/main/config.json",
            "/api/datasets/org/data?full=true",
            "/datasets/org/data/resolve/main/a.csv",
        ] {
            for method in [Method::GET, Method::HEAD, Method::POST] {
                assert_eq!(ask(method, &format!("/hf{path}")).await, (307, Some(format!("https://hub.test{path}"))));
            }
        }
        assert_eq!(ask(Method::GET, "/hf/org/model/resolve/main/config.json").await, (200, None));
        assert_eq!(ask(Method::GET, "/hf/org/model/resolve/main/model.safetensors").await, (404, None));
        assert_eq!(ask(Method::POST, "/hf/org/model/resolve/main/config.json").await, (405, None));
    }
}

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
async fn folders_are_listed_and_their_files_served() {
    let file = |name: &str| (name.to_owned(), name.as_bytes().to_vec());
    let files = ModelFiles::from([file("config.json"), file("additional_chat_templates/tool_use.jinja")]);
    let hub = Hub::default();
    hub.set(&[("org/model".to_owned(), files)].into());
    let router = hub.router(None);
    let ask = |path: &str| {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request);
        async move { to_bytes(answer.await.unwrap().into_body(), usize::MAX).await.unwrap() }
    };
    let listed = ask("/api/models/org/model/tree/main/additional_chat_templates").await;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["path"], "additional_chat_templates/tool_use.jinja");
    let content = ask("/org/model/resolve/main/additional_chat_templates/tool_use.jinja").await;
    assert_eq!(content, "additional_chat_templates/tool_use.jinja");
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
            assert_eq!((status, &headers["x-error-code"]), (StatusCode::NOT_FOUND, &code.parse().unwrap()), "{path}");
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
    for (range, expected) in [("bytes=2-6", &CONFIG[2..7]), ("bytes=20-", &CONFIG[20..]), ("bytes=-3", &CONFIG[20..])] {
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

/// A model folder with weights on disk.
fn with_weights(content: &[u8]) -> (tempfile::TempDir, Router) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("model.safetensors"), content).unwrap();
    for other in ["model.safetensors.index.json", "pytorch_model.bin", "secret.txt"] {
        std::fs::write(dir.path().join(other), "{}").unwrap();
    }
    let hub = Hub::default();
    hub.set(&BTreeMap::from([("m".to_owned(), ModelFiles::from([("config.json".to_owned(), b"{}".to_vec())]))]));
    hub.offer_weights("m", weight_files(dir.path()).unwrap());
    (dir, Router::new().nest("/hf", hub.router(None)))
}

#[tokio::test]
async fn weights_that_are_offered_are_streamed_in_whole_or_in_part() {
    let content: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
    let (_dir, router) = with_weights(&content);
    let ask = async |method: Method, file: &str, range: Option<&str>| {
        let request = Request::builder().method(method).uri(format!("/hf/m/resolve/main/{file}"));
        let request = range.into_iter().fold(request, |request, range| request.header("range", range));
        let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap())
    };
    let (status, head, body) = ask(Method::HEAD, "model.safetensors", None).await;
    assert_eq!((status, body.len(), &head["content-length"]), (StatusCode::OK, 0, &"700000".parse().unwrap()));
    assert_eq!(head["etag"].to_str().unwrap(), format!("\"{}\"", hex(&Sha256::digest(&content))));
    let (status, headers, body) = ask(Method::GET, "model.safetensors", None).await;
    assert_eq!((status, headers["etag"] == head["etag"], body == content), (StatusCode::OK, true, true));
    let (status, headers, body) = ask(Method::GET, "model.safetensors", Some("bytes=300000-")).await;
    assert_eq!((status, body[..] == content[300_000..]), (StatusCode::PARTIAL_CONTENT, true));
    assert_eq!(headers["content-range"], "bytes 300000-699999/700000");
    assert_eq!(ask(Method::GET, "model.safetensors", Some("bytes=700000-")).await.0, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(ask(Method::GET, "model.safetensors.index.json", None).await.2, "{}");
    for file in ["pytorch_model.bin", "secret.txt", "../m/secret.txt"] {
        assert_eq!(ask(Method::GET, file, None).await.0, StatusCode::NOT_FOUND, "{file}");
    }
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

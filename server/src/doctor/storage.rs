//! The storage: whether an object can be written, read and removed, and how fast.

use std::future::Future;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use bytes::Bytes;
use trainyard_storage::{Storage, StorageError};

use super::Check;

const GROUP: &str = "storage";
/// The time limit of the check. Requests to a bucket are repeated for minutes, which is too long here.
const LIMIT: Duration = Duration::from_secs(30);
const SLOW: Duration = Duration::from_secs(1);
const SIZE: usize = 64 << 10;

pub(super) async fn check(url: &str) -> Vec<Check> {
    let storage = match Storage::open(url) {
        Ok(storage) => storage,
        Err(error) => return vec![failure(url, "open", &error.to_string())],
    };
    if let Some(folder) = storage.local(Path::new(""))
        && !folder.exists()
    {
        return vec![Check::ok(GROUP, "folder", format!("{}, which will be created at the start", folder.display()))];
    }
    match tokio::time::timeout(LIMIT, round_trip(&storage)).await {
        Ok(Ok(times)) => times.into_iter().map(|(name, time)| speed(name, time)).collect(),
        Ok(Err((name, error))) => vec![failure(url, name, &error.to_string())],
        Err(_) => vec![failure(url, "round trip", &format!("no answer in {} s", LIMIT.as_secs()))],
    }
}

/// Measures each step; the error names the step that failed.
async fn round_trip(storage: &Storage) -> Result<Vec<(&'static str, Duration)>, (&'static str, StorageError)> {
    let name = format!(".doctor-{}", process::id());
    let content = Bytes::from(vec![7; SIZE]);
    let put = timed("write", storage.put(&name, content.clone())).await?;
    let read = timed("read", storage.get(&name)).await;
    let removed = timed("remove", storage.remove(vec![name])).await?;
    let (got, read) = read?;
    if got != content {
        let detail = StorageError::NotFound("the object written before".to_owned());
        return Err(("read", detail));
    }
    Ok(vec![("write", put.1), ("read", read), ("remove", removed.1)])
}

async fn timed<T>(
    name: &'static str,
    step: impl Future<Output = Result<T, StorageError>>,
) -> Result<(T, Duration), (&'static str, StorageError)> {
    let start = Instant::now();
    let done = step.await.map_err(|error| (name, error))?;
    Ok((done, start.elapsed()))
}

fn speed(name: &'static str, time: Duration) -> Check {
    let value = format!("{:.1} ms for {} KiB", time.as_secs_f64() * 1e3, SIZE >> 10);
    if time > SLOW {
        let advice = "saves and large requests wait for it: use a storage nearer to the server";
        return Check::warning(GROUP, name, value, advice);
    }
    Check::ok(GROUP, name, value)
}

fn failure(url: &str, name: &'static str, reason: &str) -> Check {
    let advice = if url.starts_with("s3://") {
        "compare bucket, AWS_ENDPOINT_URL, AWS_REGION and the credentials; they must allow listing, reading, writing and deleting"
    } else {
        "let the server's user write to the folder, or pass another --storage"
    };
    Check::failure(GROUP, name, format!("{url}: {reason}"), advice)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::super::Status;
    use super::*;

    #[tokio::test]
    async fn a_storage_is_tried_and_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let checks = check(dir.path().to_str().unwrap()).await;
        assert_eq!(checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>(), ["write", "read", "remove"]);
        assert!(checks.iter().all(|check| check.status != Status::Failure));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let missing = dir.path().join("none");
        assert_eq!(check(missing.to_str().unwrap()).await[0].status, Status::Ok);
        assert!(!missing.exists());
    }

    #[tokio::test]
    async fn a_storage_that_refuses_is_a_failure() {
        for url in ["/proc", "ftp://host/x"] {
            let checks = check(url).await;
            assert!(checks.len() == 1 && checks[0].status == Status::Failure, "{checks:?}");
            assert!(checks[0].value.contains(url), "{checks:?}");
        }
    }
}

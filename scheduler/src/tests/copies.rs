//! Tests of copies of checkpoints, and of the objects that other tenants may read.

use std::path::PathBuf;

use trainyard_protocol::TinkerPath;

use super::*;
use crate::{CopyDestination, FinishReason, NewCheckpoint, NewCopy, Page, RunFilter, AccessScope};

const PAGE: Page = Page { limit: 10, offset: 0 };

/// Saves a checkpoint of 42 bytes with an existing folder.
async fn save(bench: &Bench, run: &RunId, seq_id: i64, name: &str) -> (TinkerPath, PathBuf) {
    let path: TinkerPath = format!("tinker://{run}/weights/{name}").parse().unwrap();
    let new = NewCheckpoint {
        path: path.clone(),
        overwrite: false,
        dir: PathBuf::from("checkpoints/r/weights").join(name),
        size_bytes: 42,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::from([("step".to_owned(), "1".to_owned())]),
    };
    let folder = bench.dir.path().join(&new.dir);
    std::fs::create_dir_all(&folder).unwrap();
    let request = bench.submit(run, seq_id, RequestKind::SaveWeights).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(new)]);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    (path, folder)
}

fn to_new_session(source: &TinkerPath, reader: &TenantId, key: Option<&str>) -> NewCopy {
    let destination = CopyDestination::NewSession(new_session(key));
    NewCopy { source: source.clone(), reader: reader.clone(), destination, expires_in: None }
}

#[tokio::test]
async fn files_stay_until_neither_source_nor_copy_needs_them() {
    let bench = bench().await;
    let (run, s) = (bench.ready_run(0).await, &bench.scheduler);
    let (source, folder) = save(&bench, &run, 1, "a").await;
    let copy = s.copy_checkpoint(&bench.me, to_new_session(&source, &bench.me, None)).await.unwrap();
    let found = s.checkpoint(&bench.me, &copy).await.unwrap();
    assert_eq!((found.size_bytes, found.user_metadata["step"].as_str(), found.public), (42, "1", false));
    s.delete_checkpoint(&bench.me, &source).await.unwrap();
    bench.collect_garbage().await;
    assert!(folder.exists());
    // The session of a copy is over, and its rows go with the copy.
    s.delete_checkpoint(&bench.me, &copy).await.unwrap();
    for _ in 0..200 {
        if !folder.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!folder.exists());
    bench.pass(Duration::from_secs(3 * 24 * 3600));
    s.maintain().await.unwrap();
    assert!(is_not_found(s.run(&bench.me, &copy.run).await));
}

#[tokio::test]
async fn the_run_of_a_copy_accepts_nothing_and_takes_no_place() {
    let bench = Bench::granted(BACKEND, TenantPolicy { max_runs: std::num::NonZero::new(2), ..TenantPolicy::default() }).await;
    let (run, s) = (bench.ready_run(0).await, &bench.scheduler);
    let (source, _) = save(&bench, &run, 1, "a").await;
    let destination = CopyDestination::Run { session: bench.session.clone(), model_seq_id: 1 };
    let copy = NewCopy { destination, ..to_new_session(&source, &bench.me, None) };
    let path = s.copy_checkpoint(&bench.me, copy.clone()).await.unwrap();
    assert_eq!(path.run, RunId::of_session(&bench.session, 1));
    assert_eq!(s.copy_checkpoint(&bench.me, copy.clone()).await.unwrap(), path);
    let refused = s.submit_run(&bench.me, submission(&path.run, 1, RequestKind::Forward)).await;
    assert!(matches!(refused, Err(Error::Invalid(text)) if text.contains("can't be trained")));
    // The run of a copy does not count, and no worker gets it.
    bench.ready_run(2).await;
    let own = CopyDestination::Run { session: bench.session.clone(), model_seq_id: 0 };
    let onto = s.copy_checkpoint(&bench.me, NewCopy { destination: own, ..copy.clone() }).await;
    assert!(matches!(onto, Err(Error::Mismatch(_))));
    s.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    assert_eq!(s.copy_checkpoint(&bench.me, copy.clone()).await.unwrap(), path);
    let next = CopyDestination::Run { session: bench.session.clone(), model_seq_id: 9 };
    let late = s.copy_checkpoint(&bench.me, NewCopy { destination: next, ..copy }).await;
    assert!(matches!(late, Err(Error::SessionFinished { .. })));
}

#[tokio::test]
async fn a_copy_counts_against_the_quota_of_its_tenant() {
    let policy = TenantPolicy { max_storage_bytes: std::num::NonZero::new(100), ..TenantPolicy::default() };
    let bench = Bench::granted(BACKEND, policy).await;
    let (run, s) = (bench.ready_run(0).await, &bench.scheduler);
    let (source, _) = save(&bench, &run, 1, "a").await;
    s.copy_checkpoint(&bench.me, to_new_session(&source, &bench.me, None)).await.unwrap();
    let second = s.copy_checkpoint(&bench.me, to_new_session(&source, &bench.me, None)).await;
    assert!(matches!(&second, Err(Error::Invalid(text)) if text.contains("100")), "{second:?}");
    assert_eq!(s.runs(&bench.me, &RunFilter::default(), PAGE).await.unwrap().1, 2);
    // Other tenants have their own copies.
    let other = TenantId::new("other");
    s.copy_checkpoint(&other, to_new_session(&source, &bench.me, None)).await.unwrap();
}

#[tokio::test]
async fn others_list_and_read_what_is_public_alone() {
    let bench = bench().await;
    let (run, hidden) = (bench.ready_run(0).await, bench.ready_run(1).await);
    let (s, other) = (&bench.scheduler, TenantId::new("other"));
    let (shown, _) = save(&bench, &run, 1, "a").await;
    bench.pass(Duration::from_millis(5));
    save(&bench, &run, 2, "b").await;
    save(&bench, &hidden, 1, "c").await;
    let all = RunFilter { scope: AccessScope::Accessible, project_id: None };
    let visible = async || {
        let runs = s.runs(&other, &all, PAGE).await.unwrap();
        let checkpoints = s.checkpoints(&other, AccessScope::Accessible, PAGE).await.unwrap();
        let paths: Vec<_> = checkpoints.0.into_iter().map(|found| found.path).collect();
        (runs.0.into_iter().map(|run| run.id).collect::<Vec<_>>(), runs.1, paths, checkpoints.1)
    };
    assert_eq!(visible().await, (vec![], 0, vec![], 0));
    assert!(is_not_found(s.readable_run(&other, &run).await));
    s.set_public(&bench.me, &shown, true).await.unwrap();
    assert_eq!(visible().await, (vec![run.clone()], 1, vec![shown.clone()], 1));
    assert_eq!(s.readable_run(&other, &run).await.unwrap().owner, bench.me);
    assert_eq!(s.run_checkpoints(&other, &run, PAGE).await.unwrap().1, 1);
    assert_eq!(s.run_checkpoints(&bench.me, &run, PAGE).await.unwrap().1, 2);
    assert!(is_not_found(s.readable_run(&other, &hidden).await));
    assert!(is_not_found(s.run(&other, &run).await));
    let copy = s.copy_checkpoint(&other, to_new_session(&shown, &other, None)).await.unwrap();
    bench.pass(Duration::from_millis(5));
    assert_eq!(visible().await, (vec![copy.run.clone(), run.clone()], 2, vec![copy, shown.clone()], 2));
    // The tenant's own runs are not listed twice.
    assert_eq!(s.runs(&bench.me, &all, PAGE).await.unwrap().1, 2);
    assert_eq!(s.checkpoints(&bench.me, AccessScope::Accessible, PAGE).await.unwrap().1, 3);
    s.set_ttl(&bench.me, &shown, Some(3600)).await.unwrap();
    bench.pass(Duration::from_secs(3600));
    assert_eq!(visible().await.1, 1);
    assert!(is_not_found(s.readable_run(&other, &run).await));
}

#[tokio::test]
async fn runs_and_sessions_of_a_project_are_listed() {
    let bench = bench().await;
    let s = &bench.scheduler;
    bench.ready_run(0).await;
    let new = NewSession { project_id: Some("p".into()), ..new_session(None) };
    let session = s.create_session(&bench.me, new).await.unwrap();
    let (run, _) = s.submit_create(&bench.me, new_run(&session, 0)).await.unwrap();
    let of = |project: &str| RunFilter { scope: AccessScope::Owned, project_id: Some(project.to_owned()) };
    let (runs, total) = s.runs(&bench.me, &of("p"), PAGE).await.unwrap();
    assert_eq!((runs.into_iter().map(|run| run.id).collect::<Vec<_>>(), total), (vec![run], 1));
    assert_eq!(s.runs(&bench.me, &of("q"), PAGE).await.unwrap().1, 0);
    assert_eq!(s.runs(&TenantId::new("other"), &of("p"), PAGE).await.unwrap().1, 0);
    assert_eq!(s.list_sessions(&bench.me, Some("p"), PAGE).await.unwrap(), vec![session]);
    assert_eq!(s.list_sessions(&bench.me, None, PAGE).await.unwrap().len(), 2);
}

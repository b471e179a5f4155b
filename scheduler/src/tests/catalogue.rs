use std::path::PathBuf;

use trainyard_protocol::TinkerPath;

use super::*;
use crate::{NewCheckpoint, Page};

const PAGE: Page = Page { limit: 10, offset: 0 };

fn checkpoint(run: &RunId, name: &str, expires_in: Option<i64>) -> NewCheckpoint {
    NewCheckpoint {
        path: format!("tinker://{run}/sampler_weights/{name}").parse().unwrap(),
        dir: PathBuf::from("/checkpoints").join(name),
        size_bytes: 42,
        spec: spec(),
        expires_in,
        user_metadata: BTreeMap::new(),
    }
}

async fn save(bench: &Bench, run: &RunId, seq_id: i64, name: &str, expires_in: Option<i64>) -> TinkerPath {
    let request = bench.submit(run, seq_id, RequestKind::SaveWeightsForSampler).await;
    let new = checkpoint(run, name, expires_in);
    let path = new.path.clone();
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(new)]);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    path
}

#[tokio::test]
async fn a_checkpoint_is_there_once_its_save_succeeded() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let path = save(&bench, &run, 1, "a", None).await;
    bench.pass(Duration::from_millis(5));
    save(&bench, &run, 2, "b", None).await;
    let s = &bench.scheduler;
    let found = s.checkpoint(&bench.me, &path).await.unwrap();
    assert_eq!((found.size_bytes, found.public, found.expires_at), (42, false, None));
    let (listed, total) = s.checkpoints(&bench.me, Some(&run), Page { limit: 1, offset: 0 }).await.unwrap();
    assert_eq!((listed[0].path.name.as_str(), total), ("b", 2));
    let sampling = NewSamplingSession { model_path: Some(path.clone()), ..new_sampling(&bench.session, 9, None) };
    let sampler = s.create_sampling_session(&bench.me, sampling.clone()).await.unwrap();
    let dir = s.sampling_session(&bench.me, &sampler).await.unwrap().checkpoint_dir.clone();
    assert_eq!(dir, Some(PathBuf::from("/checkpoints/a")));
    let wrong = NewSamplingSession { base_model: "other".into(), seq_id: 10, ..sampling };
    assert!(matches!(s.create_sampling_session(&bench.me, wrong).await, Err(Error::Invalid(_))));
    assert_eq!(s.delete_checkpoint(&bench.me, &path).await.unwrap(), found);
    assert!(is_not_found(s.delete_checkpoint(&bench.me, &path).await));
    assert_eq!(s.checkpoints(&bench.me, None, PAGE).await.unwrap().1, 1);
}

/// The worker asks right after it completed a save, before anything is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_worker_sees_a_checkpoint_as_soon_as_it_completed_its_save() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    let new = checkpoint(&run, "a", None);
    let path = new.path.clone();
    let work = bench.start().await;
    let has = |tenant: &TenantId| {
        let (scheduler, tenant, path) = (bench.scheduler.clone(), tenant.clone(), path.clone());
        std::thread::spawn(move || scheduler.has_checkpoint(&tenant, &path)).join().unwrap().unwrap()
    };
    assert!(!has(&bench.me));
    bench.succeed_with(&work, vec![Effect::Checkpoint(new)]);
    assert!(has(&bench.me) && !has(&TenantId::new("other")));
    bench.scheduler.delete_checkpoint(&bench.me, &path).await.unwrap();
    assert!(!has(&bench.me));
}

#[tokio::test]
async fn a_deleted_checkpoints_folder_leaves_its_place() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let root = tempfile::tempdir().unwrap();
    let new = NewCheckpoint { dir: root.path().join("a"), ..checkpoint(&run, "a", None) };
    std::fs::create_dir(&new.dir).unwrap();
    let path = new.path.clone();
    let request = bench.submit(&run, 1, RequestKind::SaveWeightsForSampler).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(new.clone())]);
    bench.poll(&request).await;
    let deleted = bench.scheduler.delete_checkpoint(&bench.me, &path).await.unwrap();
    assert!(!new.dir.exists() && deleted.dir.exists());
    let name = deleted.dir.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(".a-") && name.ends_with(".saving"), "{name}");
}

#[tokio::test]
async fn only_public_checkpoints_are_read_by_others() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let path = save(&bench, &run, 1, "a", None).await;
    let (s, other) = (&bench.scheduler, TenantId::new("other"));
    assert!(is_not_found(s.checkpoint(&other, &path).await));
    s.set_public(&bench.me, &path, true).await.unwrap();
    assert!(s.checkpoint(&other, &path).await.unwrap().public);
    assert!(is_not_found(s.set_public(&other, &path, false).await));
    assert!(is_not_found(s.set_ttl(&other, &path, None).await));
    assert!(is_not_found(s.delete_checkpoint(&other, &path).await));
    assert_eq!(s.checkpoints(&other, None, PAGE).await.unwrap().1, 0);
    s.set_public(&bench.me, &path, false).await.unwrap();
    assert!(is_not_found(s.checkpoint(&other, &path).await));
}

#[tokio::test]
async fn checkpoints_expire() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let path = save(&bench, &run, 1, "a", Some(3600)).await;
    let kept = save(&bench, &run, 2, "b", Some(3600)).await;
    let s = &bench.scheduler;
    assert!(matches!(s.set_ttl(&bench.me, &kept, Some(10)).await, Err(Error::Invalid(_))));
    s.set_ttl(&bench.me, &kept, None).await.unwrap();
    bench.pass(Duration::from_secs(3600));
    assert!(is_not_found(s.checkpoint(&bench.me, &path).await));
    let expired = s.sweep().await.unwrap().checkpoints;
    assert_eq!(expired.len(), 1);
    assert_eq!((&expired[0].0, &expired[0].1.path), (&bench.me, &path));
    s.delete_checkpoint(&bench.me, &path).await.unwrap();
    assert!(s.expired_checkpoints().await.unwrap().is_empty());
    s.checkpoint(&bench.me, &kept).await.unwrap();
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    let bench = bench().await;
    let one = bench.ready_run(0).await;
    bench.pass(Duration::from_secs(5));
    let two = bench.ready_run(1).await;
    let (runs, total) = bench.scheduler.runs(&bench.me, PAGE).await.unwrap();
    assert_eq!((runs.iter().map(|run| &run.id).collect::<Vec<_>>(), total), (vec![&two, &one], 2));
    assert_eq!(runs[0].spec, spec());
    bench.pass(Duration::from_secs(5));
    bench.submit(&one, 1, RequestKind::Forward).await;
    let run = bench.scheduler.run(&bench.me, &one).await.unwrap();
    assert_eq!(run.last_request_at.as_millis() - run.created_at.as_millis(), 10_000);
}

use std::path::PathBuf;

use trainyard_protocol::{CheckpointKind, TinkerPath};

use super::*;
use crate::{CheckpointSearch, FinishReason, NewCheckpoint, Page, RunFilter, AccessScope};

const PAGE: Page = Page { limit: 10, offset: 0 };

fn checkpoint(run: &RunId, name: &str, expires_in: Option<i64>) -> NewCheckpoint {
    NewCheckpoint {
        path: format!("tinker://{run}/sampler_weights/{name}").parse().unwrap(),
        overwrite: true,
        dir: PathBuf::from("checkpoints").join(name),
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
    let (listed, total) = s.run_checkpoints(&bench.me, &run, Page { limit: 1, offset: 0 }).await.unwrap();
    assert_eq!((listed[0].path.name.as_str(), total), ("b", 2));
    let sampling = NewSamplingSession { model_path: Some(path.clone()), ..new_sampling(&bench.session, 9, None) };
    let sampler = s.create_sampling_session(&bench.me, sampling.clone()).await.unwrap();
    let dir = s.sampling_session(&bench.me, &sampler).await.unwrap().checkpoint_dir.clone();
    assert_eq!(dir, Some(PathBuf::from("checkpoints/a")));
    let wrong = NewSamplingSession { base_model: "other".into(), seq_id: 10, ..sampling };
    assert!(matches!(s.create_sampling_session(&bench.me, wrong).await, Err(Error::Invalid(_))));
    assert_eq!(s.delete_checkpoint(&bench.me, &path).await.unwrap(), found);
    assert!(is_not_found(s.delete_checkpoint(&bench.me, &path).await));
    assert_eq!(s.checkpoints(&bench.me, AccessScope::Owned, PAGE).await.unwrap().1, 1);
}

/// A page is refused when its metadata is more than 16 MiB, and a search returns less of it.
#[tokio::test]
async fn pages_of_large_metadata_are_refused_and_searches_go_on() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for number in 0..20 {
        bench.pass(Duration::from_secs(1));
        let request = bench.submit(&run, number + 1, RequestKind::SaveWeightsForSampler).await;
        let user_metadata = BTreeMap::from([("text".to_owned(), "x".repeat(1 << 20))]);
        let new = NewCheckpoint { user_metadata, ..checkpoint(&run, &format!("n{number}"), None) };
        bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(new)]);
        assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    }
    let s = &bench.scheduler;
    let page = |limit| s.checkpoints(&bench.me, AccessScope::Owned, Page { limit, offset: 0 });
    let Err(Error::Invalid(text)) = page(1_000).await else { panic!("a page of 20 MiB was returned") };
    assert!(text.starts_with("limit: the page has more than 16 MiB of user_metadata, which its first 15 entries"), "{text}");
    assert_eq!(page(15).await.unwrap().0.len(), 15);
    let newest = s.newest_checkpoint(&bench.me, &run, CheckpointKind::Sampler).await.unwrap();
    assert_eq!(newest.unwrap().path.name.as_str(), "n19");
    assert_eq!(s.newest_checkpoint(&bench.me, &run, CheckpointKind::Training).await.unwrap(), None);
    for scope in [AccessScope::Owned, AccessScope::Accessible] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let search = CheckpointSearch {
                scope,
                owners: None,
                project_ids: None,
                user_metadata: BTreeMap::new(),
                kind: None,
                base_models: None,
                limit: 200,
                after,
            };
            let found = s.search_checkpoints(&bench.me, &search).await.unwrap();
            assert!(found.checkpoints.len() <= 15);
            seen.extend(found.checkpoints.into_iter().map(|checkpoint| checkpoint.path.name.to_string()));
            after = found.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..20).rev().map(|number| format!("n{number}")).collect::<Vec<_>>());
    }
}

/// A checkpoint with a folder that is there.
async fn save_folder(bench: &Bench, run: &RunId, seq_id: i64, dir: &str, overwrite: bool) -> (Poll, PathBuf) {
    let new = NewCheckpoint { dir: PathBuf::from(dir), overwrite, ..checkpoint(run, "a", None) };
    let folder = bench.dir.path().join(dir);
    std::fs::create_dir_all(&folder).unwrap();
    let request = bench.submit(run, seq_id, RequestKind::SaveWeightsForSampler).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(new)]);
    (bench.poll(&request).await, folder)
}

/// Folders are removed shortly after the commit.
async fn gone(folder: &std::path::Path) -> bool {
    for _ in 0..200 {
        if !folder.exists() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

#[tokio::test]
async fn a_folder_goes_with_its_checkpoint() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let (saved, one) = save_folder(&bench, &run, 1, "checkpoints/r/sampler_weights/a.1", false).await;
    assert!(matches!(saved, Poll::Succeeded { .. }));
    let (refused, two) = save_folder(&bench, &run, 2, "checkpoints/r/sampler_weights/a.2", false).await;
    let Poll::Failed(error) = refused else { panic!("{refused:?}") };
    assert!(error.message.contains("\"a\" exists"), "{error}");
    assert!(gone(&two).await && one.exists());
    let (replaced, three) = save_folder(&bench, &run, 3, "checkpoints/r/sampler_weights/a.3", true).await;
    assert!(matches!(replaced, Poll::Succeeded { .. }));
    assert!(gone(&one).await && three.exists());
    let path = checkpoint(&run, "a", None).path;
    let deleted = bench.scheduler.delete_checkpoint(&bench.me, &path).await.unwrap();
    assert_eq!(bench.dir.path().join(deleted.dir), three);
    assert!(!three.exists());
}

#[tokio::test]
async fn a_folder_stays_while_a_sampler_or_a_loaded_run_needs_it() {
    let bench = bench().await;
    let s = &bench.scheduler;
    let run = bench.ready_run(0).await;
    let path = checkpoint(&run, "a", None).path;
    let (_, sampled) = save_folder(&bench, &run, 1, "checkpoints/r/sampler_weights/a.1", true).await;
    let sampling = NewSamplingSession { model_path: Some(path.clone()), ..new_sampling(&bench.session, 9, None) };
    s.create_sampling_session(&bench.me, sampling).await.unwrap();
    let (_, loaded) = save_folder(&bench, &run, 2, "checkpoints/r/sampler_weights/a.2", true).await;
    let request = bench.submit(&run, 3, RequestKind::LoadWeights).await;
    let work = bench.start().await;
    let other = TenantId::new("other");
    assert!(is_not_found(s.pin_load(&other, &request, &path).await));
    let pinned = s.pin_load(&bench.me, &request, &path).await.unwrap();
    assert_eq!(bench.dir.path().join(&pinned), loaded);
    s.delete_checkpoint(&bench.me, &path).await.unwrap();
    bench.succeed(&work);
    bench.poll(&request).await;
    let (_, unneeded) = save_folder(&bench, &run, 4, "checkpoints/r/sampler_weights/a.3", true).await;
    s.delete_checkpoint(&bench.me, &path).await.unwrap();
    assert!(gone(&unneeded).await);
    for folder in [&sampled, &loaded] {
        age(folder);
    }
    bench.collect_garbage().await;
    assert!(sampled.exists() && loaded.exists());
    assert_eq!(s.pin_load(&bench.me, &request, &path).await.unwrap(), pinned, "as it was when it was loaded");
    s.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.collect_garbage().await;
    assert!(!sampled.exists() && !loaded.exists());
}

#[tokio::test]
async fn what_no_row_names_is_removed_after_an_hour() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let (_, saved) = save_folder(&bench, &run, 1, "checkpoints/r/sampler_weights/a.1", true).await;
    let at = |name: &str| bench.dir.path().join(name);
    let (half, fresh) = (at("checkpoints/r/weights/.b.saving"), at("checkpoints/r/weights/c"));
    let (orphan, recent) = (at("blobs/orphan.payload"), at("blobs/recent.payload"));
    for folder in [&half, &fresh] {
        std::fs::create_dir_all(folder).unwrap();
    }
    for file in [&orphan, &recent] {
        std::fs::write(file, b"x").unwrap();
    }
    for path in [&saved, &half, &orphan] {
        age(path);
    }
    bench.collect_garbage().await;
    assert!(saved.exists() && fresh.exists() && recent.exists());
    assert!(!half.exists() && !orphan.exists());
    for path in [&fresh, &recent] {
        age(path);
    }
    bench.scheduler.maintain().await.unwrap();
    assert!(fresh.exists() && recent.exists(), "it is not looked for that often");
    bench.collect_garbage().await;
    assert!(!fresh.exists() && !recent.exists() && saved.exists());
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
    assert_eq!(s.checkpoints(&other, AccessScope::Owned, PAGE).await.unwrap().1, 0);
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
    let expired = s.maintain().await.unwrap().checkpoints;
    assert_eq!(expired.len(), 1);
    assert_eq!((&expired[0].0, &expired[0].1.path), (&bench.me, &path));
    assert!(is_not_found(s.delete_expired_checkpoint(&bench.me, &kept).await));
    s.delete_expired_checkpoint(&bench.me, &path).await.unwrap();
    assert!(s.expired_checkpoints().await.unwrap().is_empty());
    s.checkpoint(&bench.me, &kept).await.unwrap();
}

#[tokio::test]
async fn what_replaces_an_expired_checkpoint_is_not_collected() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let (_, old) = save_folder(&bench, &run, 1, "checkpoints/r/sampler_weights/a.1", true).await;
    let path = checkpoint(&run, "a", None).path;
    let s = &bench.scheduler;
    s.set_ttl(&bench.me, &path, Some(3600)).await.unwrap();
    s.set_public(&bench.me, &path, true).await.unwrap();
    bench.pass(Duration::from_secs(3600));
    let expired = s.maintain().await.unwrap().checkpoints;
    assert_eq!(expired.len(), 1);
    // Its name is free again, for a new checkpoint, which is private like all new ones.
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    let (saved, new) = save_folder(&bench, &run, 2, "checkpoints/r/sampler_weights/a.2", false).await;
    assert!(matches!(saved, Poll::Succeeded { .. }), "{saved:?}");
    assert!(is_not_found(s.delete_expired_checkpoint(&bench.me, &path).await));
    assert!(gone(&old).await && new.exists());
    assert!(!s.checkpoint(&bench.me, &path).await.unwrap().public);
}

#[tokio::test]
async fn runs_of_downloads_are_not_listed() {
    let bench = bench().await;
    let listed = bench.ready_run(0).await;
    let marks = [("created_by", "tinker checkpoint download"), ("created_by", "me"), ("a", "\"created_by\":\"tinker")];
    let mut shown = vec![listed];
    for (number, (key, value)) in marks.into_iter().enumerate() {
        let user_metadata = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let new = NewRun { user_metadata, ..new_run(&bench.session, number as i64 + 1) };
        let (run, _) = bench.scheduler.submit_create(&bench.me, new).await.unwrap();
        if number > 0 {
            shown.push(run);
        } else {
            assert_eq!(bench.scheduler.run(&bench.me, &run).await.unwrap().id, run);
        }
    }
    let (runs, total) = bench.scheduler.runs(&bench.me, &RunFilter::default(), PAGE).await.unwrap();
    let mut found: Vec<_> = runs.into_iter().map(|run| run.id).collect();
    found.sort();
    shown.sort();
    assert_eq!((found, total), (shown, 3));
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    let bench = bench().await;
    let one = bench.ready_run(0).await;
    bench.pass(Duration::from_secs(5));
    let two = bench.ready_run(1).await;
    let (runs, total) = bench.scheduler.runs(&bench.me, &RunFilter::default(), PAGE).await.unwrap();
    assert_eq!((runs.iter().map(|run| &run.id).collect::<Vec<_>>(), total), (vec![&two, &one], 2));
    assert_eq!(runs[0].spec, spec());
    bench.pass(Duration::from_secs(5));
    bench.submit(&one, 1, RequestKind::Forward).await;
    let run = bench.scheduler.run(&bench.me, &one).await.unwrap();
    assert_eq!(run.last_request_at.as_millis() - run.created_at.as_millis(), 10_000);
}

//! Tests of the data that remain of sessions that ended long ago.

use trainyard_protocol::TinkerPath;

use super::*;
use crate::store::db::{connect_as_system, sql};
use crate::{FinishReason, NewCheckpoint, Page, RunFilter};

const PAGE: Page = Page { limit: 10, offset: 0 };
/// Time after which requests of an ended session are deleted.
const LONG_AGO: Duration = Duration::from_secs(2 * 24 * 3600 + 1);

/// Ends the session of a bench, and lets its retention pass.
async fn end_long_ago(bench: &Bench) {
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.pass(LONG_AGO);
    bench.scheduler.maintain().await.unwrap();
}

#[tokio::test]
async fn nothing_is_left_of_a_session_that_ended_long_ago() {
    let bench = bench().await;
    let (run, sampler) = (bench.ready_run(0).await, bench.sampling_session(0).await);
    let sampled = bench.submit_sample(&sampler, 0).await.request_id;
    bench.succeed(&bench.start().await);
    bench.poll(&sampled).await;
    bench.pass(LONG_AGO);
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    bench.scheduler.run(&bench.me, &run).await.unwrap();
    end_long_ago(&bench).await;
    let s = &bench.scheduler;
    assert!(is_not_found(s.poll(&bench.me, &sampled, NO_WAIT).await));
    assert!(is_not_found(s.session(&bench.me, &bench.session).await));
    assert!(is_not_found(s.sampling_session(&bench.me, &sampler).await));
    assert!(is_not_found(s.run(&bench.me, &run).await));
    assert_eq!(s.list_sessions(&bench.me, None, PAGE).await.unwrap(), Vec::new());
    assert_eq!(s.runs(&bench.me, &RunFilter::default(), PAGE).await.unwrap(), (Vec::new(), 0));
}

#[tokio::test]
async fn the_snapshots_of_a_session_that_ended_long_ago_leave_the_storage() {
    let bench = bench().await;
    let (run, sampler) = (bench.ready_run(0).await, bench.sampling_session(0).await);
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    let mut folders = Vec::new();
    for (sql_text, id, dir) in [
        ("UPDATE runs SET snapshot_dir = $2 WHERE id = $1", run.as_str(), "snapshots/r/run"),
        ("UPDATE sampling_sessions SET snapshot_dir = $2 WHERE id = $1", sampler.as_str(), "snapshots/r/sampler"),
    ] {
        sql(sql_text).bind(id).bind(dir).execute(conn).await.unwrap();
        let folder = bench.dir.path().join(dir);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("weights"), "bytes").unwrap();
        folders.push(folder);
    }
    end_long_ago(&bench).await;
    for _ in 0..1_000 {
        if folders.iter().all(|folder| !folder.exists()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{folders:?} are still there");
}

#[tokio::test]
async fn a_session_stays_as_long_as_a_run_of_it_owns_a_checkpoint() {
    let bench = bench().await;
    let (run, other) = (bench.ready_run(0).await, bench.ready_run(1).await);
    let path: TinkerPath = format!("tinker://{run}/weights/a").parse().unwrap();
    let checkpoint = NewCheckpoint {
        path: path.clone(),
        overwrite: false,
        dir: "checkpoints/a".into(),
        size_bytes: 1,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::new(),
    };
    let request = bench.submit(&run, 1, RequestKind::SaveWeights).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(checkpoint)]);
    bench.poll(&request).await;
    end_long_ago(&bench).await;
    let s = &bench.scheduler;
    assert_eq!(s.list_sessions(&bench.me, None, PAGE).await.unwrap(), vec![bench.session.clone()]);
    assert_eq!(s.session(&bench.me, &bench.session).await.unwrap().training_run_ids, vec![run.clone(), other]);
    assert_eq!(s.run_checkpoints(&bench.me, &run, PAGE).await.unwrap().1, 1);
    s.delete_checkpoint(&bench.me, &path).await.unwrap();
    s.maintain().await.unwrap();
    assert!(is_not_found(s.run(&bench.me, &run).await));
    assert!(is_not_found(s.session(&bench.me, &bench.session).await));
}

#[tokio::test]
async fn a_session_stays_while_requests_of_it_are_unfinished() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let last = bench.submit(&run, 1, RequestKind::Forward).await;
    let work = bench.start().await;
    end_long_ago(&bench).await;
    assert_eq!(bench.scheduler.poll(&bench.me, &last, NO_WAIT).await.unwrap(), Poll::Pending);
    bench.succeed(&work);
    assert!(matches!(bench.poll(&last).await, Poll::Succeeded { .. }));
    bench.scheduler.maintain().await.unwrap();
    assert!(matches!(bench.poll(&last).await, Poll::Succeeded { .. }));
    bench.pass(LONG_AGO);
    bench.scheduler.maintain().await.unwrap();
    assert!(is_not_found(bench.scheduler.poll(&bench.me, &last, NO_WAIT).await));
    assert!(is_not_found(bench.scheduler.session(&bench.me, &bench.session).await));
}

//! Tests of snapshots for sampling in the storage: which are kept, and which are collected.

use super::*;
use crate::MaintenanceOp;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the folder of a snapshot.
fn folder(bench: &Bench, name: &str) -> std::path::PathBuf {
    bench.dir.path().join("snapshots/r").join(name)
}

fn folders(bench: &Bench) -> usize {
    std::fs::read_dir(bench.dir.path().join("snapshots/r")).map_or(0, |entries| entries.count())
}

fn sampler(bench: &Bench, number: i64) -> SamplingSessionId {
    SamplingSessionId::of_session(&bench.session, number)
}

/// Returns the next request that starts. In the meantime, snapshots are written to the storage and dropped from memory.
async fn next_start(bench: &Bench) -> Work {
    loop {
        if let Some(work) = bench.items().await.into_iter().find_map(|item| execute(bench, item)) {
            return work;
        }
    }
}

/// Writes a snapshot to the storage; returns any other work.
fn execute(bench: &Bench, item: WorkItem) -> Option<Work> {
    let WorkItem::Start(work) = item else { return None };
    if work.kind != RequestKind::SaveSnapshot {
        return Some(work);
    }
    let Ok(MaintenanceOp::SaveSnapshot { key }) = serde_json::from_slice(&work.payload) else { panic!("{work:?}") };
    std::fs::create_dir_all(folder(bench, &key)).unwrap();
    let dir = format!("snapshots/r/{key}").into();
    bench.succeed_with(&work, vec![Effect::SnapshotSaved { key, dir }]);
    None
}

/// Saves without a name as request `seq_id` of the run, and executes the resulting work.
async fn save(bench: &Bench, run: &RunId, seq_id: i64) {
    let request = bench.submit(run, seq_id, RequestKind::SaveWeightsForSampler).await;
    let key = format!("k{seq_id}");
    let work = next_start(bench).await;
    assert_eq!(work.request, request);
    bench.succeed_with(&work, vec![Effect::SamplingSession(new_sampling(&bench.session, seq_id, Some(&key)))]);
    bench.poll(&request).await;
    for item in bench.scheduler.take_work() {
        assert_eq!(execute(bench, item), None);
    }
    // Records are written in order: this comes after the records of the save.
    bench.scheduler.create_session(&bench.me, new_session(None)).await.unwrap();
}

/// Saves once a minute.
async fn saves(bench: &Bench, run: &RunId, seq_ids: std::ops::RangeInclusive<i64>) {
    for seq_id in seq_ids {
        save(bench, run, seq_id).await;
        bench.pass(MINUTE);
        bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    }
}

async fn sample_once(bench: &Bench, number: i64, seq_id: i64) {
    let request = bench.submit_sample(&sampler(bench, number), seq_id).await.request_id;
    let work = next_start(bench).await;
    assert_eq!(work.request, request);
    bench.succeed(&work);
    bench.poll(&request).await;
}

/// Waits until folders have been removed.
async fn settled(bench: &Bench, most: usize) {
    for _ in 0..200 {
        if folders(bench) <= most {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} folders", folders(bench));
}

fn is_collected<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(error @ Error::SnapshotCollected { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn snapshots_that_nobody_samples_from_leave_the_storage() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for round in 0..6 {
        // Enough saves for the used snapshot to leave the memory.
        saves(&bench, &run, 9 * round + 1..=9 * round + 9).await;
        sample_once(&bench, 1, round).await;
    }
    // Eight are in memory, of which none is in the storage. Beside the eight saved last there are the used one, and
    // those of the last ten minutes.
    settled(&bench, 12).await;
    assert!(folder(&bench, "k1").exists() && !folder(&bench, "k2").exists());
    sample_once(&bench, 1, 100).await;
    sample_once(&bench, 54, 0).await;
    let text = is_collected(bench.scheduler.submit_sample(&bench.me, sample(&sampler(&bench, 2), 0)).await);
    assert_eq!(
        text,
        format!(
            "the weights of sampling session {} were deleted: weights saved without a name are kept while they are among the \
             last 8 of their run in the storage or were used within the last 600 s; save them again, under a name if they are \
             used rarely",
            sampler(&bench, 2)
        )
    );
    // A restart does not change this.
    let bench = bench.restart(true).await;
    is_collected(bench.scheduler.submit_sample(&bench.me, sample(&sampler(&bench, 2), 0)).await);
}

#[tokio::test]
async fn a_snapshot_with_an_unfinished_sample_stays() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    for seq_id in 1..=10 {
        save(&bench, &run, seq_id).await;
    }
    let waiting = bench.submit_sample(&sampler(&bench, 1), 0).await.request_id;
    let work = next_start(&bench).await;
    assert_eq!(work.request, waiting);
    bench.pass(MINUTE);
    saves(&bench, &run, 11..=40).await;
    settled(&bench, 12).await;
    assert!(folder(&bench, "k1").exists() && !folder(&bench, "k2").exists());
    bench.succeed(&work);
    assert!(matches!(bench.poll(&waiting).await, Poll::Succeeded { .. }));
}

#[tokio::test]
async fn a_recovery_does_not_take_collected_snapshots_again() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    saves(&bench, &run, 1..=40).await;
    settled(&bench, 8).await;
    let kept: Vec<i64> = (1..=40).filter(|n| *n > 32 || folder(&bench, &format!("k{n}")).exists()).collect();
    // A folder that was not removed because the process was killed is found by garbage collection, and no other.
    std::fs::create_dir_all(folder(&bench, "k3")).unwrap();
    let bench = bench.restart(true).await;
    bench.submit(&run, 41, RequestKind::OptimStep).await;
    let mut replayed = Vec::new();
    loop {
        let work = next_start(&bench).await;
        if !work.replay {
            assert_eq!(work.seq_id, 41);
            break;
        }
        replayed.push(work.seq_id);
        bench.succeed(&work);
    }
    assert_eq!(replayed[0], 0);
    assert_eq!(replayed[1..], kept);
    let before = folders(&bench);
    age(&bench.dir.path().join("snapshots"));
    bench.collect_garbage().await;
    assert!(!folder(&bench, "k3").exists());
    assert_eq!(folders(&bench), before - 1);
}

#[tokio::test]
async fn a_sample_that_was_accepted_beside_the_collection_fails_with_its_reason() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    saves(&bench, &run, 1..=20).await;
    // The sample waits for a worker while its snapshot is collected.
    bench.scheduler.begin_drain();
    let request = bench.submit_sample(&sampler(&bench, 19), 0).await.request_id;
    bench.scheduler.core.call(MarkCollected { run: run.clone(), key: "k19".to_owned() }).await.unwrap();
    let bench = bench.restart(true).await;
    let Poll::Failed(error) = bench.poll(&request).await else { panic!("must fail") };
    assert!(error.message.contains("were deleted: weights saved without a name"), "{error}");
}

/// Marks a snapshot in the storage as collected, even if it is in use.
struct MarkCollected {
    run: RunId,
    key: String,
}

impl crate::writer::write::Write for MarkCollected {
    type Output = ();

    fn scope(&self) -> crate::store::db::RowScope {
        crate::store::db::RowScope::System
    }

    async fn apply(
        &mut self,
        conn: &mut crate::store::db::Conn,
        _core: &crate::context::core::Core,
    ) -> Result<(), Error> {
        let dir = std::path::Path::new("snapshots/r/gone");
        crate::store::sampling::set_snapshot_dir(conn, &self.run, &self.key, Some(dir)).await?;
        crate::store::saved_snapshots::collect_snapshot(conn, &self.run, &self.key).await
    }
}

/// A loop of training steps, each with weights to sample from, leaves no row for each of them.
#[tokio::test]
async fn sampling_sessions_without_weights_leave_an_open_session_two_days_later() {
    const COUNT: &str = "SELECT count(*) FROM sampling_sessions WHERE collected";
    const SAMPLES: &str = "SELECT count(*) FROM requests WHERE sampling_session_id IS NOT NULL";
    let bench = bench().await;
    let conn = &mut crate::store::db::connect_as_system(&bench.database.database).await.unwrap();
    let mut count = async |text| crate::store::db::sql(text).scalar::<i64>(conn).await.unwrap().unwrap();
    let run = bench.ready_run(0).await;
    save(&bench, &run, 1).await;
    sample_once(&bench, 1, 0).await;
    saves(&bench, &run, 2..=30).await;
    let collected = count(COUNT).await;
    assert!(collected > 5, "{collected}");
    let refused = bench.scheduler.submit_sample(&bench.me, sample(&sampler(&bench, 1), 1)).await;
    assert!(matches!(refused, Err(Error::SnapshotCollected { .. })), "{refused:?}");
    let day = MINUTE * 24 * 60;
    for expected in [(collected, 1), (collected, 1), (0, 0)] {
        bench.scheduler.maintain().await.unwrap();
        assert_eq!((count(COUNT).await, count(SAMPLES).await), expected);
        bench.pass(day + MINUTE);
        bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    }
    // What is left can be sampled from.
    sample_once(&bench, 30, 0).await;
    let refused = bench.scheduler.submit_sample(&bench.me, sample(&sampler(&bench, 1), 1)).await;
    assert!(is_not_found(refused));
}

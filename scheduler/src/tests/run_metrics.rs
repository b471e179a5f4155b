//! Tests of metrics of training requests: recorded with their results, and deleted with the run.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::store::db::{connect_as_system, sql};
use crate::{FinishReason, LOSS_PER_TOKEN, Measured, MetricCurve, MetricsRange, NewCheckpoint, Page, RunCurves, RunMetrics, RunProgress};

/// Completes a request of a run with one metric.
async fn measure(bench: &Bench, run: &RunId, seq_id: i64, kind: RequestKind, name: &str, value: f64) {
    let request = bench.submit(run, seq_id, kind).await;
    let work = bench.start().await;
    bench.pass(Duration::from_millis(10));
    let metrics = Some(BTreeMap::from([(name.to_owned(), value)]));
    let measured = Measured { metrics, ..Measured::default() };
    bench.scheduler.complete_encoded_by(work.request.clone(), measured, Box::new(move || result(seq_id)));
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
}

async fn read(bench: &Bench, run: &RunId, range: MetricsRange) -> Vec<RunMetrics> {
    bench.scheduler.run_metrics(&bench.me, run, range).await.unwrap().page().await.unwrap()
}

/// Returns the step, kind and value of each row.
fn values(rows: &[RunMetrics]) -> Vec<(i64, i64, &'static str, Option<f64>)> {
    rows.iter().map(|row| (row.step, row.seq_id, row.kind.as_str(), *row.values.values().next().unwrap())).collect()
}

#[tokio::test]
async fn metrics_are_recorded_with_the_result_under_the_step_they_belong_to() {
    let bench = bench().await;
    let (run, other) = (bench.ready_run(0).await, bench.ready_run(1).await);
    measure(&bench, &run, 1, RequestKind::ForwardBackward, "loss", 2.5).await;
    measure(&bench, &run, 2, RequestKind::ForwardBackward, "loss", f64::NAN).await;
    measure(&bench, &run, 3, RequestKind::OptimStep, "norm", 1.0).await;
    // A failed step does not count.
    let failed = bench.submit(&run, 4, RequestKind::OptimStep).await;
    bench.fail(&bench.start().await, "no");
    bench.poll(&failed).await;
    measure(&bench, &other, 1, RequestKind::Forward, "loss", 7.0).await;
    measure(&bench, &run, 5, RequestKind::ForwardBackward, "loss", 2.0).await;
    measure(&bench, &run, 6, RequestKind::OptimStep, "norm", 0.5).await;
    measure(&bench, &run, 7, RequestKind::Forward, "loss", 1.5).await;
    let bench = bench.restart(true).await;
    let rows = read(&bench, &run, MetricsRange::ALL).await;
    let expected = [
        (0, 1, "forward_backward", Some(2.5)),
        (0, 2, "forward_backward", None),
        (0, 3, "optim_step", Some(1.0)),
        (1, 5, "forward_backward", Some(2.0)),
        (1, 6, "optim_step", Some(0.5)),
        (2, 7, "forward", Some(1.5)),
    ];
    assert_eq!(values(&rows), expected);
    assert!(rows.is_sorted_by_key(|row| row.at));
    let steps = MetricsRange { steps: (1, 1), ..MetricsRange::ALL };
    assert_eq!(values(&read(&bench, &run, steps).await), expected[3..5]);
    let times = MetricsRange { times: (rows[1].at, rows[2].at), ..MetricsRange::ALL };
    assert_eq!(values(&read(&bench, &run, times).await), expected[1..3]);
    assert_eq!(values(&read(&bench, &other, MetricsRange::ALL).await), [(0, 1, "forward", Some(7.0))]);
    let stranger = bench.scheduler.run_metrics(&TenantId::new("you"), &run, MetricsRange::ALL).await;
    assert!(is_not_found(stranger.map(drop)));
}

#[tokio::test]
async fn a_reader_goes_on_with_what_a_watch_announced() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    measure(&bench, &run, 1, RequestKind::ForwardBackward, "loss", 2.5).await;
    // PostgreSQL may still announce this row.
    let _ = tokio::time::timeout(Duration::from_millis(200), bench.scheduler.watch_metrics(&run).recorded()).await;
    let mut watch = bench.scheduler.watch_metrics(&run);
    let mut reader = bench.scheduler.run_metrics(&bench.me, &run, MetricsRange::ALL).await.unwrap();
    assert_eq!(reader.page().await.unwrap().len(), 1);
    assert_eq!(reader.page().await.unwrap(), []);
    // A request without metrics does not wake the watch.
    let plain = bench.submit(&run, 2, RequestKind::SaveWeights).await;
    bench.succeed(&bench.start().await);
    bench.poll(&plain).await;
    assert!(tokio::time::timeout(Duration::from_millis(20), watch.recorded()).await.is_err());
    measure(&bench, &run, 3, RequestKind::OptimStep, "norm", 1.0).await;
    tokio::time::timeout(LONG, watch.recorded()).await.unwrap();
    assert_eq!(values(&reader.page().await.unwrap()), [(0, 3, "optim_step", Some(1.0))]);
}

/// Returns the rows of a run as curves.
fn curves_of(rows: &[RunMetrics]) -> RunCurves {
    let mut curves: BTreeMap<(&str, &str), MetricCurve> = BTreeMap::new();
    for row in rows {
        for (name, value) in &row.values {
            let new = || MetricCurve { kind: row.kind, metric: name.clone(), points: Vec::new() };
            let curve = curves.entry((row.kind.as_str(), name)).or_insert_with(new);
            curve.points.push((row.step, row.at.as_millis(), *value));
        }
    }
    RunCurves { requests: rows.len() as u64, complete_from: 0, curves: curves.into_values().collect() }
}

/// Returns all rows of a run.
async fn all(bench: &Bench, run: &RunId, range: MetricsRange) -> Vec<RunMetrics> {
    let mut reader = bench.scheduler.run_metrics(&bench.me, run, range).await.unwrap();
    let mut rows = Vec::new();
    loop {
        let page = reader.page().await.unwrap();
        if page.is_empty() {
            return rows;
        }
        rows.extend(page);
    }
}

#[tokio::test]
async fn curves_hold_what_the_rows_hold() {
    /// Rows with names that JSON escapes, numbers of all lengths, gaps, and metrics that some requests lack.
    const ROWS: &str = r#"
        INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)
        WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2)
        SELECT $1, i / 2, i, 'me', CASE WHEN i % 2 = 0 THEN 'forward_backward' ELSE 'optim_step' END, 5000 + i,
            CASE WHEN i % 7 = 0 THEN '{"a\"b":' || i || '.1234567890123456,"loss:sum":null}'
                WHEN i % 5 = 0 THEN '{}' ELSE '{"loss:sum":-' || i || 'e-3,"z":0.1}' END FROM n"#;
    let bench = bench().await;
    let (run, empty) = (bench.ready_run(0).await, bench.ready_run(1).await);
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    // The rows fill more than two pages of either reader.
    sql(ROWS).bind(run.as_str()).bind(9_001_i64).execute(conn).await.unwrap();
    let read = async |range: &MetricsRange| bench.scheduler.run_curves(&bench.me, &run, range, None, None).await.unwrap();
    let rows = all(&bench, &run, MetricsRange::ALL).await;
    assert_eq!(rows.len(), 9_001);
    assert_eq!(read(&MetricsRange::ALL).await, curves_of(&rows));
    for range in [
        MetricsRange { steps: (100, 2_222), ..MetricsRange::ALL },
        MetricsRange { times: (Timestamp(5_500), Timestamp(13_500)), ..MetricsRange::ALL },
        MetricsRange { steps: (9_999, 10_000), ..MetricsRange::ALL },
    ] {
        assert_eq!(read(&range).await, curves_of(&all(&bench, &run, range.clone()).await), "{range:?}");
    }
    // Select a kind and some metrics.
    let (kind, names) = (RequestKind::OptimStep, BTreeSet::from(["z".to_owned(), "none".to_owned()]));
    let of = Some(&names);
    let found = bench.scheduler.run_curves(&bench.me, &run, &MetricsRange::ALL, Some(kind), of).await.unwrap();
    let mut expected: Vec<RunMetrics> = rows.into_iter().filter(|row| row.kind == kind).collect();
    expected.iter_mut().for_each(|row| row.values.retain(|name, _| names.contains(name)));
    expected.retain(|row| !row.values.is_empty());
    assert_eq!(found, curves_of(&expected));
    let none = bench.scheduler.run_curves(&bench.me, &empty, &MetricsRange::ALL, None, None).await.unwrap();
    assert_eq!(none, RunCurves { requests: 0, complete_from: 0, curves: Vec::new() });
    let you = TenantId::new("you");
    let stranger = bench.scheduler.run_curves(&you, &run, &MetricsRange::ALL, None, None).await;
    assert!(is_not_found(stranger.map(drop)));
}

#[tokio::test]
async fn the_metrics_of_a_long_run_are_thinned_out_and_say_from_where_they_are_complete() {
    const LIMIT: i64 = 2_000;
    /// Two passes and a step in turn.
    const ROWS: &str = "
        INSERT INTO run_metrics (run_id, step, seq_id, tenant, kind, at, metrics)
        WITH RECURSIVE n (i) AS (SELECT CAST($2 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $3)
        SELECT $1, (i - 1) / 3, i, 'me', CASE WHEN i % 3 = 0 THEN 'optim_step' ELSE 'forward_backward' END, i, '{\"loss\":1}' FROM n";
    let bench = bench().await.restart_with_metrics(LIMIT.unsigned_abs()).await;
    let run = bench.ready_run(0).await;
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    let mut before = 0;
    for last in [1_499, 1_500, 2_400, 3_000, 9_000] {
        sql(ROWS).bind(run.as_str()).bind(before + 1).bind(last).execute(conn).await.unwrap();
        // The worker is as far.
        bench.scheduler.core.with_queue(|queue| {
            let requests = (before + 1)..=last;
            requests.for_each(|seq_id| queue.consume(&run, seq_id));
        });
        before = last;
        bench.scheduler.maintain().await.unwrap();
        let rows = all(&bench, &run, MetricsRange::ALL).await;
        let found = bench.scheduler.run_curves(&bench.me, &run, &MetricsRange::ALL, None, None).await.unwrap();
        assert_eq!(found, RunCurves { complete_from: found.complete_from, ..curves_of(&rows) });
        assert!(rows.len() as i64 <= LIMIT && rows.len() as i64 > LIMIT / 3, "{last}: {}", rows.len());
        let missing: Vec<i64> = (1..=last).filter(|seq| rows.iter().all(|row| row.seq_id != *seq)).collect();
        assert_eq!(missing.is_empty(), last == 1_499, "{last}");
        let complete = missing.last().map_or(0, |seq| (seq - 1) / 3 + 1);
        assert!(found.complete_from >= complete && found.complete_from <= (last - LIMIT / 4 - 1) / 3 + 1, "{last}");
        // Steps that stay have their passes, since requests stay in blocks.
        let kept = rows.iter().filter(|row| row.step < found.complete_from).count();
        let whole = (0..found.complete_from).filter(|step| rows.iter().filter(|row| row.step == *step).count() == 3);
        assert!(whole.count() * 3 >= kept * 9 / 10, "{last}");
    }
}

#[tokio::test]
async fn runs_are_listed_by_page_with_how_far_they_are() {
    let bench = bench().await;
    let (a, b, c) = (bench.ready_run(0).await, bench.ready_run(1).await, bench.ready_run(2).await);
    measure(&bench, &a, 1, RequestKind::ForwardBackward, "loss:sum", 2.5).await;
    measure(&bench, &a, 2, RequestKind::OptimStep, "norm", 1.0).await;
    measure(&bench, &a, 3, RequestKind::ForwardBackward, "loss:sum", 1.5).await;
    measure(&bench, &a, 4, RequestKind::Forward, "loss:sum", 9.0).await;
    measure(&bench, &b, 1, RequestKind::ForwardBackward, "loss:sum", f64::INFINITY).await;
    measure(&bench, &b, 2, RequestKind::OptimStep, "norm", 1.0).await;
    measure(&bench, &c, 1, RequestKind::ForwardBackward, LOSS_PER_TOKEN, 0.5).await;
    let progress = |steps, loss| RunProgress { steps, loss, loss_per_token: None };
    let runs = [b.clone(), RunId::new("none"), c.clone(), a.clone()];
    let of_c = RunProgress { loss_per_token: Some(0.5), ..progress(0, None) };
    let expected = [progress(1, None), progress(0, None), of_c, progress(1, Some(1.5))];
    assert_eq!(bench.scheduler.progress_of_runs(&bench.me, &runs).await.unwrap(), expected);
    assert_eq!(bench.scheduler.progress_of_runs(&bench.me, &[]).await.unwrap(), []);
    let you = TenantId::new("you");
    let unseen = [RunProgress::default(), RunProgress::default()];
    assert_eq!(bench.scheduler.progress_of_runs(&you, &[a, b]).await.unwrap(), unseen);
    let listed = async |tenant: &TenantId, limit, offset| {
        let found = bench.scheduler.newest_runs(tenant, Page { limit, offset }).await.unwrap();
        found.into_iter().map(|listed| listed.run.id).collect::<Vec<_>>()
    };
    let all = listed(&bench.me, 10, 0).await;
    assert_eq!(all.len(), 3);
    assert_eq!(listed(&bench.me, 1, 1).await, all[1..2]);
    assert_eq!(listed(&bench.me, 10, 2).await, all[2..]);
    let count = async |tenant, most| bench.scheduler.count_newest_runs(tenant, most).await.unwrap();
    assert_eq!((count(&bench.me, 10).await, count(&bench.me, 2).await, count(&you, 10).await), (3, 2, 0));
    assert_eq!(listed(&you, 10, 0).await, Vec::<RunId>::new());
    let one = bench.scheduler.listed_run(&bench.me, &c).await.unwrap();
    let newest = bench.scheduler.newest_runs(&bench.me, Page { limit: 3, offset: 0 }).await.unwrap();
    assert!(one.run.id == c && newest.contains(&one));
    assert!(is_not_found(bench.scheduler.listed_run(&you, &c).await.map(drop)));
}

#[tokio::test]
async fn metrics_are_deleted_with_their_run() {
    let bench = bench().await;
    let (run, other) = (bench.ready_run(0).await, bench.ready_run(1).await);
    measure(&bench, &run, 1, RequestKind::ForwardBackward, "loss", 2.5).await;
    measure(&bench, &other, 1, RequestKind::ForwardBackward, "loss", 3.5).await;
    let path: trainyard_protocol::TinkerPath = format!("tinker://{run}/weights/a").parse().unwrap();
    let checkpoint = NewCheckpoint {
        path: path.clone(),
        overwrite: false,
        dir: "checkpoints/a".into(),
        size_bytes: 1,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::new(),
    };
    let request = bench.submit(&run, 2, RequestKind::SaveWeights).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(checkpoint)]);
    bench.poll(&request).await;
    bench.scheduler.finish_session(&bench.me, &bench.session, FinishReason::Success, None).await.unwrap();
    bench.pass(Duration::from_secs(2 * 24 * 3600 + 1));
    bench.scheduler.maintain().await.unwrap();
    // A run with a checkpoint stays with its metrics, and so do the other runs of its session.
    assert_eq!(read(&bench, &run, MetricsRange::ALL).await.len(), 1);
    assert_eq!(read(&bench, &other, MetricsRange::ALL).await.len(), 1);
    bench.scheduler.delete_checkpoint(&bench.me, &path).await.unwrap();
    bench.scheduler.maintain().await.unwrap();
    assert!(is_not_found(bench.scheduler.run_metrics(&bench.me, &run, MetricsRange::ALL).await.map(drop)));
    let conn = &mut crate::store::db::connect(&bench.database.database).await.unwrap();
    let left: Option<i64> =
        crate::store::db::sql("SELECT count(*) FROM run_metrics").scalar(conn).await.unwrap();
    assert_eq!(left, Some(0));
}

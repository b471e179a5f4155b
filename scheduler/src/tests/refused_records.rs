//! Tests of records that the database refuses for their own content, each time.

use super::*;
use crate::store::db::{connect_as_system, sql_by};

/// Lets the database refuse successful ends of requests at position 1 of their run or sampling session.
async fn refuse(bench: &Bench) {
    const SQLITE: &str = "CREATE TRIGGER refuse BEFORE UPDATE ON requests WHEN NEW.state = 'succeeded' AND NEW.seq_id = 1
        BEGIN SELECT RAISE(ABORT, 'refused'); END";
    const FUNCTION: &str = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'refused'; END $$";
    const POSTGRES: &str = "CREATE TRIGGER refuse BEFORE UPDATE ON requests FOR EACH ROW
        WHEN (NEW.state = 'succeeded' AND NEW.seq_id = 1) EXECUTE FUNCTION refuse()";
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    sql_by("SELECT 1", FUNCTION).execute(conn).await.unwrap();
    sql_by(SQLITE, POSTGRES).execute(conn).await.unwrap();
}

fn could_not_be_stored(poll: Poll) {
    let Poll::Failed(error) = poll else { panic!("{poll:?}") };
    assert!(error.message.contains("could not be stored"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_can_t_be_stored_fails_its_request_and_the_rest_goes_on() {
    let bench = bench().await;
    let (run, sampler) = (bench.ready_run(0).await, bench.sampling_session(0).await);
    refuse(&bench).await;
    let refused = bench.submit_sample(&sampler, 1).await.request_id;
    bench.succeed(&bench.start().await);
    let forward = bench.submit(&run, 1, RequestKind::Forward).await;
    bench.succeed(&bench.start().await);
    let next = bench.submit(&run, 2, RequestKind::Forward).await;
    bench.succeed(&bench.start().await);
    could_not_be_stored(bench.poll(&refused).await);
    could_not_be_stored(bench.poll(&forward).await);
    assert!(matches!(bench.poll(&next).await, Poll::Succeeded { .. }));
    assert_eq!(bench.scheduler.core.metrics.store.given_up.get(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_such_a_request_changed_in_memory_is_given_up_with_its_result() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    refuse(&bench).await;
    let refused = bench.submit(&run, 1, RequestKind::ForwardBackward).await;
    let next = bench.submit(&run, 2, RequestKind::OptimStep).await;
    bench.succeed(&bench.start().await);
    let early = bench.start().await;
    assert_eq!(early.request, next);
    // It was computed from a gradient that does not count.
    bench.scheduler.complete(early.request, result(99), Vec::new());
    could_not_be_stored(bench.poll(&refused).await);
    let (mut unloaded, mut replayed) = (false, Vec::new());
    loop {
        for item in bench.items().await {
            match item {
                WorkItem::UnloadRun(gone) => unloaded = gone == run,
                WorkItem::Start(work) => {
                    replayed.push((work.seq_id, work.replay));
                    bench.succeed(&work);
                }
                other => panic!("{other:?}"),
            }
        }
        if replayed.iter().any(|(seq_id, _)| *seq_id == 2) {
            break;
        }
    }
    assert!(unloaded);
    assert_eq!(replayed, [(0, true), (2, false)], "the failed request is not part of the run");
    let Poll::Succeeded { payload, .. } = bench.poll(&next).await else { panic!("it succeeds") };
    assert_eq!(payload, Bytes::from("result 2"));
}

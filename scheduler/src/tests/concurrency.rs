use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_submissions_share_transactions() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let before = bench.scheduler.stats();
    let submissions: Vec<_> = (1..=500)
        .map(|seq_id| {
            let (scheduler, tenant) = (bench.scheduler.clone(), bench.me.clone());
            let submission = submission(&run, seq_id, RequestKind::Forward);
            tokio::spawn(async move { scheduler.submit_run(&tenant, submission).await })
        })
        .collect();
    for submitted in submissions {
        submitted.await.unwrap().unwrap();
    }
    let after = bench.scheduler.stats();
    // The process itself writes occasionally, too.
    assert!((500..510).contains(&(after.writes - before.writes)), "{} writes", after.writes - before.writes);
    assert!(
        after.transactions - before.transactions < 100,
        "{} transactions",
        after.transactions - before.transactions
    );
    assert_eq!(after.queued, 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_polls_wait_at_once() {
    let bench = bench().await;
    let sampler = bench.sampling_session(0).await;
    let request = bench.submit_sample(&sampler, 0).await.request_id;
    let polls: Vec<_> = (0..3000)
        .map(|_| {
            let (scheduler, tenant, request) = (bench.scheduler.clone(), bench.me.clone(), request.clone());
            tokio::spawn(async move { scheduler.poll(&tenant, &request, LONG).await })
        })
        .collect();
    let work = bench.start().await;
    bench.succeed(&work);
    for poll in polls {
        assert!(matches!(poll.await.unwrap().unwrap(), Poll::Succeeded { .. }));
    }
}

#[tokio::test]
async fn one_failure_does_not_fail_its_neighbours() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let good = bench.scheduler.submit_run(&bench.me, submission(&run, 1, RequestKind::Forward));
    let unknown = RunId::new("unknown");
    let bad = bench.scheduler.submit_run(&bench.me, submission(&unknown, 1, RequestKind::Forward));
    let other = bench.scheduler.submit_run(&bench.me, submission(&run, 2, RequestKind::Forward));
    let (good, bad, other) = tokio::join!(good, bad, other);
    assert!(good.is_ok() && other.is_ok());
    assert!(is_not_found(bad));
}

#[tokio::test]
async fn activity_is_what_is_accepted_and_ended() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let activity = || bench.scheduler.stats().activity;
    let before = activity();
    let request = bench.submit(&run, 1, RequestKind::Forward).await;
    assert_eq!(activity(), before + 1);
    bench.succeed(&bench.start().await);
    bench.poll(&request).await;
    bench.submit(&run, 1, RequestKind::Forward).await;
    bench.scheduler.heartbeat(&bench.me, &bench.session).await.unwrap();
    assert_eq!(activity(), before + 2);
}

#[tokio::test]
async fn reads_of_a_tenant_leave_connections_to_others() {
    let bench = bench().await;
    let core = &bench.scheduler.core;
    let (_, limit) = core.readers.usage();
    let mut held = Vec::new();
    for _ in 0..limit / 2 {
        held.push(core.reader_of(&bench.me).await.unwrap());
    }
    let further = tokio::time::timeout(Duration::from_millis(300), core.reader_of(&bench.me)).await;
    assert!(further.is_err(), "a tenant holds more than half of {limit} connections");
    held.push(core.reader_of(&TenantId::new("other")).await.unwrap());
    held.push(core.system_reader().await.unwrap());
    held.remove(0);
    core.reader_of(&bench.me).await.unwrap();
}

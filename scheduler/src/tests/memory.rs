//! Tests of memory: runs that do not fit into their worker's together, and results that a process keeps.

use trainyard_protocol::{MemoryPlan, PlanMemory, RunMemory};

use super::fleet::{Fleet, next, report, succeeded};
use super::*;
use crate::MemoryWait;

/// A plan in which one run fills the memory.
struct RoomForOne;

impl PlanMemory for RoomForOne {
    fn plan(&self) -> MemoryPlan {
        MemoryPlan { budget: Some(150), ..MemoryPlan::default() }
    }

    fn run(&self, _spec: &RunSpec) -> Option<RunMemory> {
        Some(RunMemory { bytes: 100, snapshot_bytes: 0 })
    }
}

/// Lets a worker read what a request needs, until the request waits only for memory.
async fn waits(fleet: &Fleet, worker: &Scheduler, request: &RequestId) {
    for _ in 0..1_000 {
        assert_eq!(worker.take_work(), Vec::new());
        if worker.memory_wait(&fleet.me, request).await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{request} does not wait");
}

#[tokio::test]
async fn runs_take_turns_and_every_process_can_tell_who_waits() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    worker.plan_memory_with(Arc::new(RoomForOne));
    let first = fleet.run_of(&worker, 0).await;
    let (second, waiting) = fleet.api.submit_create(&fleet.me, new_run(&fleet.session, 1)).await.unwrap();
    worker.core.claim_work().await.unwrap();
    waits(&fleet, &worker, &waiting.request_id).await;
    // This is written after everything that the worker recorded before.
    fleet.submit(&worker, &second, 1).await;
    let wait = Some(MemoryWait { needed: 100, held: 100, capacity: 150 });
    for process in [&worker, &fleet.api] {
        assert_eq!(process.memory_wait(&fleet.me, &waiting.request_id).await.unwrap(), wait);
        assert_eq!(process.memory_wait(&TenantId::new("other"), &waiting.request_id).await.unwrap(), None);
    }
    fleet.site.pass(Duration::from_secs(1));
    let save = next(&worker).await;
    assert_eq!((save.kind, save.run.as_ref()), (RequestKind::SaveRun, Some(&first)));
    worker.complete(save.request.clone(), result(0), vec![Effect::RunSaved("snapshots/a/b".into())]);
    let created = next(&worker).await;
    assert_eq!(created.request, waiting.request_id);
    report(&worker, &created, "created");
    assert_eq!(fleet.poll(&waiting.request_id).await, succeeded("created"));
    report(&worker, &next(&worker).await, "trained");
    // The first run is loaded again once the second is idle.
    let request = fleet.submit(&fleet.api, &first, 1).await;
    worker.core.claim_work().await.unwrap();
    assert_eq!(fleet.api.memory_wait(&fleet.me, &waiting.request_id).await.unwrap(), None);
    waits(&fleet, &worker, &request).await;
    fleet.site.pass(Duration::from_secs(1));
    let save = next(&worker).await;
    assert_eq!((save.kind, save.run.as_ref()), (RequestKind::SaveRun, Some(&second)));
    worker.complete(save.request.clone(), result(1), vec![Effect::RunSaved("snapshots/c/d".into())]);
    let restore = next(&worker).await;
    assert_eq!((restore.kind, restore.run.as_ref()), (RequestKind::RestoreRun, Some(&first)));
    report(&worker, &restore, "restored");
    let work = next(&worker).await;
    assert_eq!(work.request, request);
    report(&worker, &work, "trained again");
    assert_eq!(fleet.poll(&request).await, succeeded("trained again"));
}

#[tokio::test]
async fn workers_keep_no_results_because_nobody_fetches_them_there() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let run = fleet.run_of(&worker, 0).await;
    let request = fleet.submit(&fleet.api, &run, 1).await;
    report(&worker, &next(&worker).await, "trained");
    assert_eq!(fleet.poll(&request).await, succeeded("trained"));
    assert_eq!(worker.core.results.get(&fleet.me, &request), None);
    let stored = worker.poll(&fleet.me, &request, LONG).await.unwrap();
    assert_eq!(stored, succeeded("trained"));
}

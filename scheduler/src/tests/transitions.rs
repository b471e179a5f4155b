//! Tests that the WHERE clauses allow exactly the transitions that the state enums allow.


use super::*;
use crate::store::results::{self, RequestEnd};
use crate::store::db::{Conn, connect_as_system, sql};
use crate::store::{blobs::StoredBytes, leases, requests, runs};
use crate::{RequestState, RunState};
use crate::execution::crashes::WorkerEnd;

const REQUEST_STATES: [RequestState; 5] = [
    RequestState::Queued,
    RequestState::Running,
    RequestState::Succeeded,
    RequestState::Failed,
    RequestState::Cancelled,
];

/// Creates a database with one run and its creation, without a scheduler.
async fn database() -> (Bench, Conn, RunId, RequestId) {
    let bench = bench().await;
    let (run, request) = bench.create(0).await;
    bench.scheduler.close().await;
    let conn = connect_as_system(&bench.database.database).await.unwrap();
    (bench, conn, run, request)
}

const STATE: &str = "SELECT state FROM requests";

async fn move_to(conn: &mut Conn, request: &RequestId, to: RequestState) -> bool {
    let (now, result, error) = (Timestamp(1), StoredBytes::Inline(Bytes::new()), OpError::user("x"));
    let end = match to {
        RequestState::Queued => {
            let before = sql(STATE).scalar::<String>(conn).await.unwrap();
            sql("UPDATE runs SET worker_id = 'worker'").execute(conn).await.unwrap();
            leases::release_all(conn, Some("worker"), WorkerEnd::Crashed).await.unwrap();
            return before != sql(STATE).scalar::<String>(conn).await.unwrap();
        }
        RequestState::Running => {
            sql("UPDATE runs SET worker_id = 'worker'").execute(conn).await.unwrap();
            return requests::start_requests(conn, "worker", std::slice::from_ref(request)).await.unwrap() == 1;
        }
        RequestState::Succeeded => RequestEnd::Succeeded { encoding: Encoding::Json, result: &result, size: 0, replays: true, metrics: None },
        RequestState::Failed => RequestEnd::Failed(&error),
        RequestState::Cancelled => RequestEnd::Cancelled,
    };
    matches!(results::end_request(conn, request, &end, None, now).await, Ok(Some(_)))
}

#[tokio::test]
async fn a_request_moves_as_its_state_allows() {
    let (_dir, mut conn, _, request) = database().await;
    for from in REQUEST_STATES {
        for to in REQUEST_STATES {
            let text = "UPDATE requests SET state = $1, finished_at = CASE WHEN $2 THEN 1 END";
            sql(text).bind(from.as_str()).bind(from.is_terminal()).execute(&mut conn).await.unwrap();
            assert_eq!(move_to(&mut conn, &request, to).await, from.may_become(to), "{from:?} -> {to:?}");
        }
    }
}

#[tokio::test]
async fn a_run_moves_as_its_state_allows() {
    let (_dir, mut conn, run, _) = database().await;
    for from in [RunState::Creating, RunState::Ready, RunState::Failed] {
        for to in [RunState::Ready, RunState::Failed] {
            sql("UPDATE runs SET state = $1").bind(from.as_str()).execute(&mut conn).await.unwrap();
            let moved = match to {
                RunState::Ready => runs::ready_run(&mut conn, &run).await.unwrap(),
                _ => runs::fail_run(&mut conn, &run, &OpError::user("x"), false).await.unwrap(),
            };
            assert_eq!(moved, from.may_become(to), "{from:?} -> {to:?}");
        }
    }
}

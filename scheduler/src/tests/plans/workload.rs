//! Every statement of the store, executed as the scheduler does.

use std::path::Path;
use std::time::Duration;

use trainyard_protocol::{
    CheckpointKind, OpError, RequestId, RunId, SamplingSessionId, SessionId, TenantId, TinkerPath, UploadId,
};

use super::super::fleet::compute;
use super::super::{new_custom_loss, new_run, new_sampling, new_session, spec};
use super::fill::LOG;
use super::{NOW, Plans};
use crate::execution::crashes::WorkerEnd;
use crate::store::blobs::StoredBytes;
use crate::store::checkpoints::Listed;
use crate::store::db::RowScope;
use crate::store::metrics_thinning::{self, Thinning};
use crate::store::requests::{NewRequest, RequestTarget};
use crate::store::results::{RequestEnd, SampleEnd};
use crate::store::room::{self, Bounded};
use crate::store::runs::ImportRun;
use crate::store::sample_claims::{self, SampleClaim};
use crate::store::{
    api_keys, audit, backup_holds, base_models, browser_sessions, cancellations, checkpoint_search, checkpoints,
    collected_samplers, custom_losses, ended_requests, folders, gc, leases, numerics, organisation_limits,
    organisations, overview, quotas, records, requests, results, run_listing, run_metrics, run_samples, runs, sampling,
    saved_snapshots, session_search, sessions, training_queue, uploads, usage, usage_by_hour, workers, write_probes,
};
use crate::{
    AccessScope, Actor, AuditCategory, CheckpointPosition, Encoding, EngineReport, FinishReason, MetricsRange,
    NewApiKey, NewAuditEntry, NewCheckpoint, NewRunSample, NewUpload, NewUser, NumericsChange, Page, RequestKind, Role,
    RunFilter, SampleStorage, SearchPosition, SessionStatus, Timestamp, Tokens,
};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
const T: Timestamp = Timestamp(NOW);
const LEASE: Duration = Duration::from_secs(15);

pub(super) async fn run(plans: &mut Plans) {
    claims(plans).await;
    sample_claims(plans).await;
    heartbeats(plans).await;
    session_submissions(plans).await;
    submissions(plans).await;
    starts_and_ends(plans).await;
    polls(plans).await;
    quota_checks(plans).await;
    recovery(plans).await;
    sweeps(plans).await;
    collection(plans).await;
    catalogue(plans).await;
    uploads(plans).await;
    directory(plans).await;
    used(plans).await;
    watched(plans).await;
}

async fn uploads(plans: &mut Plans) {
    let (id, dir, file) = (UploadId::new("new"), Path::new("uploads/new"), "f");
    let new = NewUpload { spec: spec(), project_id: None, files: vec![file.to_owned()] };
    let expires_at = T.plus(Duration::from_secs(60));
    plans
        .step(async |conn| {
            uploads::insert_upload(conn, &me(), &id, dir, &new, T, expires_at).await?;
            uploads::insert_piece(conn, &id, file, 0, "p", 4).await?;
            let upload = uploads::upload(conn, &me(), &id, T).await?;
            uploads::set_sizes(conn, &id, &upload.files).await?;
            uploads::delete_pieces(conn, &id, file, 4).await?;
            uploads::set_run(conn, &id, Some(&train("a5")), Some("{}"), expires_at).await?;
            uploads::checked_by_run(conn, &me(), &train("a5")).await?;
            runs::set_imported(conn, &train("a5"), "upload:new").await?;
            uploads::set_end(conn, &id, Ok(&path("e2"))).await?;
            uploads::delete_expired(conn, Timestamp(NOW + DAY)).await
        })
        .await;
    plans.step(async |conn| uploads::open_uploads(conn, &me()).await).await;
    plans.step(async |conn| uploads::next_expiry(conn).await).await;
    let after = CheckpointPosition { created_at: Timestamp(NOW - HOUR), path: path("e500") };
    for (scope, after) in
        [(AccessScope::Owned, None), (AccessScope::Owned, Some(&after)), (AccessScope::Accessible, None)]
    {
        plans.step(async |conn| checkpoint_search::checkpoints_behind(conn, &me(), scope, after, 20, T).await).await;
    }
}

fn me() -> TenantId {
    TenantId::new("me")
}

fn models() -> Vec<String> {
    vec!["base".to_owned()]
}

fn train(session: &str) -> RunId {
    RunId::new(format!("{session}:train:0"))
}

fn sampler(session: &str) -> SamplingSessionId {
    SamplingSessionId::new(format!("{session}:sample:0"))
}

fn path(session: &str) -> TinkerPath {
    format!("tinker://{session}:train:0/weights/c").parse().unwrap()
}

const PAGE: Page = Page { limit: 20, offset: 0 };

async fn claims(plans: &mut Plans) {
    plans.step(async |conn| leases::claim_runs(conn, "w", &models(), 64, true).await).await;
    plans.step(async |conn| leases::count_placed_runs(conn, "base", "w", &["w".to_owned()], true).await).await;
    plans.step(async |conn| leases::runs_of_other_numerics(conn, "w", &models(), true).await).await;
    plans.step(async |conn| leases::holds_run(conn, "w", &train("a999"), 1).await).await;
    plans.step(async |conn| leases::release_run(conn, "w", &train("a999"), 1).await).await;
    plans.step(async |conn| leases::release_all(conn, Some("w"), WorkerEnd::OutOfMemory).await).await;
    plans.step(async |conn| leases::release_all(conn, None, WorkerEnd::OutOfMemory).await).await;
    plans.step(async |conn| leases::owned_runs(conn, "w").await).await;
}

async fn sample_claims(plans: &mut Plans) {
    for movable in [true, false] {
        let (models, waiting, paused) = (models(), [SessionId::new("x")], [TenantId::new("x")]);
        let claim = SampleClaim {
            worker: "w",
            models: &models,
            movable,
            limit: 64,
            newcomers: 8,
            waiting: &waiting,
            paused: &paused,
            continues: true,
        };
        plans.step(async |conn| sample_claims::claim_samples(conn, &claim).await).await;
    }
    plans.step(async |conn| sample_claims::open_sequences(conn, "w", &models(), &[], true).await).await;
    plans.step(async |conn| leases::owned_samples(conn, "w").await).await;
    plans.step(async |conn| leases::release_sample(conn, "w", &RequestId::new("q11"), 1).await).await;
    plans.step(async |conn| requests::open_samples(conn).await).await;
}

async fn heartbeats(plans: &mut Plans) {
    plans
        .step(async |conn| {
            workers::lock_worker(conn, "w").await?;
            workers::register_worker(conn, "w", &models(), &[], LEASE).await?;
            workers::renew_worker(conn, "w", 1, LEASE, &EngineReport::default()).await?;
            workers::is_registered(conn, "w", 1).await?;
            numerics::register_numerics(conn, "w", [(&"base".to_owned(), &compute())]).await?;
            numerics::models_of_other_weights(conn, "w").await?;
            numerics::are_same_weights(conn, "base", "other").await?;
            let change = NumericsChange { at: NOW, from: "a".to_owned(), to: "b".to_owned() };
            numerics::change_numerics(conn, &train("a999"), &change).await?;
            workers::live_workers(conn).await?;
            workers::shortest_lease(conn).await?;
            workers::expired_workers(conn, Some("x")).await?;
            workers::unregistered_holders(conn, Some("x")).await?;
            workers::delete_worker(conn, "w").await
        })
        .await;
    plans.step(async |conn| sessions::touch_session(conn, &SessionId::new("a7"), Timestamp(NOW + 1)).await).await;
}

async fn session_submissions(plans: &mut Plans) {
    let id = SessionId::new("new");
    plans
        .step(async |conn| {
            sessions::session_by_idempotency_key(conn, &me(), "key").await?;
            sessions::insert_session(conn, &me(), &id, &new_session(Some("key")), T).await?;
            runs::insert_run(conn, &me(), &train("new"), &new_run(&id, 0), Some("w"), T).await?;
            let origin = sampling::SamplingOrigin::default();
            sampling::insert_sampling_session(conn, &me(), &new_sampling(&id, 0, Some("k")), origin, T).await
        })
        .await;
    plans.step(async |conn| sessions::session_row(conn, &me(), &SessionId::new("a1")).await).await;
    plans.step(async |conn| sessions::session_status(conn, &SessionId::new("a1")).await).await;
    plans.step(async |conn| sampling::save_of_snapshot(conn, &SessionId::new("a1"), "k77").await).await;
    plans.step(async |conn| checkpoints::hold_checkpoint(conn, &path("e2"), &RowScope::System).await).await;
    plans.step(async |conn| checkpoints::readable_checkpoint(conn, &me(), &path("e2"), T).await).await;
    plans
        .step(async |conn| {
            let id = custom_losses::insert_custom_loss(conn, &me(), &new_custom_loss(&SessionId::new("a2")), T).await?;
            custom_losses::use_custom_loss(conn, &me(), &id, T).await?;
            custom_losses::keep_custom_losses(conn, &me(), &SessionId::new("a2"), 256).await?;
            custom_losses::custom_loss(conn, &me(), &id).await
        })
        .await;
    let expired = SessionStatus::Expired;
    plans
        .step(async |conn| {
            sessions::end_session(conn, &SessionId::new("a9"), &expired, None, T).await?;
            sessions::revive_session(conn, &SessionId::new("a9"), Timestamp(NOW - DAY), T).await
        })
        .await;
}

async fn submissions(plans: &mut Plans) {
    let (tenant, session, payload) = (me(), SessionId::new("a1"), StoredBytes::Inline(vec![1; 100].into()));
    let (run, sampler) = (train("a1"), sampler("a1"));
    let ids: Vec<RequestId> = (0..20).map(|i| RequestId::new(format!("new{i}"))).collect();
    let new = |id, target, seq_id, kind| NewRequest {
        id,
        tenant: &tenant,
        session: &session,
        target,
        seq_id,
        kind,
        num_samples: 1,
        fingerprint: b"f",
        payload: &payload,
        payload_bytes: 100,
        rejected: None,
        worker: None,
        tokens: 10,
        stores: None,
        recorded: kind == RequestKind::Sample,
    };
    plans
        .step(async |conn| {
            let target = RequestTarget::Run(&run);
            runs::session_of_run(conn, &tenant, &run).await?;
            training_queue::queued_training(conn, &tenant, &run).await?;
            let arrived = training_queue::arrived(conn, &tenant, &run).await?.unwrap();
            training_queue::count_arrived(conn, &run, arrived, LOG - 9, arrived.last).await?;
            training_queue::first_missing(conn, &run, LOG - 9, 20).await?;
            requests::insert_request(conn, &new(&ids[0], target, LOG + 1, RequestKind::OptimStep), T).await?;
            runs::touch_run(conn, &run, Timestamp(NOW + HOUR)).await?;
            requests::find_request(conn, &tenant, target, LOG + 1).await
        })
        .await;
    plans
        .step(async |conn| {
            let target = RequestTarget::Sampling(&sampler);
            sampling::sampling_session(conn, &tenant, &sampler).await?;
            let many: Vec<_> =
                (0..).zip(&ids).map(|(i, id)| new(id, target, 5_000_000 + i, RequestKind::Sample)).collect();
            requests::insert_requests(conn, &many, T).await?;
            requests::find_request(conn, &tenant, target, 5_000_000).await
        })
        .await;
}

async fn starts_and_ends(plans: &mut Plans) {
    let ids: Vec<RequestId> = ["q1", "q12", "next-a999"].into_iter().map(RequestId::new).collect();
    plans.step(async |conn| requests::start_requests(conn, "w", &ids).await).await;
    plans.step(async |conn| requests::count_isolated_start(conn, "w", &ids[2]).await).await;
    plans.step(async |conn| requests::payload_of_request(conn, &ids[1]).await).await;
    plans.step(async |conn| requests::request_kind(conn, &me(), &ids[1]).await).await;
    plans.step(async |conn| requests::sessions_of_samples(conn, &ids).await).await;
    plans.step(async |conn| runs::ready_run(conn, &train("a5")).await).await;
    plans.step(async |conn| runs::fail_run(conn, &train("a5"), &OpError::user("x"), false).await).await;
    let result = StoredBytes::Inline(vec![1; 100].into());
    let end = || RequestEnd::Succeeded {
        encoding: Encoding::Json,
        result: &result,
        size: 100,
        replays: false,
        metrics: None,
    };
    plans.step(async |conn| results::end_request(conn, &RequestId::new("next-a999"), &end(), None, T).await).await;
    plans.step(async |conn| results::end_request(conn, &RequestId::new("q12"), &end(), Some(("w", 1)), T).await).await;
    let measured = RequestEnd::Succeeded {
        encoding: Encoding::Json,
        result: &result,
        size: 100,
        replays: true,
        metrics: Some("{}"),
    };
    plans.step(async |conn| results::end_request(conn, &RequestId::new("next-a998"), &measured, None, T).await).await;
    plans
        .step(async |conn| {
            run_metrics::insert_metrics(conn, &me(), &train("a1"), LOG + 1, RequestKind::OptimStep, "{}", T).await
        })
        .await;
    for (range, after) in [
        (MetricsRange::ALL, (-1, -1)),
        (MetricsRange::ALL, (LOG / 4, LOG / 2)),
        (MetricsRange { steps: (LOG / 4, LOG / 4 + 10), ..MetricsRange::ALL }, (LOG / 4, -1)),
    ] {
        plans
            .step(async |conn| {
                run_metrics::metrics_of_run(conn, &me(), &train("a1"), &range, after.0, after.1, 1_000).await
            })
            .await;
        // The answer is one row, however many it joins.
        plans
            .step(async |conn| {
                run_metrics::joined_metrics(conn, &me(), &train("a1"), &range, after.0, after.1, 100).await
            })
            .await;
    }
    stored_samples(plans).await;
    // The request has already ended.
    plans.step(async |conn| results::end_request(conn, &RequestId::new("s1"), &end(), None, T).await).await;
    let session = sampler("a2");
    let samples: Vec<RequestId> = (11..=20).map(|i| RequestId::new(format!("q{i}"))).collect();
    let ended = (11..).zip(&samples).map(|(i, id)| SampleEnd {
        id,
        end: end(),
        claim: ("w", 1),
        session: &session,
        seq_id: 1_000_000 + i,
    });
    let ended: Vec<_> = ended.collect();
    plans.step(async |conn| results::end_samples(conn, &ended, T).await).await;
}

async fn stored_samples(plans: &mut Plans) {
    let (run, request) = (train("a1"), RequestId::new("new"));
    let storage = SampleStorage { run: run.clone(), newest: 1_000 };
    let new = NewRunSample { storage, content: vec![1; 100].into() };
    plans
        .step(async |conn| {
            run_samples::insert_sample(conn, &me(), &request, &sampler("a2"), &new, T).await?;
            run_samples::keep_newest(conn, &run, 1_000).await
        })
        .await;
    plans.step(async |conn| run_samples::newest_samples(conn, &me(), &run, 20).await).await;
    plans.step(async |conn| run_samples::count_samples(conn, &me(), &run).await).await;
    plans.step(async |conn| run_samples::delete_samples_of_run(conn, &me(), &train("a2")).await).await;
    plans.step(async |conn| browser_sessions::end_browser_session(conn, "token", T, T).await).await;
    plans.step(async |conn| browser_sessions::has_ended(conn, "token").await).await;
}

async fn polls(plans: &mut Plans) {
    let (retained, queued) = (RequestId::new("s1"), RequestId::new("q1"));
    plans.step(async |conn| requests::unfinished_of(conn, &[retained.clone(), queued.clone()]).await).await;
    plans.step(async |conn| runs::set_memory_wait(conn, &train("a999"), 1, None).await).await;
    plans.step(async |conn| runs::memory_wait(conn, &me(), &queued).await).await;
    plans.step(async |conn| results::request_result(conn, &me(), &retained).await).await;
    plans.step(async |conn| results::completions_after(conn, &me(), &sampler("a1"), 0, 49_990).await).await;
    let acknowledged: Vec<RequestId> = (0..10).map(|i| RequestId::new(format!("s{i}"))).collect();
    plans.step(async |conn| results::acknowledge_requests(conn, &me(), &acknowledged, T).await).await;
    plans.step(async |conn| records::recorded_result(conn, &me(), &retained).await).await;
    plans.step(async |conn| records::renew_records(conn, &me(), &acknowledged, T, T).await).await;
    plans.step(async |conn| quotas::queued_request(conn, &me(), &queued).await).await;
    plans.step(async |conn| numerics::needs_of_queued(conn, &me(), &queued).await).await;
}

async fn quota_checks(plans: &mut Plans) {
    let rate = std::num::NonZeroU64::new(60).unwrap();
    plans.step(async |conn| quotas::kept_sessions(conn, &me(), 1_000).await).await;
    plans.step(async |conn| quotas::live_runs(conn, &me()).await).await;
    plans.step(async |conn| quotas::queued_tokens(conn, &me()).await).await;
    plans.step(async |conn| quotas::stored_bytes(conn, &me()).await).await;
    plans.step(async |conn| quotas::reserved_bytes(conn, &me()).await).await;
    plans.step(async |conn| quotas::checkpoint_bytes(conn, &train("e1"), "weights").await).await;
    plans.step(async |conn| quotas::spend(conn, &me(), rate, 1, T).await).await;
    plans.step(async |conn| quotas::rate_limit_level(conn, &me()).await).await;
    plans.step(async |conn| quotas::open_requests(conn).await).await;
    plans.step(async |conn| quotas::active_sessions_and_runs(conn).await).await;
}

async fn recovery(plans: &mut Plans) {
    plans.step(async |conn| runs::run_row(conn, &train("a1")).await).await;
    plans.step(async |conn| requests::requests_of_run(conn, &train("a1"), LOG - 99).await).await;
    plans.step(async |conn| requests::snapshots_of_request(conn, &RequestId::new("save5")).await).await;
    plans.step(async |conn| sampling::snapshots_of_run(conn, &train("a1")).await).await;
    let dir = std::path::Path::new("snapshots/a1/new");
    plans.step(async |conn| sampling::set_snapshot_dir(conn, &train("a1"), "k9", Some(dir)).await).await;
    plans.step(async |conn| saved_snapshots::collect_snapshots(conn, &train("a1"), 8, T).await).await;
    plans.step(async |conn| runs::save_run(conn, &train("a1"), LOG, dir).await).await;
    plans.step(async |conn| gc::truncate_log(conn, &train("a5"), 10).await).await;
    plans.step(async |conn| folders::load(conn, &RequestId::new("a1-5")).await).await;
    plans.step(async |conn| folders::insert_load(conn, &RequestId::new("a1-5000"), dir).await).await;
}

async fn sweeps(plans: &mut Plans) {
    let silent = Timestamp(NOW + 1);
    plans.step(async |conn| sessions::sessions_without_heartbeat(conn, silent).await).await;
    let finished = SessionStatus::Finished { reason: FinishReason::Errored, detail: None };
    let session = SessionId::new("a1");
    plans
        .step(async |conn| {
            sessions::end_session(conn, &session, &finished, Some(silent), T).await?;
            cancellations::cancel_next(conn, &session, 10, T).await?;
            let queued = SessionId::new("a2");
            sessions::end_session(conn, &queued, &finished, Some(silent), T).await?;
            assert_eq!(cancellations::cancel_next(conn, &queued, 10, T).await?.len(), 10);
            cancellations::sessions_to_cancel(conn, 10).await
        })
        .await;
    let known = (1..50).map(|i| SessionId::new(format!("a{i}"))).collect::<Vec<_>>();
    plans.step(async |conn| sessions::ended_sessions(conn, known.clone()).await).await;
    plans.step(async |conn| checkpoints::expired_checkpoints(conn, Timestamp(NOW + HOUR + 9)).await).await;
}

async fn bounds(plans: &mut Plans) {
    for (bounded, owner) in [
        (Bounded::Projects, "me"),
        (Bounded::Users, "me"),
        (Bounded::Keys, "me"),
        (Bounded::Runs, "a5"),
        (Bounded::SamplingSessions, "a5"),
    ] {
        plans.step(async |conn| room::ensure_room(conn, bounded, owner).await).await;
    }
    plans.step(async |conn| collected_samplers::delete_collected(conn, Timestamp(NOW)).await).await;
    let thinning = Thinning { after: (-1, -1), to: 9_000, one_of: 2 };
    plans.step(async |conn| metrics_thinning::metrics_span(conn, &train("a1")).await).await;
    plans.step(async |conn| metrics_thinning::complete_from(conn, &train("a1")).await).await;
    plans.step(async |conn| metrics_thinning::thin_out_page(conn, &train("a1"), thinning).await).await;
    let last = Thinning { after: (4_499, 8_990), ..thinning };
    plans.step(async |conn| metrics_thinning::thin_out_page(conn, &train("a1"), last).await).await;
}

async fn collection(plans: &mut Plans) {
    bounds(plans).await;
    // Those of a third of the samples were acknowledged a minute ago.
    plans.step(async |conn| gc::drop_results(conn, Timestamp(NOW - DAY), Timestamp(NOW - 59_999)).await).await;
    plans.step(async |conn| gc::collect_sessions(conn, Timestamp(NOW - 2 * DAY)).await).await;
    let ended = ended_requests::next_ended(&mut plans.conn, Timestamp(NOW), (NOW - HOUR, 0)).await.unwrap();
    assert_eq!(ended.len() as i64, ended_requests::ROWS);
    plans.step(async |conn| ended_requests::next_ended(conn, Timestamp(NOW), (NOW - HOUR, 0)).await).await;
    plans.step(async |conn| ended_requests::delete_ended(conn, &ended).await).await;
    // Most often there is nothing to collect.
    plans.step(async |conn| ended_requests::next_ended(conn, Timestamp(1), (i64::MIN, i64::MIN)).await).await;
    plans.step(async |conn| gc::drop_results(conn, Timestamp(1), Timestamp(1)).await).await;
    plans.step(async |conn| gc::collect_sessions(conn, Timestamp(1)).await).await;
    plans.step(async |conn| checkpoints::expired_checkpoints(conn, Timestamp(1)).await).await;
    plans.step(async |conn| sessions::sessions_without_heartbeat(conn, Timestamp(1)).await).await;
    plans
        .step(async |conn| {
            // Collect until the sessions are deleted.
            while gc::collect_sessions(conn, Timestamp(NOW - 2 * DAY)).await?.is_full {}
            Ok(())
        })
        .await;
    plans.step(async |conn| backup_holds::place_hold(conn, "b", LEASE).await).await;
    plans.step(async |conn| backup_holds::renew_hold(conn, "b", LEASE).await).await;
    plans.step(async |conn| backup_holds::is_held(conn).await).await;
    plans.step(async |conn| backup_holds::release_hold(conn, "b").await).await;
    plans.step(async |conn| write_probes::probe_write(conn, "p").await).await;
    plans.step(async |conn| gc::is_named(conn, "s1.payload").await).await;
    plans.step(async |conn| gc::revisit_session(conn, &train("e1")).await).await;
    for dir in ["checkpoints/e5", "checkpoints/x/9", "snapshots/a1/17", "snapshots/a1/r", "none"] {
        plans.step(async |conn| folders::is_needed(conn, dir.as_ref(), Timestamp(NOW - DAY)).await).await;
    }
}

async fn catalogue(plans: &mut Plans) {
    let new = NewCheckpoint {
        path: path("e9"),
        overwrite: true,
        dir: "checkpoints/e9/new".into(),
        size_bytes: 10,
        spec: spec(),
        expires_in: None,
        user_metadata: std::collections::BTreeMap::new(),
    };
    plans.step(async |conn| checkpoints::upsert_checkpoint(conn, &me(), &new, T).await).await;
    plans.step(async |conn| checkpoints::delete_checkpoint(conn, &me(), &path("e9"), None).await).await;
    plans.step(async |conn| checkpoints::set_checkpoint_expiry(conn, &me(), &path("e9"), None, T).await).await;
    plans.step(async |conn| checkpoints::set_checkpoint_public(conn, &me(), &path("e9"), true, T).await).await;
    for listed in [
        Listed::OfRun(&train("e9")),
        Listed::OfProject("p"),
        Listed::In(AccessScope::Owned),
        Listed::In(AccessScope::Accessible),
    ] {
        plans.step(async |conn| checkpoints::list_checkpoints(conn, &me(), listed, PAGE, T).await).await;
    }
    let training = CheckpointKind::Training;
    plans.step(async |conn| checkpoints::newest_checkpoint(conn, &me(), &train("e9"), training, T).await).await;
    for project in [None, Some("p")] {
        plans.step(async |conn| sessions::list_sessions(conn, &me(), project, PAGE).await).await;
    }
    plans.step(async |conn| sessions::session(conn, &me(), &SessionId::new("a5")).await).await;
    let after = SearchPosition { created_at: Timestamp(NOW - HOUR - 500), session: SessionId::new("e500") };
    for after in [None, Some(&after)] {
        plans.step(async |conn| session_search::sessions_behind(conn, &me(), after, 20).await).await;
    }
    let session = SessionId::new("a5");
    plans.step(async |conn| session_search::searched_session(conn, &me(), &session).await).await;
    plans.step(async |conn| session_search::set_project(conn, &me(), &session, "p").await).await;
    plans.step(async |conn| session_search::timeline(conn, &me(), &session, 100).await).await;
    let many: Vec<String> = (1..20).map(|i| format!("e{i}")).collect();
    plans.step(async |conn| session_search::checkpoints_of_sessions(conn, many.clone(), T).await).await;
    for (scope, project_id) in
        [(AccessScope::Owned, None), (AccessScope::Accessible, None), (AccessScope::Owned, Some("p".to_owned()))]
    {
        let filter = RunFilter { scope, project_id };
        plans.step(async |conn| run_listing::list_runs(conn, &me(), &filter, PAGE, T).await).await;
    }
    plans.step(async |conn| runs::readable_run(conn, &me(), &train("a5"), T).await).await;
    plans.step(async |conn| runs::import_source(conn, &me(), &RunId::new("none")).await).await;
    let copy = ImportRun {
        id: &RunId::new("a5:train:9"),
        session: &SessionId::new("a5"),
        model_seq_id: 9,
        spec: &spec(),
        user_metadata: &std::collections::BTreeMap::new(),
        source: "tinker://e1:train:0/weights/c",
    };
    plans.step(async |conn| runs::insert_import(conn, &me(), &copy, T).await).await;
    plans.step(async |conn| sampling::number_clone(conn, &me(), &sampler("a5")).await).await;
    plans.step(async |conn| runs::run(conn, &me(), &train("a5")).await).await;
    plans.step(async |conn| base_models::base_models(conn).await).await;
    plans.step(async |conn| base_models::base_model_files(conn, "base").await).await;
}

async fn directory(plans: &mut Plans) {
    let (role, name) = (Role::Member, String::new);
    let user = NewUser { email: "a@b".to_owned(), name: name(), role };
    let (digest, email) = ([7; 32], Some("a@b".to_owned()));
    let key = NewApiKey {
        id: 1,
        digest,
        user: email,
        name: name(),
        note: name(),
        hint: name(),
        role: Some(role),
        scopes: None,
        expires_at: None,
    };
    plans
        .step(async |conn| {
            organisations::insert_organisation(conn, &me(), false, T).await?;
            organisations::ensure_organisation(conn, &me()).await?;
            organisations::organisations(conn, None).await?;
            organisations::update_organisation(conn, &me(), Some("Me"), Some(true), T).await?;
            organisation_limits::lock_organisation(conn, &me()).await?;
            let limits = organisation_limits::limits(conn, &me()).await?;
            organisation_limits::set_limits(conn, &me(), &limits).await?;
            organisation_limits::granted(conn).await?;
            organisation_limits::sessions_of_disabled(conn).await?;
            organisations::insert_project(conn, &me(), "p", "p", T).await?;
            organisations::projects(conn, &me()).await?;
            organisations::delete_project(conn, &me(), "p").await?;
            organisations::insert_user(conn, &me(), "u", &user, T).await?;
            organisations::update_user(conn, &me(), "a@b", Some(Role::Admin), None).await?;
            let users = organisations::users(conn, &me(), Some("a@b")).await?;
            api_keys::insert_api_key(conn, &me(), &key, role, users.first(), T).await?;
            organisations::membership(conn, &me(), Some("a@b")).await?;
            api_keys::key_by_digest(conn, &digest).await?;
            api_keys::key_by_id(conn, 1).await?;
            api_keys::api_keys(conn, &me()).await?;
            api_keys::has_api_keys(conn).await?;
            api_keys::revoke_api_key(conn, &me(), 1, T).await
        })
        .await;
    let call = audit::AuditedCall { id: "a".to_owned(), actor: &Actor::service(), request_id: None };
    let entry = NewAuditEntry {
        organisation: me(),
        category: AuditCategory::Checkpoints,
        event: "checkpoint_delete",
        subject: "tinker://x".to_owned(),
        details: serde_json::Map::new(),
    };
    plans.step(async |conn| audit::append_to_audit_log(conn, &call, &entry, T).await).await;
    let (from, to) = (Timestamp(NOW - DAY), Timestamp(NOW + DAY));
    plans.step(async |conn| audit::audit_entries(conn, &me(), Some(AuditCategory::Checkpoints), from, to).await).await;
    plans.step(async |conn| audit::exported_entries(conn, "", Timestamp(NOW)).await).await;
    plans.step(async |conn| audit::delete_entries(conn, Timestamp(1)).await).await;
}

async fn watched(plans: &mut Plans) {
    plans.step(async |conn| overview::queued_by_tenant(conn).await).await;
    plans.step(async |conn| overview::failed_requests(conn, &me(), Timestamp(NOW - DAY), 20).await).await;
    plans.step(async |conn| overview::newest_runs(conn, &me(), Page { limit: 1_000, offset: 0 }).await).await;
    plans.step(async |conn| overview::newest_runs(conn, &me(), Page { limit: 10, offset: 20 }).await).await;
    plans.step(async |conn| overview::listed_run(conn, &me(), &train("a1")).await).await;
    plans.step(async |conn| overview::count_newest_runs(conn, &me(), 100).await).await;
    plans.step(async |conn| overview::progress_of_runs(conn, &me(), &["a1", "a2", "none"].map(train)).await).await;
    plans.step(async |conn| overview::newest_requests(conn, &me(), &train("a1"), 50).await).await;
    plans.step(async |conn| overview::token_rates(conn, &me(), Timestamp(NOW - HOUR), 60_000).await).await;
}

async fn used(plans: &mut Plans) {
    let (sample, step) = (RequestId::new("s1"), RequestId::new("a1-5"));
    let tokens = Tokens { trained: 1, prefill: 2, cached: 3, sampled: 4 };
    let (from, to) = (Timestamp(0), Timestamp(NOW + DAY));
    let ids = [SessionId::new("a1"), SessionId::new("a2")];
    plans
        .step(async |conn| {
            usage::insert_usage(conn, &[(&sample, tokens), (&step, tokens)], T).await?;
            usage::hourly_usage(conn, &me(), from, to).await?;
            usage_by_hour::add_up_usage(conn, Timestamp(NOW + DAY)).await?;
            let kept = usage_by_hour::Kept { requests: Timestamp(1), rows: 0, history: Timestamp(1) };
            usage_by_hour::delete_usage(conn, kept).await?;
            usage_by_hour::kept_from(conn, &me()).await?;
            usage::hourly_usage(conn, &me(), from, to).await?;
            usage::request_usage(conn, &me(), from, to, "", 100).await?;
            usage::begin_storage(conn, &path("e2"), 10, T).await?;
            usage::stored_checkpoints(conn, &me(), from, to).await?;
            usage::storage_in_use(conn, &me()).await?;
            usage::metadata_of_sessions(conn, &me(), &ids).await?;
            sessions::set_session_user(conn, &SessionId::new("a1"), "u").await?;
            usage::end_storage(conn, &path("e2"), T).await
        })
        .await;
}

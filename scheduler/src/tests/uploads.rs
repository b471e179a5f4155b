//! Tests of uploads: received pieces stay, in order and without gaps, until the upload is a checkpoint or expires.

use trainyard_protocol::{TinkerPath, UploadId};

use super::*;
use crate::{MAX_OPEN_UPLOADS, NewUpload, Upload, UploadEnd, UploadState};

const DAY: Duration = Duration::from_secs(24 * 3600);
const FILE: &str = "adapter_model.safetensors";

async fn start(bench: &Bench) -> Upload {
    let new = NewUpload { spec: spec(), project_id: None, files: vec![FILE.to_owned()] };
    bench.scheduler.start_upload(&bench.me, new, DAY).await.unwrap()
}

async fn append(bench: &Bench, id: &UploadId, start: u64, bytes: &'static str) -> Result<(), Error> {
    bench.scheduler.append_to_upload(&bench.me, id, FILE, start, Bytes::from_static(bytes.as_bytes())).await
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Invalid(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Returns the content of the pieces, as a worker reads them.
async fn content(bench: &Bench, id: &UploadId) -> String {
    let upload = bench.scheduler.upload(&bench.me, id).await.unwrap();
    let folder = bench.dir.path().join(&upload.dir);
    let read = |(name, length): &(String, u64)| {
        let piece = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(piece.len() as u64, *length);
        piece
    };
    upload.files[FILE].pieces.iter().map(read).collect()
}

#[tokio::test]
async fn what_arrived_survives_a_kill_and_goes_on_where_it_ended() {
    let bench = bench().await;
    let id = start(&bench).await.id;
    assert_eq!(bench.scheduler.begin_upload_file(&bench.me, &id, FILE, Some(8), 0).await.unwrap(), 0);
    append(&bench, &id, 0, "abc").await.unwrap();
    let bench = bench.restart(true).await;
    assert_eq!(bench.scheduler.begin_upload_file(&bench.me, &id, FILE, Some(8), u64::MAX).await.unwrap(), 3);
    for wrong in [0, 2, 4] {
        assert!(refusal(append(&bench, &id, wrong, "x").await).contains("expected the bytes from 3 on"));
    }
    append(&bench, &id, 3, "de").await.unwrap();
    assert!(refusal(append(&bench, &id, 5, "1234").await).contains("expected at most 8 bytes"));
    append(&bench, &id, 5, "fgh").await.unwrap();
    assert_eq!(content(&bench, &id).await, "abcdefgh");
    let upload = bench.scheduler.upload(&bench.me, &id).await.unwrap();
    assert!(upload.files[FILE].is_complete());
    // Refused pieces are not left behind.
    assert_eq!(std::fs::read_dir(bench.dir.path().join(&upload.dir)).unwrap().count(), 3);
    let other = refusal(bench.scheduler.begin_upload_file(&bench.me, &id, FILE, Some(9), u64::MAX).await);
    assert!(other.contains("the size was 8 bytes before"), "{other}");
    // A begin keeps whole pieces before an offset; with another size, nothing.
    assert_eq!(bench.scheduler.begin_upload_file(&bench.me, &id, FILE, None, 4).await.unwrap(), 3);
    assert_eq!(content(&bench, &id).await, "abc");
    assert_eq!(bench.scheduler.begin_upload_file(&bench.me, &id, FILE, None, 0).await.unwrap(), 0);
    append(&bench, &id, 0, "z").await.unwrap();
    assert_eq!(bench.scheduler.end_upload_file(&bench.me, &id, FILE).await.unwrap(), 1);
    assert_eq!(content(&bench, &id).await, "z");
    assert_eq!(std::fs::read_dir(bench.dir.path().join(&upload.dir)).unwrap().count(), 1);
}

#[tokio::test]
async fn another_tenant_finds_nothing() {
    let bench = bench().await;
    let (id, s, other) = (start(&bench).await.id, &bench.scheduler, TenantId::new("other"));
    let run = RunId::new("r");
    for tenant in [&other, &bench.me] {
        let id = if *tenant == other { id.clone() } else { UploadId::new("none") };
        assert!(is_not_found(s.upload(tenant, &id).await));
        assert!(is_not_found(s.begin_upload_file(tenant, &id, FILE, None, 0).await));
        assert!(is_not_found(s.append_to_upload(tenant, &id, FILE, 0, Bytes::from_static(b"x")).await));
        assert!(is_not_found(s.end_upload_file(tenant, &id, FILE).await));
        assert!(is_not_found(s.check_upload(tenant, &id, &run, DAY).await));
        assert!(is_not_found(s.end_upload_check(tenant, &id, &run, UploadEnd::Unchecked).await));
    }
    assert!(is_not_found(s.begin_upload_file(&bench.me, &id, "other.bin", None, 0).await));
    assert_eq!(content(&bench, &id).await, "");
}

#[tokio::test]
async fn a_check_ends_once_and_its_files_go() {
    let bench = bench().await;
    let (upload, s) = (start(&bench).await, &bench.scheduler);
    let (id, folder) = (upload.id, bench.dir.path().join(&upload.dir));
    let run = bench.ready_run(0).await;
    let incomplete = refusal(s.check_upload(&bench.me, &id, &run, DAY).await);
    assert!(incomplete.contains("0 bytes arrived; it is not complete"), "{incomplete}");
    append(&bench, &id, 0, "abc").await.unwrap();
    s.end_upload_file(&bench.me, &id, FILE).await.unwrap();
    let checking = UploadState::Checking(run.clone());
    assert_eq!(s.check_upload(&bench.me, &id, &run, DAY).await.unwrap().state, checking);
    // Another process lost the race, and the checked upload does not change.
    assert_eq!(s.check_upload(&bench.me, &id, &RunId::new("other"), DAY).await.unwrap().state, checking);
    assert!(refusal(append(&bench, &id, 3, "d").await).contains("is finished and can't be changed"));
    assert!(refusal(s.begin_upload_file(&bench.me, &id, FILE, None, 0).await).contains("is finished"));
    s.end_upload_check(&bench.me, &id, &run, UploadEnd::Unchecked).await.unwrap();
    assert_eq!(s.upload(&bench.me, &id).await.unwrap().state, UploadState::Open);
    s.check_upload(&bench.me, &id, &run, DAY).await.unwrap();
    let path: TinkerPath = format!("tinker://{run}/external_weights/upload").parse().unwrap();
    let end = |end| s.end_upload_check(&bench.me, &id, &run, end);
    end(UploadEnd::Checkpoint(path.clone())).await.unwrap();
    assert!(!folder.exists());
    // A repetition removes files that a kill left.
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("left"), "abc").unwrap();
    end(UploadEnd::Refused(OpError::user("late"))).await.unwrap();
    assert!(!folder.exists());
    assert_eq!(s.upload(&bench.me, &id).await.unwrap().state, UploadState::Finished(path));
    let refused = s.submit_run(&bench.me, submission(&run, 1, RequestKind::Forward)).await;
    assert!(matches!(refused, Err(Error::Invalid(text)) if text.contains("can't be trained")));
}

#[tokio::test]
async fn abandoned_uploads_are_deleted_and_others_stay() {
    let bench = bench().await;
    let old = start(&bench).await;
    append(&bench, &old.id, 0, "abc").await.unwrap();
    bench.pass(DAY / 2);
    let young = start(&bench).await;
    append(&bench, &young.id, 0, "abc").await.unwrap();
    bench.pass(DAY / 2 + Duration::from_secs(1));
    assert!(is_not_found(bench.scheduler.upload(&bench.me, &old.id).await), "before it is collected");
    bench.collect_garbage().await;
    assert!(!bench.dir.path().join(&old.dir).exists());
    assert_eq!(content(&bench, &young.id).await, "abc");
}

#[tokio::test]
async fn what_arrives_counts_against_the_storage_quota() {
    let policy = TenantPolicy { max_storage_bytes: std::num::NonZero::new(100), ..TenantPolicy::default() };
    let bench = granted(policy).await;
    let (first, second) = (start(&bench).await.id, start(&bench).await.id);
    let begin = async |id: &UploadId, total| bench.scheduler.begin_upload_file(&bench.me, id, FILE, total, 0).await;
    assert!(refusal(begin(&first, Some(101)).await).contains("max_storage_bytes"));
    begin(&first, Some(90)).await.unwrap();
    assert!(refusal(begin(&second, Some(11)).await).contains("max_storage_bytes"));
    assert!(refusal(append(&bench, &second, 0, "more than ten").await).contains("max_storage_bytes"));
    append(&bench, &second, 0, "ten bytes.").await.unwrap();
    assert_eq!(content(&bench, &second).await, "ten bytes.");
}

#[tokio::test]
async fn a_tenant_has_so_many_open_uploads() {
    let bench = bench().await;
    for _ in 0..MAX_OPEN_UPLOADS {
        start(&bench).await;
    }
    let new = NewUpload { spec: spec(), project_id: None, files: vec![FILE.to_owned()] };
    assert!(refusal(bench.scheduler.start_upload(&bench.me, new.clone(), DAY).await).contains("64 uploads are open"));
    bench.scheduler.start_upload(&TenantId::new("other"), new, DAY).await.unwrap();
    assert_eq!(std::fs::read_dir(bench.dir.path().join("uploads")).unwrap().count(), 65);
}

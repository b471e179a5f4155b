//! Backups of a live service, and their restoration.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::backup::{Backup, BackupError, Manifest, Restore, restore, verify};
use crate::store::blobs::INLINE_LIMIT;
use crate::store::copies::{TABLES, table_names};
use crate::store::db::{connect_as_system, sql};
use crate::store::{backup_holds, schema};
use crate::{Database, NewCheckpoint};



/// Tables that no copy contains: those about processes, and those of the database itself.
const LEFT_OUT: [&str; 10] =
    ["uploads", "upload_pieces", "workers", "worker_numerics", "backup_holds", "write_probes", "audit_prunes", "schema_compatibility", "_sqlx_migrations", "sqlite_sequence"];

fn options_of(bench: &Bench, to: PathBuf) -> Backup {
    Backup {
        database: bench.database.database.clone(),
        storage: Storage::folder(bench.dir.path()),
        to,
        private: vec![bench.dir.path().join("key")],
        release: "test".to_owned(),
        allow_missing: false,
    }
}

async fn backup(options: &Backup) -> Result<Manifest, BackupError> {
    crate::backup::backup(options, std::future::pending()).await
}

/// An empty database with a storage in the same folder.
struct Target {
    dir: TempDir,
    database: TestDatabase,
}

impl Target {
    async fn new(backend: Backend) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = TestDatabase::empty(backend, dir.path()).await;
        Self { dir, database }
    }

    fn restore_of(&self, from: &Path) -> Restore {
        Restore {
            from: from.to_owned(),
            database: self.database.database.clone(),
            storage: Storage::folder(self.dir.path()),
            data_dir: self.dir.path().to_owned(),
        }
    }

    async fn restore(&self, from: &Path) -> Result<Manifest, BackupError> {
        restore(&self.restore_of(from)).await
    }

    /// Opens a process on the restored data, instead of the one of a bench.
    async fn open(self, bench: Bench) -> Bench {
        let Bench { clock, me, session, .. } = bench;
        let Self { dir, database } = self;
        let scheduler = Scheduler::open(options(&dir, &database, &clock)).await.unwrap();
        Bench { dir, database, clock, scheduler, me, session }
    }
}

/// Makes a checkpoint with files, by a request of a run.
async fn save(bench: &Bench, run: &RunId, seq_id: i64, name: &str) -> PathBuf {
    let dir = PathBuf::from(format!("checkpoints/r/weights/{name}"));
    let folder = bench.dir.path().join(&dir);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("weights"), format!("weights of {name}")).unwrap();
    fs::write(folder.join("config"), "{}").unwrap();
    let checkpoint = NewCheckpoint {
        path: format!("tinker://{run}/weights/{name}").parse().unwrap(),
        overwrite: false,
        dir: dir.clone(),
        size_bytes: 1,
        spec: spec(),
        expires_in: None,
        user_metadata: BTreeMap::new(),
    };
    let request = bench.submit(run, seq_id, RequestKind::SaveWeights).await;
    bench.succeed_with(&bench.start().await, vec![Effect::Checkpoint(checkpoint)]);
    assert!(matches!(bench.poll(&request).await, Poll::Succeeded { .. }));
    dir
}

/// A request whose payload, which a replay needs, is a file.
async fn submit_large(bench: &Bench, run: &RunId, seq_id: i64) -> RequestId {
    let payload = Bytes::from(vec![seq_id as u8; INLINE_LIMIT + 1]);
    let large = RunSubmission { payload, ..submission(run, seq_id, RequestKind::ForwardBackward) };
    bench.scheduler.submit_run(&bench.me, large).await.unwrap().request_id
}

/// Returns a service with data in most tables: a run with a checkpoint, done and running work, a sample, a secret.
async fn used() -> (Bench, RunId, RequestId, Work) {
    let bench = bench().await;
    fs::write(bench.dir.path().join("key"), [7; 32]).unwrap();
    let run = bench.ready_run(0).await;
    let large = submit_large(&bench, &run, 1).await;
    bench.succeed(&bench.start().await);
    bench.poll(&large).await;
    save(&bench, &run, 2, "a").await;
    let sampler = bench.sampling_session(0).await;
    bench.submit_sample(&sampler, 0).await;
    bench.succeed(&bench.start().await);
    bench.scheduler.shared_secret("url-signing", vec![0, 255, 1]).await.unwrap();
    bench.submit(&run, 3, RequestKind::OptimStep).await;
    let running = bench.start().await;
    bench.scheduler.observe().await.unwrap();
    (bench, run, large, running)
}

#[tokio::test]
async fn a_backup_of_a_live_service_goes_on_elsewhere() {
    let (bench, run, large, running) = used().await;
    let to = bench.dir.path().join("backup");
    let manifest = backup(&options_of(&bench, to.clone())).await.unwrap();
    assert_eq!((manifest.rows["requests"], manifest.rows["checkpoints"]), (5, 1));
    let target = Target::new(BACKEND).await;
    target.restore(&to).await.unwrap();
    assert_eq!(fs::read(target.dir.path().join("key")).unwrap(), [7; 32]);
    let saved = target.dir.path().join("checkpoints/r/weights/a/weights");
    assert_eq!(fs::read_to_string(saved).unwrap(), "weights of a");
    let restored = target.open(bench).await;
    let Poll::Succeeded { .. } = restored.poll(&large).await else { panic!("the result is lost") };
    assert_eq!(restored.scheduler.shared_secret("url-signing", vec![9]).await.unwrap(), [0, 255, 1]);
    // The run's log, including payloads in files, is replayed; the running request is executed.
    let mut replayed = Vec::new();
    loop {
        let work = restored.start().await;
        replayed.push((work.seq_id, work.payload.len()));
        restored.succeed(&work);
        if work.request == running.request {
            break;
        }
    }
    assert_eq!(replayed.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(replayed[1].1, INLINE_LIMIT + 1);
    assert!(matches!(restored.poll(&running.request).await, Poll::Succeeded { .. }));
    assert!(restored.scheduler.run(&restored.me, &run).await.is_ok());
    // New requests arrive behind the old ones.
    restored.submit(&run, 4, RequestKind::OptimStep).await;
    restored.succeed(&restored.start().await);
}

#[tokio::test]
async fn a_backup_crosses_from_either_store_to_either() {
    let (bench, ..) = used().await;
    bench.scheduler.close().await;
    let to = bench.dir.path().join("backup");
    let manifest = backup(&options_of(&bench, to.clone())).await.unwrap();
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let target = Target::new(backend).await;
        target.restore(&to).await.unwrap();
        let second = target.dir.path().join("backup");
        let options = Backup {
            database: target.database.database.clone(),
            storage: Storage::folder(target.dir.path()),
            to: second.clone(),
            private: vec![target.dir.path().join("key")],
            ..options_of(&bench, second.clone())
        };
        let again = backup(&options).await.unwrap();
        assert_eq!(again.rows, manifest.rows);
        assert_eq!(again.files.keys().collect::<Vec<_>>(), manifest.files.keys().collect::<Vec<_>>());
        for (name, digest) in &manifest.files {
            assert_eq!(again.files[name], *digest, "{name} on {backend:?}");
        }
    }
}

#[tokio::test]
async fn planted_damage_is_found_before_anything_is_restored() {
    let (bench, ..) = used().await;
    let to = bench.dir.path().join("backup");
    let manifest = backup(&options_of(&bench, to.clone())).await.unwrap();
    assert_eq!(verify(&to).unwrap(), manifest);
    let weights = to.join("objects/checkpoints/r/weights/a/weights");
    let (table, strange) = (to.join("tables/requests.jsonl"), to.join("objects/blobs/strange"));
    let damaged = |what: &str| match verify(&to) {
        Err(BackupError::Damaged(text)) => assert!(text.contains(what), "{text}"),
        other => panic!("{what}: {other:?}"),
    };
    let good = fs::read(&weights).unwrap();
    fs::write(&weights, "weights of b").unwrap();
    damaged("checkpoints/r/weights/a/weights differs from the file that was written");
    let target = Target::new(BACKEND).await;
    assert!(matches!(target.restore(&to).await, Err(BackupError::Damaged(_))));
    assert!(!target.dir.path().join("checkpoints").exists());
    fs::remove_file(&weights).unwrap();
    damaged("weights is missing");
    fs::write(&weights, good).unwrap();
    fs::write(&strange, "").unwrap();
    damaged("blobs/strange is not in manifest.json");
    fs::remove_file(&strange).unwrap();
    let rows = fs::read_to_string(&table).unwrap();
    fs::write(&table, rows.lines().next().unwrap()).unwrap();
    damaged("tables/requests.jsonl");
    fs::write(&table, rows).unwrap();
    let listed = fs::read(to.join("manifest.json")).unwrap();
    fs::write(to.join("manifest.json"), &listed[..listed.len() / 2]).unwrap();
    damaged("manifest.json");
}

#[tokio::test]
async fn objects_stay_as_long_as_a_backup_holds_them() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let dir = save(&bench, &run, 1, "a").await;
    let other = save(&bench, &run, 2, "b").await;
    let held = bench.submit(&run, 3, RequestKind::Forward).await;
    bench.succeed(&bench.start().await);
    bench.poll(&held).await;
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    backup_holds::place_hold(conn, "backup", Duration::from_secs(300)).await.unwrap();
    let checkpoint = |name| format!("tinker://{run}/weights/{name}").parse().unwrap();
    bench.scheduler.delete_checkpoint(&bench.me, &checkpoint("a")).await.unwrap();
    assert!(bench.dir.path().join(&dir).exists());
    age(&bench.dir.path().join("checkpoints"));
    bench.collect_garbage().await;
    assert!(bench.dir.path().join(&dir).exists(), "garbage collection did not respect the hold");
    backup_holds::release_hold(conn, "backup").await.unwrap();
    bench.collect_garbage().await;
    assert!(!bench.dir.path().join(&dir).exists());
    bench.scheduler.delete_checkpoint(&bench.me, &checkpoint("b")).await.unwrap();
    assert!(!bench.dir.path().join(&other).exists());
}

#[tokio::test]
async fn a_hold_that_is_not_renewed_expires_and_is_not_renewed_later() {
    let bench = bench().await;
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    backup_holds::place_hold(conn, "dead", Duration::from_secs(300)).await.unwrap();
    assert!(backup_holds::is_held(conn).await.unwrap());
    sql("UPDATE backup_holds SET expires_at = expires_at - 330000").execute(conn).await.unwrap();
    assert!(backup_holds::is_held(conn).await.unwrap(), "a renewal may be about to be committed");
    assert!(!backup_holds::renew_hold(conn, "dead", Duration::from_secs(300)).await.unwrap());
    sql("UPDATE backup_holds SET expires_at = expires_at - 60000").execute(conn).await.unwrap();
    assert!(!backup_holds::is_held(conn).await.unwrap());
    backup_holds::release_hold(conn, "another").await.unwrap();
    let left: Option<i64> = sql("SELECT count(*) FROM backup_holds").scalar(conn).await.unwrap();
    assert_eq!(left, Some(0));
}

#[tokio::test]
async fn deletions_during_backups_leave_none_without_its_objects() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let deleting = async {
        // Each round makes objects and removes those of the round before.
        for round in 0..30 {
            save(&bench, &run, 2 * round + 1, &format!("c{round}")).await;
            let request = submit_large(&bench, &run, 2 * round + 2).await;
            let work = bench.start().await;
            // A failed request no longer needs its payload.
            bench.fail(&work, "no");
            bench.poll(&request).await;
            if round > 0 {
                let path = format!("tinker://{run}/weights/c{}", round - 1).parse().unwrap();
                bench.scheduler.delete_checkpoint(&bench.me, &path).await.unwrap();
            }
        }
    };
    let backups = async {
        for number in 0..8 {
            let to = bench.dir.path().join(format!("backup-{number}"));
            let manifest = backup(&options_of(&bench, to.clone())).await.unwrap();
            assert_eq!(manifest.missing, BTreeSet::new());
            verify(&to).unwrap();
        }
    };
    tokio::join!(deleting, backups);
}

#[tokio::test]
async fn a_storage_that_lacks_something_is_reported() {
    let bench = bench().await;
    let run = bench.ready_run(0).await;
    let dir = save(&bench, &run, 1, "a").await;
    fs::remove_dir_all(bench.dir.path().join(&dir)).unwrap();
    let options = options_of(&bench, bench.dir.path().join("backup"));
    let Err(BackupError::Missing(missing)) = backup(&options).await else { panic!("nothing is missing") };
    assert_eq!(missing, [dir.to_str().unwrap()]);
    assert!(!options.to.exists());
    let manifest = backup(&Backup { allow_missing: true, ..options }).await.unwrap();
    assert_eq!(manifest.missing.len(), 1);
}

#[tokio::test]
async fn a_target_that_is_not_empty_is_refused_and_an_interrupted_backup_leaves_nothing() {
    let (bench, ..) = used().await;
    let options = options_of(&bench, bench.dir.path().join("backup"));
    let interrupted = crate::backup::backup(&options, std::future::ready(())).await;
    assert!(matches!(interrupted, Err(BackupError::Interrupted)), "{interrupted:?}");
    let left: Vec<_> = fs::read_dir(bench.dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("backup")), "{left:?}");
    assert!(!backup_holds::is_held(&mut connect_as_system(&options.database).await.unwrap()).await.unwrap());
    fs::create_dir(&options.to).unwrap();
    backup(&options).await.unwrap();
    let refused = backup(&options).await;
    assert!(matches!(&refused, Err(BackupError::Refused(text)) if text.contains("is not empty")), "{refused:?}");
}

#[tokio::test]
async fn a_database_or_storage_that_is_not_empty_is_not_restored_into() {
    let (bench, ..) = used().await;
    let to = bench.dir.path().join("backup");
    backup(&options_of(&bench, to.clone())).await.unwrap();
    let refusal = async |target: &Target| match target.restore(&to).await {
        Err(BackupError::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    let target = Target::new(BACKEND).await;
    fs::create_dir_all(target.dir.path().join("snapshots/a/b")).unwrap();
    fs::write(target.dir.path().join("snapshots/a/b/file"), "").unwrap();
    assert!(refusal(&target).await.contains("snapshots/a/b"));
    fs::remove_dir_all(target.dir.path().join("snapshots")).unwrap();
    target.restore(&to).await.unwrap();
    for part in ["blobs", "checkpoints", "snapshots"] {
        fs::remove_dir_all(target.dir.path().join(part)).unwrap();
    }
    assert!(refusal(&target).await.contains("it has rows in"));
    // A schema without rows is accepted.
    let target = Target::new(BACKEND).await;
    crate::migrate(&target.database.database).await.unwrap();
    target.restore(&to).await.unwrap();
}

/// A backup with this schema version and a session, which has only columns without a default.
fn small_backup(dir: &Path, version: i64) {
    const SESSION: &str = concat!(
        r#"["id","tenant","tags","user_metadata","sdk_version","status","created_at"]"#,
        "\n",
        r#"["s","me","[]","{}","0","active",1]"#,
        "\n"
    );
    fs::create_dir_all(dir.join("tables")).unwrap();
    fs::write(dir.join("tables/sessions.jsonl"), SESSION).unwrap();
    let digest = crate::backup::digest(&dir.join("tables/sessions.jsonl")).unwrap();
    let manifest = serde_json::json!({
        "format": 1, "schema_version": version, "release": "9.9.9", "taken_at": 1, "missing": [],
        "rows": {"sessions": 1}, "files": {"tables/sessions.jsonl": digest},
    });
    fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
}

#[tokio::test]
async fn a_backup_of_a_known_schema_is_restored_and_of_any_other_refused() {
    let [old, known, new] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    small_backup(old.path(), schema::INITIAL - 1);
    small_backup(known.path(), schema::INITIAL);
    small_backup(new.path(), schema::newest() + 1);
    let target = Target::new(BACKEND).await;
    for (backup, reason) in [(&new, "use release 9.9.9 or newer"), (&old, "expected 31 or later: restore it with release 9.9.9")] {
        let refused = target.restore(backup.path()).await;
        assert!(matches!(&refused, Err(BackupError::Refused(text)) if text.contains(reason)), "{refused:?}");
    }
    target.restore(known.path()).await.unwrap();
    let conn = &mut connect_as_system(&target.database.database).await.unwrap();
    assert_eq!(schema::version(conn).await.unwrap(), schema::newest());
    let session: Option<String> = sql("SELECT id FROM sessions").scalar(conn).await.unwrap();
    assert_eq!(session.as_deref(), Some("s"));
    // Rows do not go through migrations that were made before.
    let further = Target::new(BACKEND).await;
    crate::migrate(&further.database.database).await.unwrap();
    let conn = &mut connect_as_system(&further.database.database).await.unwrap();
    const FUTURE: &str = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (99, 'future', TRUE, '', 0)";
    sql(FUTURE).execute(conn).await.unwrap();
    let refused = further.restore(known.path()).await;
    assert!(matches!(&refused, Err(BackupError::Refused(text)) if text.contains("and the backup 31")), "{refused:?}");
}

#[tokio::test]
async fn every_table_is_copied_or_left_out_with_intent() {
    let bench = bench().await;
    let there = table_names(&mut connect_as_system(&bench.database.database).await.unwrap()).await.unwrap();
    let unknown: Vec<&String> = there
        .iter()
        .filter(|name| !LEFT_OUT.contains(&name.as_str()) && !TABLES.iter().any(|table| table.name == name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "add {unknown:?} to TABLES of store/copies.rs, or to LEFT_OUT here");
    assert!(TABLES.iter().all(|table| there.iter().any(|name| name == table.name)));
}

#[tokio::test]
async fn a_backup_from_a_bucket_is_one_from_a_folder() {
    let storage = Storage::in_memory();
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("a");
    fs::create_dir(&from).unwrap();
    fs::write(from.join("weights"), vec![3; 20 << 20]).unwrap();
    let (bench, ..) = used().await;
    for blob in bench.blobs() {
        storage.put(&format!("blobs/{blob}"), fs::read(bench.dir.path().join("blobs").join(&blob)).unwrap().into()).await.unwrap();
    }
    storage.publish(&from, Path::new("checkpoints/r/weights/a")).await.unwrap();
    let to = dir.path().join("backup");
    let options = Backup { storage, ..options_of(&bench, to.clone()) };
    let manifest = backup(&options).await.unwrap();
    assert_eq!(manifest.files["objects/checkpoints/r/weights/a/weights"].size, 20 << 20);
    let (target, bucket) = (Target::new(BACKEND).await, Storage::in_memory());
    restore(&Restore { storage: bucket.clone(), ..target.restore_of(&to) }).await.unwrap();
    let fetched = tempfile::tempdir().unwrap();
    bucket.fetch(Path::new("checkpoints/r/weights/a"), fetched.path()).await.unwrap();
    assert_eq!(fs::read(fetched.path().join("weights")).unwrap(), fs::read(from.join("weights")).unwrap());
    for blob in bench.blobs() {
        assert!(!bucket.get(&format!("blobs/{blob}")).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_created() {
    let dir = tempfile::tempdir().unwrap();
    let options = Backup {
        database: Database::Sqlite(dir.path().join("none.db")),
        storage: Storage::folder(dir.path()),
        to: dir.path().join("backup"),
        private: Vec::new(),
        release: String::new(),
        allow_missing: false,
    };
    assert!(matches!(backup(&options).await, Err(BackupError::Refused(_))));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

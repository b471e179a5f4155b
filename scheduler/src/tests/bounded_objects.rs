//! Tests of the most objects that a client may create one by one.

use trainyard_protocol::TenantId;

use super::*;
use crate::budgets::{KEYS, PROJECTS, RUNS, SAMPLERS, UPLOAD_PIECES, USERS};
use crate::store::db::{connect_as_system, sql};
use crate::{NewApiKey, NewUpload, NewUser, Role};

/// A statement that inserts `$1` rows, numbered by `i` from 1.
macro_rules! rows {
    ($insert:literal, $values:literal) => {
        concat!(
            $insert,
            " WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT ",
            $values,
            " FROM n"
        )
    };
}

async fn fill(bench: &Bench, text: &'static str, count: u64, owner: &str) {
    let conn = &mut connect_as_system(&bench.database.database).await.unwrap();
    let count = i64::try_from(count).unwrap();
    assert_eq!(sql(text).bind(count).bind(owner).execute(conn).await.unwrap(), count.unsigned_abs());
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Invalid(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_has_so_many_runs() {
    let bench = bench().await;
    let session = bench.session.as_str();
    let text = rows!(
        "INSERT INTO runs (id, tenant, session_id, model_seq_id, spec, state, user_metadata, created_at, last_request_at)",
        "$2 || ':' || i, 'me', $2, 1000000 + i, '{}', 'failed', '{}', i, i"
    );
    fill(&bench, text, RUNS - 1, session).await;
    bench.create(0).await;
    let refused = refusal(bench.scheduler.submit_create(&bench.me, new_run(&bench.session, 1)).await);
    let expected = format!(
        "session {session} has 4096 training runs, as many as it may have; create another session for further ones"
    );
    assert_eq!(refused, expected);
    // A repetition was accepted before, and another session has runs of its own.
    bench.create(0).await;
    let other = bench.scheduler.create_session(&bench.me, new_session(None)).await.unwrap();
    bench.scheduler.submit_create(&bench.me, new_run(&other, 1)).await.unwrap();
}

#[tokio::test]
async fn a_session_has_so_many_sampling_sessions() {
    let bench = bench().await;
    let text = rows!(
        "INSERT INTO sampling_sessions (id, tenant, session_id, seq_id, base_model, created_at)",
        "$2 || ':' || i, 'me', $2, 1000000 + i, 'base', i"
    );
    fill(&bench, text, SAMPLERS - 1, bench.session.as_str()).await;
    let last = bench.sampling_session(0).await;
    let refused = refusal(bench.scheduler.create_sampling_session(&bench.me, new_sampling(&bench.session, 1, None)).await);
    assert!(refused.contains("has 100000 sampling sessions, as many as it may have; create another session"), "{refused}");
    assert_eq!(bench.sampling_session(0).await, last);
}

#[tokio::test]
async fn an_organisation_has_so_many_users_projects_and_keys() {
    let bench = bench().await;
    let (directory, acme) = (bench.scheduler.directory(), TenantId::new("acme"));
    directory.create_organisation(acme.clone(), false).await.unwrap();
    let users = rows!(
        "INSERT INTO users (id, organisation, email, name, role, created_at)",
        "'u' || i, $2, 'u' || i, '', 'member', i"
    );
    let projects = rows!("INSERT INTO projects (organisation, id, name, created_at)", "$2, 'p' || i, '', i");
    let keys = rows!(
        "INSERT INTO api_keys (id, digest, organisation, name, note, hint, role, created_at)",
        "1000 + i, CAST('digest' || i AS BLOB), $2, '', '', '', 'member', i"
    );
    let keys_on_postgres = rows!(
        "INSERT INTO api_keys (id, digest, organisation, name, note, hint, role, created_at)",
        "1000 + i, convert_to('digest' || i, 'UTF8'), $2, '', '', '', 'member', i"
    );
    let keys = if matches!(BACKEND, Backend::Sqlite) { keys } else { keys_on_postgres };
    for (text, count) in [(users, USERS), (projects, PROJECTS), (keys, KEYS)] {
        fill(&bench, text, count - 1, "acme").await;
    }
    let user = |name: &str| NewUser { email: format!("{name}@acme.example"), name: String::new(), role: Role::Member };
    directory.create_user(acme.clone(), user("ann")).await.unwrap();
    let refused = refusal(directory.create_user(acme.clone(), user("bob")).await);
    assert_eq!(refused, "organisation acme has 100000 users, as many as it may have");
    directory.create_project(acme.clone(), "a".to_owned(), String::new()).await.unwrap();
    let refused = refusal(directory.create_project(acme.clone(), "b".to_owned(), String::new()).await);
    assert_eq!(refused, "organisation acme has 100000 projects, as many as it may have");
    directory.delete_project(acme.clone(), "a".to_owned()).await.unwrap();
    directory.create_project(acme.clone(), "b".to_owned(), String::new()).await.unwrap();
    let key = |id| NewApiKey {
        id,
        digest: [u8::try_from(id).unwrap(); 32],
        user: None,
        name: "ci".to_owned(),
        note: String::new(),
        hint: String::new(),
        role: Some(Role::Member),
        scopes: None,
        expires_at: None,
    };
    directory.create_key(acme.clone(), key(1)).await.unwrap();
    let refused = refusal(directory.create_key(acme, key(2)).await);
    assert_eq!(refused, "organisation acme has 100000 API keys, as many as it may have");
}

#[tokio::test]
async fn a_file_of_an_upload_arrives_in_so_many_pieces() {
    const FILE: &str = "adapter_model.safetensors";
    let bench = bench().await;
    let new = NewUpload { spec: spec(), project_id: None, files: vec![FILE.to_owned()] };
    let id = bench.scheduler.start_upload(&bench.me, new, Duration::from_secs(60)).await.unwrap().id;
    bench.scheduler.begin_upload_file(&bench.me, &id, FILE, None, 0).await.unwrap();
    let text = rows!(
        "INSERT INTO upload_pieces (upload_id, file, start, length, name)",
        "$2, 'adapter_model.safetensors', i - 1, 1, 'p' || i"
    );
    let filled = UPLOAD_PIECES as u64 - 1;
    fill(&bench, text, filled, id.as_str()).await;
    let append = async |start| bench.scheduler.append_to_upload(&bench.me, &id, FILE, start, Bytes::from_static(b"x")).await;
    append(filled).await.unwrap();
    let refused = refusal(append(filled + 1).await);
    assert!(refused.contains("arrived in 65536 pieces, as many as it may; start over with larger ones"), "{refused}");
}

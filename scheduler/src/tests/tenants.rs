//! Tests of organisations, users and keys, and of the audit log of their changes.

use trainyard_protocol::TenantId;

use super::bench;
use crate::store::db::{connect_as_system, sql};
use crate::{
    Actor, AuditCategory, Directory, Error, KeyRefusal, NewApiKey, NewUser, Role, Scope, Timestamp, look_at_store,
};

fn acme() -> TenantId {
    TenantId::new("acme")
}

fn new_key(id: i64, user: Option<&str>) -> NewApiKey {
    NewApiKey {
        id,
        digest: [u8::try_from(id).unwrap(); 32],
        user: user.map(str::to_owned),
        name: "ci".to_owned(),
        note: String::new(),
        hint: "tml-abc".to_owned(),
        role: Some(Role::Member),
        scopes: Some(vec![Scope::Sample]),
        expires_at: None,
    }
}

#[tokio::test]
async fn a_key_is_found_until_it_is_revoked_and_every_change_is_known() {
    let bench = bench().await;
    let directory = bench.scheduler.directory();
    assert!(!directory.has_keys().await.unwrap());
    let look = look_at_store(&bench.database.database).await.unwrap().unwrap();
    assert_eq!(look.has_keys, Some(false));
    directory.create_organisation(acme(), false).await.unwrap();
    assert!(matches!(directory.create_organisation(acme(), true).await, Err(Error::Invalid(_))));
    let new = NewUser { email: "ann@acme.example".to_owned(), name: "Ann".to_owned(), role: Role::Admin };
    directory.create_user(acme(), new.clone()).await.unwrap();
    assert!(matches!(directory.create_user(acme(), new).await, Err(Error::Invalid(_))));
    let unknown = directory.create_key(acme(), new_key(1, Some("bob@acme.example"))).await;
    assert!(matches!(unknown, Err(Error::NotFound { what: "user", .. })), "{unknown:?}");
    directory.create_key(acme(), new_key(1, Some("ann@acme.example"))).await.unwrap();
    assert!(directory.create_key(acme(), new_key(1, None)).await.is_err());
    let found = directory.key(&[1; 32]).await.unwrap().unwrap();
    assert_eq!((found.refusal(Timestamp(0)), found.scopes()), (None, vec![Scope::Sample]));
    assert_eq!(found.user.as_ref().map(|user| user.name.as_str()), Some("Ann"));
    assert_eq!(directory.key(&[2; 32]).await.unwrap(), None);
    assert_eq!(directory.keys(&acme()).await.unwrap(), [found.key]);

    let before = bench.scheduler.directory_version();
    directory.change_user(acme(), "ann@acme.example".to_owned(), None, Some(true)).await.unwrap();
    assert!(bench.scheduler.directory_version() > before);
    let refusal = async || directory.key(&[1; 32]).await.unwrap().unwrap().refusal(Timestamp(0));
    assert_eq!(refusal().await, Some(KeyRefusal::UserDisabled));
    directory.change_user(acme(), "ann@acme.example".to_owned(), Some(Role::Member), Some(false)).await.unwrap();
    assert_eq!(refusal().await, None);

    // Another organisation has no such key.
    directory.create_organisation(TenantId::new("other"), false).await.unwrap();
    assert!(matches!(directory.revoke_key(TenantId::new("other"), 1).await, Err(Error::NotFound { .. })));
    directory.revoke_key(acme(), 1).await.unwrap();
    assert_eq!(refusal().await, Some(KeyRefusal::Revoked));
    assert!(matches!(directory.revoke_key(acme(), 1).await, Err(Error::NotFound { .. })));
    assert!(directory.has_keys().await.unwrap());
    let look = look_at_store(&bench.database.database).await.unwrap().unwrap();
    assert_eq!(look.has_keys, Some(true));
}

#[tokio::test]
async fn a_key_has_the_role_of_its_user_unless_another_one_is_given() {
    let bench = bench().await;
    let directory = bench.scheduler.directory();
    directory.create_organisation(acme(), false).await.unwrap();
    let ann = NewUser { email: "ann@acme.example".to_owned(), name: "Ann".to_owned(), role: Role::Admin };
    directory.create_user(acme(), ann).await.unwrap();
    let create = async |id, user: Option<&str>, role, scope| {
        let new = NewApiKey { role, scopes: Some(vec![scope]), ..new_key(id, user) };
        directory.create_key(acme(), new).await.map(|key| key.role)
    };
    let ann = Some("ann@acme.example");
    assert_eq!(create(1, ann, None, Scope::Admin).await.unwrap(), Role::Admin);
    assert_eq!(create(2, ann, Some(Role::Member), Scope::Train).await.unwrap(), Role::Member);
    assert_eq!(create(3, None, None, Scope::Train).await.unwrap(), Role::Member);
    let refused = create(4, None, None, Scope::Admin).await.unwrap_err().to_string();
    assert_eq!(refused, "scopes: the role member does not allow \"admin\"");
    let found = directory.key(&[1; 32]).await.unwrap().unwrap();
    assert_eq!((found.key.role, found.scopes()), (Role::Admin, vec![Scope::Admin]));
}

#[tokio::test]
async fn acts_are_in_the_audit_log_in_their_order_and_stay_there() {
    let bench = bench().await;
    let beside = Directory::beside(bench.database.database.clone()).await.unwrap();
    let actor = Actor { name: "command line".to_owned(), key: Some(7), user: None, address: Some("10.0.0.1".to_owned()) };
    let acts = async {
        beside.create_organisation(acme(), true).await.unwrap();
        bench.pass(std::time::Duration::from_secs(1));
        beside.create_project(acme(), "p".to_owned(), "Project".to_owned()).await.unwrap();
        beside.create_key(acme(), new_key(3, None)).await.unwrap();
        beside.delete_project(acme(), "p".to_owned()).await.unwrap();
        assert!(beside.delete_project(acme(), "p".to_owned()).await.is_err());
    };
    actor.clone().scope(acts).await;
    let (from, to) = (Timestamp(0), Timestamp(i64::MAX));
    let log = bench.scheduler.audit_log(&acme(), None, from, to).await.unwrap();
    let events: Vec<&str> = log.iter().map(|entry| entry.event.as_str()).collect();
    assert_eq!(events, ["organization_create", "project_create", "key_create", "project_delete"]);
    assert!(log.iter().all(|entry| (&entry.actor, entry.key, &entry.address) == (&actor.name, actor.key, &actor.address)));
    let of_projects = bench.scheduler.audit_log(&acme(), Some(AuditCategory::Projects), from, to).await.unwrap();
    assert_eq!(of_projects.len(), 2);
    assert_eq!(bench.scheduler.audit_log(&TenantId::new("other"), None, from, to).await.unwrap(), []);
    // Nobody can change entries of the audit log.
    for change in ["UPDATE audit_log SET actor = 'nobody'", "DELETE FROM audit_log"] {
        let mut conn = connect_as_system(&bench.database.database).await.unwrap();
        assert!(sql(change).execute(&mut conn).await.is_err(), "{change}");
    }
    assert_eq!(bench.scheduler.audit_log(&acme(), None, from, to).await.unwrap(), log);
}

#[tokio::test]
async fn signing_keys_are_withdrawn_together_and_the_log_of_each_organisation_has_it() {
    let bench = bench().await;
    let directory = bench.scheduler.directory();
    let other = TenantId::new("other");
    for name in [acme(), other.clone()] {
        directory.create_organisation(name, false).await.unwrap();
    }
    for name in ["key/0000000004", "key/0000000005", "url-signing"] {
        bench.scheduler.shared_secret(name, vec![1]).await.unwrap();
    }
    let before = bench.scheduler.directory_version();
    let beside = Directory::beside(bench.database.database.clone()).await.unwrap();
    assert_eq!(beside.rotate_signing_keys("key/", vec![2]).await.unwrap(), 2);
    assert_eq!(directory.rotate_signing_keys("key/", vec![3]).await.unwrap(), 1);
    assert!(bench.scheduler.directory_version() > before);
    let left = bench.scheduler.secrets("").await.unwrap();
    assert_eq!(left, [("key/0000000007".to_owned(), vec![3]), ("url-signing".to_owned(), vec![1])]);
    for name in [acme(), other] {
        let log = bench.scheduler.audit_log(&name, None, Timestamp(0), Timestamp(i64::MAX)).await.unwrap();
        let withdrawn = log.iter().filter(|entry| entry.event == "signing_keys_rotate");
        let counts: Vec<_> = withdrawn.map(|entry| entry.details["withdrawn"].clone()).collect();
        assert_eq!(counts.len(), 2, "{counts:?}");
    }
}

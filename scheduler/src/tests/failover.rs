//! Tests of a PostgreSQL server that can't be written for a while, as after a failover to the wrong one.

use super::fleet::Site;
use super::*;
use crate::store::db::{Conn, RowScope, connect_as_system, connect_readers, sql};

const EVENTUALLY: Duration = Duration::from_secs(30);

/// A database whose sessions can be made read-only.
struct Server {
    site: Site,
    conn: Conn,
    name: String,
}

impl Server {
    async fn new() -> Self {
        let site = Site::new(Backend::Postgres).await;
        let mut conn = connect_as_system(&site.database.database).await.unwrap();
        let name = sql("SELECT current_database()::text").scalar(&mut conn).await.unwrap().unwrap();
        Self { site, conn, name }
    }

    /// Ends all sessions; the next ones are read-only or not.
    async fn fail_over(&mut self, read_only: bool) {
        self.set(read_only).await;
        let text = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sql(text).execute(&mut self.conn).await.unwrap();
    }

    /// Sets whether the next sessions are read-only; open ones stay as they are.
    async fn set(&mut self, read_only: bool) {
        let text = format!("ALTER DATABASE {} SET default_transaction_read_only = {read_only}", self.name);
        sql(Box::leak(text.into_boxed_str())).execute(&mut self.conn).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_a_read_only_server_until_its_address_leads_to_another() {
    let mut server = Server::new().await;
    let (api, me) = (server.site.process(None).await, server.site.me.clone());
    let session = api.create_session(&me, new_session(None)).await.unwrap();
    server.fail_over(true).await;
    let probe = tokio::time::timeout(Duration::from_secs(1), api.probe_write()).await;
    assert!(!matches!(probe, Ok(Ok(()))), "{probe:?}");
    let write = tokio::spawn({
        let (api, me) = (api.clone(), me.clone());
        async move { api.create_session(&me, new_session(None)).await }
    });
    let read = tokio::spawn({
        let (api, me) = (api.clone(), me.clone());
        async move { api.session(&me, &session).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!write.is_finished(), "nothing can be written: {:?}", write.await);
    server.set(false).await;
    tokio::time::timeout(EVENTUALLY, write).await.expect("the write hangs").unwrap().unwrap();
    tokio::time::timeout(EVENTUALLY, read).await.expect("the read hangs").unwrap().unwrap();
    api.probe_write().await.unwrap();
}

#[tokio::test]
async fn a_pooled_connection_that_turns_out_read_only_is_replaced() {
    let server = Server::new().await;
    let pool = connect_readers(&server.site.database.database, 2).await.unwrap();
    let (mut one, other) =
        (pool.acquire(&RowScope::System).await.unwrap(), pool.acquire(&RowScope::System).await.unwrap());
    drop(other);
    sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY").execute(&mut one).await.unwrap();
    let before = process_id(&mut one).await;
    let refused = sql("UPDATE workers SET expires_at = 0").execute(&mut one).await.unwrap_err();
    assert!(matches!(Error::database("write", &refused), Error::Unavailable("write")), "{refused}");
    drop(one);
    for _ in 0..2 {
        let mut next = pool.acquire(&RowScope::System).await.unwrap();
        assert_ne!(process_id(&mut next).await, before);
        sql("UPDATE workers SET expires_at = 0").execute(&mut next).await.unwrap();
    }
}

#[tokio::test]
async fn a_read_only_server_is_refused_with_the_reason() {
    let mut server = Server::new().await;
    server.set(true).await;
    let refused = crate::look_at_store(&server.site.database.database).await.unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
    let opened = connect_as_system(&server.site.database.database).await.err();
    assert!(matches!(opened, Some(Error::Unavailable(_))), "{opened:?}");
    // Nothing waits for it to be dropped.
    server.set(false).await;
}

async fn process_id(conn: &mut Conn) -> i64 {
    sql("SELECT CAST(pg_backend_pid() AS BIGINT)").scalar(conn).await.unwrap().unwrap()
}

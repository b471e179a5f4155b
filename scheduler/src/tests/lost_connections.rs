//! Tests of connections to PostgreSQL that are lost silently: nothing arrives, and the connection does not end.

use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::fleet::{Fleet, LEASE, next, report, round, succeeded};
use super::*;
use crate::Database;
use crate::store::db::{connect_as_system, sql};

/// Duration longer than any deadline, for events that must happen at all.
const EVENTUALLY: Duration = Duration::from_secs(60);

/// A network between a process and the database. Connections older than its last failure pass nothing.
struct Network {
    url: String,
    /// Number of connections at the last failure: those pass nothing since then.
    lost: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
}

impl Network {
    /// Places a network in front of the database that a URL names.
    async fn new(database: &Database) -> Self {
        let Database::Postgres(url) = database else { panic!("{database} has no network") };
        let (start, rest) = url.split_once('@').unwrap();
        let (target, name) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{start}@{}/{name}", listener.local_addr().unwrap());
        let (lost, made) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        tokio::spawn(serve(listener, target.to_owned(), Arc::clone(&lost), Arc::clone(&made)));
        Self { url, lost, made }
    }

    /// Loses all present connections; new ones can be made.
    fn lose_connections(&self) {
        self.lost.store(self.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Loses all present and future connections.
    fn cut(&self) {
        self.lost.store(usize::MAX, Ordering::SeqCst);
    }

    fn heal(&self) {
        self.lose_connections();
    }
}

async fn serve(listener: TcpListener, target: String, lost: Arc<AtomicUsize>, made: Arc<AtomicUsize>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = made.fetch_add(1, Ordering::SeqCst);
        let Ok(server) = TcpStream::connect(&target).await else { continue };
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::spawn(pass(from_client, to_server, number, Arc::clone(&lost)));
        tokio::spawn(pass(from_server, to_client, number, Arc::clone(&lost)));
    }
}

/// Passes data until the connection is lost, and then keeps both ends open.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, number: usize, lost: Arc<AtomicUsize>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if number < lost.load(Ordering::SeqCst) {
            return std::future::pending().await;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Opens an API server behind a network of its own.
async fn behind(fleet: &Fleet) -> (Scheduler, Network) {
    let network = Network::new(&fleet.site.database.database).await;
    let database = Database::Postgres(network.url.clone());
    let process = Scheduler::open(Options { database, worker: None, ..fleet.options() }).await.unwrap();
    (process, network)
}

/// Starts a request, which `worker` executes.
async fn begun(fleet: &Fleet, worker: &Scheduler) -> Work {
    let run = fleet.run_of(worker, 0).await;
    fleet.submit(&fleet.api, &run, 1).await;
    round(worker).await;
    next(worker).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_goes_on_after_all_connections_were_lost() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let (api, network) = behind(&fleet).await;
    let work = begun(&fleet, &worker).await;
    assert_eq!(api.poll(&fleet.me, &work.request, NO_WAIT).await.unwrap(), Poll::Pending);
    network.lose_connections();
    let session = tokio::time::timeout(EVENTUALLY, api.create_session(&fleet.me, new_session(None)));
    session.await.expect("the write hangs").unwrap();
    let poll = tokio::time::timeout(EVENTUALLY, api.poll(&fleet.me, &work.request, NO_WAIT));
    assert_eq!(poll.await.expect("the read hangs").unwrap(), Poll::Pending);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_is_notified_after_the_listening_connection_was_lost() {
    let fleet = Fleet::new().await;
    let worker = fleet.worker("a").await;
    let network = Network::new(&fleet.site.database.database).await;
    let database = Database::Postgres(network.url.clone());
    // Its lease rounds are far apart, so only notifications wake waiting calls.
    let lease = WorkerOptions { lease: LEASE, ..WorkerOptions::new("b", vec!["other".to_owned()]) };
    let api = Scheduler::open(Options { database, worker: Some(lease), ..fleet.options() }).await.unwrap();
    let work = begun(&fleet, &worker).await;
    network.lose_connections();
    let waiting = tokio::spawn({
        let (api, me, request) = (api.clone(), fleet.me.clone(), work.request.clone());
        async move { api.poll(&me, &request, EVENTUALLY * 2).await }
    });
    // The client looks before the request ends.
    while api.core.waiters.awaited_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    report(&worker, &work, "done");
    let poll = tokio::time::timeout(EVENTUALLY, waiting).await.expect("nobody notices that LISTEN is lost");
    assert_eq!(poll.unwrap().unwrap(), succeeded("done"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_fail_when_the_database_is_silent_and_succeed_once_it_answers() {
    let fleet = Fleet::new().await;
    let (api, network) = behind(&fleet).await;
    network.cut();
    // The documented time for a call, with time for a busy machine.
    let limit = Duration::from_secs(30);
    let write = tokio::time::timeout(limit, api.create_session(&fleet.me, new_session(None)));
    let unknown = RequestId::new("unknown");
    let read = tokio::time::timeout(limit, api.poll(&fleet.me, &unknown, NO_WAIT));
    let (write, read) = tokio::join!(write, read);
    assert!(matches!(write.expect("the write hangs"), Err(Error::Unavailable(_))));
    assert!(matches!(read.expect("the read hangs"), Err(Error::Unavailable(_))));
    network.heal();
    // Calls that still wait for the silent network fail first.
    let deadline = std::time::Instant::now() + EVENTUALLY;
    while let Err(error) = api.create_session(&fleet.me, new_session(None)).await {
        assert!(matches!(error, Error::Unavailable(_)) && std::time::Instant::now() < deadline, "{error}");
    }
    assert!(is_not_found(api.poll(&fleet.me, &unknown, NO_WAIT).await));
}

#[tokio::test]
async fn a_connection_is_not_used_after_a_statement_whose_caller_went_away() {
    let site = super::fleet::Site::new(Backend::Postgres).await;
    let mut conn = connect_as_system(&site.database.database).await.unwrap();
    let slow = sql("SELECT 'late' FROM pg_sleep(1)").scalar::<String>(&mut conn);
    assert!(tokio::time::timeout(Duration::from_millis(100), slow).await.is_err());
    let next = sql("SELECT 'mine'").scalar::<String>(&mut conn).await;
    assert!(matches!(next, Err(sqlx::Error::Io(_))), "{next:?}");
}

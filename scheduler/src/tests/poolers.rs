//! Tests of a pooler between a process and PostgreSQL.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

use super::fleet::Site;
use super::*;
use crate::{Database, look_at_store};

/// A pooler with one connection to the server, which sessions take in turns: one for each of their transactions.
async fn pooled(database: &Database) -> Database {
    let Database::Postgres(url) = database else { panic!("{database} has no pooler") };
    let (start, rest) = url.split_once('@').unwrap();
    let (target, name) = rest.split_once('/').unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pooled = Database::Postgres(format!("{start}@{}/{name}?sslmode=disable", listener.local_addr().unwrap()));
    let target = target.to_owned();
    tokio::spawn(async move {
        let shared = Arc::new(Mutex::new(None));
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(serve(client, target.clone(), Arc::clone(&shared)));
        }
    });
    pooled
}

/// Type of the message with which a client ends its session.
const TERMINATE: u8 = b'X';

/// The connection to the server, which the first session leaves to all.
type Shared = Arc<Mutex<Option<Server>>>;

/// Serves a session. It takes the connection for everything between a message and the server's "idle".
async fn serve(mut client: TcpStream, target: String, shared: Shared) {
    let mut own = Server { stream: TcpStream::connect(target).await.unwrap(), received: Vec::new() };
    let startup = startup(&mut client).await;
    own.stream.write_all(&startup).await.unwrap();
    // The session is authenticated on a connection of its own.
    own.relay_until_idle(&mut client).await;
    shared.lock().await.get_or_insert(own);
    let mut first = vec![0; 1 << 16];
    while let Ok(read @ 1..) = client.read(&mut first).await
        && first[0] != TERMINATE
    {
        let mut shared = shared.lock().await;
        let Some(server) = &mut *shared else { return };
        server.stream.write_all(&first[..read]).await.unwrap();
        if !server.relay_until_idle(&mut client).await {
            server.roll_back().await;
            return;
        }
    }
}

async fn startup(client: &mut TcpStream) -> Vec<u8> {
    let length = client.read_u32().await.unwrap();
    let mut message = length.to_be_bytes().to_vec();
    message.resize(length as usize, 0);
    client.read_exact(&mut message[4..]).await.unwrap();
    message
}

/// A connection to the server, with what it has received of a message that is not complete.
struct Server {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Server {
    /// Passes messages both ways until the server is ready and in no transaction. Returns whether the client is still there.
    async fn relay_until_idle(&mut self, client: &mut TcpStream) -> bool {
        let mut from_client = vec![0; 1 << 16];
        loop {
            // Neither read loses bytes when the other one ends first.
            tokio::select! {
                read = self.stream.read_buf(&mut self.received) => {
                    assert_ne!(read.unwrap(), 0, "the server closed the connection");
                    while let Some(message) = self.next_message() {
                        if client.write_all(&message).await.is_err() {
                            return false;
                        }
                        if is_idle(&message) {
                            return true;
                        }
                    }
                }
                read = client.read(&mut from_client) => match read {
                    Ok(read @ 1..) if from_client[0] != TERMINATE => {
                        self.stream.write_all(&from_client[..read]).await.unwrap();
                    }
                    _ => return false,
                },
            }
        }
    }

    /// Takes a complete message from what was received.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let length = self.received.get(1..5)?.try_into().map(u32::from_be_bytes).unwrap() as usize;
        (self.received.len() > length).then(|| self.received.drain(..=length).collect())
    }

    /// Ends the transaction that a client has left behind, as poolers do, and drops the rest of what the server said to it.
    async fn roll_back(&mut self) {
        self.stream.write_all(b"Q\0\0\0\rROLLBACK\0").await.unwrap();
        let mut rolled_back = false;
        loop {
            while let Some(message) = self.next_message() {
                rolled_back |= message.ends_with(b"ROLLBACK\0");
                if rolled_back && is_idle(&message) {
                    return;
                }
            }
            assert_ne!(self.stream.read_buf(&mut self.received).await.unwrap(), 0, "the server closed the connection");
        }
    }
}

/// Whether a message says that the server is ready and in no transaction.
fn is_idle(message: &[u8]) -> bool {
    message[0] == b'Z' && message[5] == b'I'
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transaction_pooling_is_detected() {
    let site = Site::new(Backend::Postgres).await;
    let direct = look_at_store(&site.database.database).await.unwrap().unwrap();
    assert!(!direct.pools_transactions);
    let pooled = pooled(&site.database.database).await;
    let found = tokio::time::timeout(LONG * 2, look_at_store(&pooled)).await.expect("it hangs");
    assert!(found.unwrap().unwrap().pools_transactions);
}

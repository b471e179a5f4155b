//! The API behind a listener.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use trainyard_http::listener::{ConnectionLimits, MinRate, serve};
use trainyard_http::shutdown::Shutdown;

use super::testing::{KEY, Server};
use crate::auth::Keys;
use crate::bodies::BodyLimits;
use crate::state::Limits;

/// A time limit longer than any step takes, but shorter than a test may take.
const LONG: Duration = Duration::from_secs(20);

/// The API behind a listener.
struct Listening {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    _server: Server,
}

async fn listening(limits: ConnectionLimits, bodies: BodyLimits) -> Listening {
    let server = Server::with(Limits { bodies, ..Limits::default() }, Keys::local()).await;
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (stop, stopping) = Shutdown::channel();
    let serving = tokio::spawn(serve(socket, server.router(), limits, None, stopping));
    Listening { address, stop, serving, _server: server }
}

fn limits(total: usize, per_address: usize) -> ConnectionLimits {
    ConnectionLimits { total, per_address, header_timeout: LONG, min_rate: MinRate::default() }
}

impl Listening {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Opens a connection and sends this text.
    async fn sent(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }
}

/// Writes a request whose header states the length of its body.
fn request(method: Method, path: &str, body: &str, length: usize) -> String {
    format!(
        "{method} /api/v1/{path} HTTP/1.1\r\nhost: test\r\nx-api-key: {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

fn session() -> String {
    let body = json!({"tags": [], "user_metadata": {}, "sdk_version": "0.38.0"}).to_string();
    request(Method::POST, "create_session", &body, body.len())
}

/// Reads until the answer's body has arrived, or the connection ends.
async fn answer(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let reading = async {
        let mut piece = [0; 4096];
        loop {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(count) => read.extend_from_slice(&piece[..count]),
            }
            if read.ends_with(b"}") {
                return;
            }
        }
    };
    timeout(LONG, reading).await.unwrap();
    String::from_utf8(read).unwrap()
}

/// Reads an answer whose head states the length of its body; returns its length.
async fn length_of_answer(stream: &mut TcpStream) -> usize {
    let mut read = Vec::new();
    let head = loop {
        read.push(timeout(LONG, stream.read_u8()).await.unwrap().unwrap());
        if read.ends_with(b"\r\n\r\n") {
            break String::from_utf8(read).unwrap();
        }
    };
    let body = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    head.len() + body.parse::<usize>().unwrap()
}

#[tokio::test]
async fn stalled_uploads_block_no_small_request_and_are_ended() {
    let window = Duration::from_millis(1_500);
    let bodies = BodyLimits { memory: 400 << 20, wait: Duration::from_millis(500), window, bytes_per_window: 64 << 10 };
    let server = listening(limits(100, 100), bodies).await;
    let mut stalled = Vec::new();
    for _ in 0..40 {
        stalled.push(server.sent(&request(Method::POST, "forward_backward", "{", 250 << 20)).await);
    }
    let started = Instant::now();
    let small = answer(&mut server.sent(&session()).await).await;
    assert!(small.starts_with("HTTP/1.1 200 OK"), "{small}");
    assert!(started.elapsed() < window, "it waited for the stalled ones");
    // One has the memory and is too slow for it; the others wait in vain, and then don't go on either.
    let mut answers = Vec::new();
    for stream in &mut stalled {
        answers.push(answer(stream).await);
    }
    assert!(answers.iter().all(|answer| answer.starts_with("HTTP/1.1 408 Request Timeout")), "{answers:?}");
    assert!(answers.iter().all(|answer| answer.contains("bytes of the body arrived")), "{answers:?}");
    let again = answer(&mut server.sent(&session()).await).await;
    assert!(again.starts_with("HTTP/1.1 200 OK"), "{again}");
}

#[tokio::test]
async fn a_body_without_memory_is_told_when_to_come_back() {
    let bodies = BodyLimits { memory: 8 << 20, wait: Duration::from_millis(100), window: LONG, bytes_per_window: 1 };
    let server = listening(limits(300, 300), bodies).await;
    let mut holders = Vec::new();
    let mut late = server.connect().await;
    let body = format!("\"{}\"", "x".repeat(2 << 20));
    let mut refused = String::new();
    // Until the header of a holder arrives before the other request: behind it, the holder waits in vain.
    for _ in 0..100 {
        holders.push(server.sent(&request(Method::POST, "forward_backward", "{", 6 << 20)).await);
        late = server.sent(&request(Method::POST, "forward_backward", &body, body.len())).await;
        refused = answer(&mut late).await;
        if refused.starts_with("HTTP/1.1 429") {
            break;
        }
    }
    drop(late);
    assert!(refused.contains("retry-after: 2") && refused.contains("try again"), "{refused}");
}

#[tokio::test]
async fn half_a_header_and_an_idle_connection_are_closed_by_the_timeout() {
    let header_timeout = Duration::from_millis(300);
    let server = listening(ConnectionLimits { header_timeout, ..limits(300, 300) }, BodyLimits::default()).await;
    let mut halves = Vec::new();
    for _ in 0..200 {
        halves.push(server.sent("GET /api/v1/healthz HTTP/1.1\r\nhost: te").await);
    }
    let mut idle = server.sent(&session()).await;
    assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200 OK"));
    halves.push(idle);
    for mut half in halves {
        assert_eq!(answer(&mut half).await, "");
    }
}

#[tokio::test]
async fn connections_beyond_a_limit_are_told_which() {
    for (limits, text) in [(limits(3, 9), "the most that this server accepts"), (limits(9, 3), "from this address")] {
        let server = listening(limits, BodyLimits::default()).await;
        let mut open = Vec::new();
        for _ in 0..3 {
            let mut stream = server.sent(&session()).await;
            assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 OK"));
            open.push(stream);
        }
        let refused = answer(&mut server.sent(&session()).await).await;
        assert!(refused.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{refused}");
        assert!(refused.contains("retry-after: 1\r\n") && refused.contains(text), "{refused}");
        open.pop();
        // Its end may arrive later than the next connection.
        let mut answered = String::new();
        for _ in 0..500 {
            answered = answer(&mut server.sent(&session()).await).await;
            if answered.starts_with("HTTP/1.1 200") {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert!(answered.starts_with("HTTP/1.1 200"), "{answered}");
    }
}

#[tokio::test]
async fn shutdown_answers_what_was_asked_and_closes_idle_connections() {
    let server = listening(limits(10, 10), BodyLimits::default()).await;
    let mut idle = server.sent(&session()).await;
    assert!(answer(&mut idle).await.starts_with("HTTP/1.1 200"));
    let body = json!({"tags": [], "user_metadata": {}, "sdk_version": "0.38.0"}).to_string();
    let mut busy = server.sent(&request(Method::POST, "create_session", &body[..5], body.len())).await;
    // The request is being received once another one, which came later, was answered.
    assert!(answer(&mut server.sent(&session()).await).await.starts_with("HTTP/1.1 200"));
    server.stop.send_replace(true);
    assert_eq!(answer(&mut idle).await, "");
    assert!(!server.serving.is_finished());
    busy.write_all(&body.as_bytes()[5..]).await.unwrap();
    assert!(answer(&mut busy).await.starts_with("HTTP/1.1 200"));
    timeout(LONG, server.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_whose_body_was_not_read_ends_with_notice() {
    let server = listening(limits(10, 10), BodyLimits::default()).await;
    let unread = [
        (request(Method::POST, "create_session", "", 20).replace(KEY, "sk-1"), "401"),
        (request(Method::PUT, "create_session", "", 20), "405"),
        (request(Method::POST, "nothing", "", 20), "404"),
    ];
    for (header, status) in unread {
        let refused = answer(&mut server.sent(&header).await).await;
        assert!(refused.starts_with(&format!("HTTP/1.1 {status} ")), "{refused}");
        assert!(refused.contains("connection: close\r\n"), "{refused}");
    }
    // Any other refusal reads the body first, and the connection serves the next request.
    let header = request(Method::POST, "forward_backward", "", 20);
    let mut stream = server.sent(&header.replace("content-type", "content-encoding: br\r\ncontent-type")).await;
    stream.write_all(&[b'x'; 20]).await.unwrap();
    let refused = answer(&mut stream).await;
    assert!(refused.starts_with("HTTP/1.1 415 ") && !refused.contains("connection: close"), "{refused}");
    stream.write_all(session().as_bytes()).await.unwrap();
    assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200 "));
}

/// A client that asks for much and reads too little is cut off; a client that starts to read in time gets everything.
#[tokio::test]
async fn answers_must_be_read() {
    const MANY: usize = 200;
    let window = Duration::from_millis(500);
    let limits = |bytes| ConnectionLimits { min_rate: MinRate { window, bytes }, ..limits(10, 10) };
    let asked = "GET /openapi.json HTTP/1.1\r\nhost: test\r\n\r\n".repeat(MANY);
    let server = listening(limits(100 << 20), BodyLimits::default()).await;
    let mut stream = server.sent(&asked).await;
    let one = length_of_answer(&mut server.sent(&asked[..asked.len() / MANY]).await).await;
    tokio::time::sleep(4 * window).await;
    let mut read = Vec::new();
    let ended = timeout(LONG, stream.read_to_end(&mut read)).await.unwrap();
    assert!(ended.is_err() || read.len() < MANY * one, "{} bytes of {}", read.len(), MANY * one);
    // Without a rate it may take its time.
    let server = listening(limits(0), BodyLimits::default()).await;
    let mut stream = server.sent(&asked).await;
    tokio::time::sleep(4 * window).await;
    let mut read = vec![0; MANY * one];
    timeout(LONG, stream.read_exact(&mut read)).await.unwrap().unwrap();
}

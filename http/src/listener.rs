//! Accepts connections and serves HTTP/1.1 on them, with TLS or without, within limits: connections in all and per
//! address, and the time in which a handshake and the header of a request must arrive.

mod connections;
mod handshake;
mod min_rate;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use self::connections::{Admitted, Connections};
pub use self::connections::{CONNECTIONS, ConnectionLimits, Full, HEADER_TIME, descriptors};
use self::handshake::handshake;
pub use self::min_rate::MinRate;
use self::min_rate::RateLimited;
use crate::answer::refusal_text;
use crate::peer::Peer;
use crate::shutdown::Shutdown;
use crate::tls::Tls;

/// Bytes of a connection's read buffer, which also limits a request's header.
const BUFFER: usize = 64 << 10;

/// The pause after an error of the system, such as no free descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Refused connections that get an answer at the same time; further ones are closed at once.
const REFUSALS: usize = 64;
/// The time limit for refusing a connection.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// Bytes that a refused connection may send before it is closed.
const REFUSAL_READ: u64 = 64 << 10;

/// Serves until a shutdown is announced, then waits for the requests that are being answered. With `tls`, every
/// connection must begin with a handshake.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    tls: Option<Tls>,
    stopping: Shutdown,
) {
    let connections = Connections::new(limits);
    let refusals = Connections::new(ConnectionLimits { total: REFUSALS, per_address: REFUSALS, ..limits });
    let (finished, open) = watch::channel(());
    let mut stop = pin!(stopping.requested());
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut stop => break,
        };
        match connections.admit(peer.ip()) {
            Ok(admitted) => {
                let connection =
                    Connection { router: router.clone(), limits, stopping: stopping.clone(), peer: Peer(peer.ip()) };
                let (tls, open) = (tls.clone(), open.clone());
                tokio::spawn(async move {
                    connection.accept(stream, tls.as_ref()).await;
                    drop((admitted, open));
                });
            }
            Err(full) => {
                if connections.refused() {
                    tracing::warn!(%peer, limit = full.limit(), "connections refused: {full}");
                }
                if let Ok(admitted) = refusals.admit(peer.ip()) {
                    tokio::spawn(refuse(stream, full, tls.clone(), admitted));
                }
            }
        }
    }
    drop((listener, open));
    finished.closed().await;
}

async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_the_clients(&error) => {}
            Err(error) => {
                tracing::error!(%error, "failed to accept a connection; retrying");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Returns whether a connection was closed before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

/// The settings with which a connection is served.
struct Connection {
    router: Router,
    limits: ConnectionLimits,
    stopping: Shutdown,
    peer: Peer,
}

impl Connection {
    async fn accept(self, stream: TcpStream, tls: Option<&Tls>) {
        let Some(tls) = tls else { return self.serve(stream).await };
        let shaken = tokio::select! {
            shaken = timeout(self.limits.header_timeout, handshake(stream, tls)) => shaken,
            () = self.stopping.requested() => return,
        };
        match shaken {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("the TLS handshake was not completed in time"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Self { router, limits, stopping, peer } = self;
        let stream = RateLimited::new(stream, limits.min_rate);
        let router = router.map_request(move |mut request: hyper::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(peer);
            request
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_buf_size(BUFFER)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        let mut connection = pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// Answers 429 on a connection beyond the limits: clients repeat a request at once after any 5xx to a poll.
async fn refuse(stream: TcpStream, full: Full, tls: Option<Tls>, _admitted: Admitted) {
    let refusal = refusal("429 Too Many Requests", "retry-after: 1\r\n", &full.to_string());
    let told = timeout(REFUSAL_TIME, async {
        match tls {
            Some(tls) => tell(handshake(stream, &tls).await?, &refusal).await,
            None => tell(stream, &refusal).await,
        }
    });
    let _ = told.await;
}

/// Makes an answer after which the connection ends.
fn refusal(status: &str, headers: &str, detail: &str) -> String {
    let body = refusal_text(detail);
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n\
         {body}",
        body.len()
    )
}

/// Sends this answer to any request, and ends the connection.
async fn tell(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> io::Result<()> {
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // A connection that is closed with unread bytes is reset, and the client may not see the answer.
    tokio::io::copy(&mut (&mut stream).take(REFUSAL_READ), &mut tokio::io::sink()).await?;
    Ok(())
}

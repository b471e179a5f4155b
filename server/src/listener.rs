//! Accepts connections and serves HTTP/1.1 on them, within limits: connections in all and per address, and the time in
//! which the header of a request must arrive.

mod connections;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use self::connections::{Admitted, Connections};
pub use self::connections::{ConnectionLimits, Full};
use crate::error::refusal_text;
use crate::state::Shutdown;

/// Bytes of a connection's read buffer, and so of a request's header.
const BUFFER: usize = 64 << 10;

/// After an error of the system, such as no descriptor being left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Connections beyond the limits that are told so at a time; further ones are closed without a word.
const REFUSALS: usize = 64;
/// How long the refusal of a connection may take.
const REFUSAL_TIME: Duration = Duration::from_secs(2);
/// Bytes that a refused connection may send before it is closed.
const REFUSAL_READ: u64 = 64 << 10;

/// Serves until shutdown is announced, then waits for the requests that are being answered.
pub async fn serve(listener: TcpListener, router: Router, limits: ConnectionLimits, stopping: Shutdown) {
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
                let connection = Connection { stream, admitted, open: open.clone() };
                tokio::spawn(connection.serve(router.clone(), limits.header_timeout, stopping.clone()));
            }
            Err(full) => {
                if connections.refused() {
                    tracing::warn!(%peer, limit = full.limit(), "connections refused: {full}");
                }
                if let Ok(admitted) = refusals.admit(peer.ip()) {
                    tokio::spawn(refuse(stream, full, admitted));
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
                tracing::error!(%error, "no connection can be accepted now; retrying");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Whether a connection was gone before it was accepted.
fn is_the_clients(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
}

/// A connection that is served.
struct Connection {
    stream: TcpStream,
    admitted: Admitted,
    /// As long as a copy exists, [`serve`] does not return.
    open: watch::Receiver<()>,
}

impl Connection {
    async fn serve(self, router: Router, header_timeout: Duration, stopping: Shutdown) {
        let Self { stream, admitted: _admitted, open: _open } = self;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
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

/// Says 429 to a connection beyond the limits: clients repeat a request at once after any 5xx to a poll.
async fn refuse(mut stream: TcpStream, full: Full, _admitted: Admitted) {
    let body = refusal_text(&full.to_string());
    let response = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 1\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    let told = timeout(REFUSAL_TIME, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        // A connection that is closed with unread bytes is reset, and the client may not see the answer.
        tokio::io::copy(&mut (&mut stream).take(REFUSAL_READ), &mut tokio::io::sink()).await
    });
    let _ = told.await;
}

#[cfg(test)]
#[path = "listener/tests.rs"]
mod tests;

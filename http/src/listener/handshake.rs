//! The beginning of a connection with TLS.

use std::io;

use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::{REFUSAL_TIME, refusal, tell};
use crate::tls::Tls;

/// Negotiates TLS. A client that speaks plain HTTP is told so in plain HTTP.
pub(super) async fn handshake(stream: TcpStream, tls: &Tls) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first[0].is_ascii_uppercase() {
        let plain = refusal("400 Bad Request", "", "this port speaks HTTPS: use https:// in the URL");
        let _ = timeout(REFUSAL_TIME, tell(stream, &plain)).await;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a request in plain HTTP"));
    }
    tls.acceptor().accept(stream).await
}

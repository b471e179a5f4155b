//! One keep-alive connection with as little overhead as possible, because client and server share the processors. It
//! supports only the parts of HTTP/1.1 that Trainyard's answers use: every answer has a `content-length`.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Maximum number of bytes of an answer's head.
const MAX_HEAD: usize = 64 << 10;

/// Address of the server, and the caller's API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerAddress {
    authority: String,
    /// The path that the server is mounted under, without a final slash.
    prefix: String,
    key: String,
}

impl ServerAddress {
    /// Parses an address of the form `http://host[:port][/prefix]`.
    pub(super) fn new(url: &str, key: &str) -> Result<Self, String> {
        let rest = url.strip_prefix("http://").ok_or_else(|| format!("--url {url}: only http:// can be measured"))?;
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.is_empty() {
            return Err(format!("--url {url}: expected http://host[:port], found no host"));
        }
        let port = if authority.rsplit(']').next().is_some_and(|end| end.contains(':')) { "" } else { ":80" };
        Ok(Self {
            authority: format!("{authority}{port}"),
            prefix: prefix.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
        })
    }
}

/// Content type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Protobuf,
}

impl Media {
    fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
        }
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) protobuf: bool,
    pub(super) body: Vec<u8>,
}

/// A connection to the server.
pub(super) struct Connection {
    address: Arc<ServerAddress>,
    stream: TcpStream,
    /// Received bytes of the next answer.
    received: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: Arc<ServerAddress>) -> io::Result<Self> {
        let stream = TcpStream::connect(&address.authority).await?;
        stream.set_nodelay(true)?;
        Ok(Self { address, stream, received: Vec::new() })
    }

    /// Sends a request below `/api/v1/` and reads the answer. `headers` are lines, each with its line break.
    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        media: Media,
        body: &[u8],
    ) -> io::Result<Answer> {
        let ServerAddress { authority, prefix, key } = &*self.address;
        let mut request = format!(
            "{method} {prefix}/api/v1/{path} HTTP/1.1\r\nhost: {authority}\r\nx-api-key: {key}\r\n{headers}\
             content-type: {}\r\ncontent-length: {}\r\n\r\n",
            media.name(),
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.write_all(&request).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(end) = find(&self.received, b"\r\n\r\n") {
                break end + 4;
            }
            if self.received.len() > MAX_HEAD {
                return Err(invalid("the head of an answer is too long"));
            }
            self.receive().await?;
        };
        let head = Head::parse(&self.received[..end])?;
        while self.received.len() < end + head.length {
            self.receive().await?;
        }
        let rest = self.received.split_off(end + head.length);
        let body = std::mem::replace(&mut self.received, rest).split_off(end);
        Ok(Answer { status: head.status, protobuf: head.protobuf, body })
    }

    async fn receive(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The parts of an answer's head that are used.
struct Head {
    status: u16,
    protobuf: bool,
    length: usize,
}

impl Head {
    fn parse(bytes: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("the head of an answer is not text"))?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let (mut length, mut protobuf) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok();
            } else if name.eq_ignore_ascii_case("content-type") {
                protobuf = value.trim() == Media::Protobuf.name();
            }
        }
        let status = status.ok_or_else(|| invalid("an answer has no status"))?;
        // 204 has no body and no content-length.
        let length = if status == 204 { Some(0) } else { length };
        Ok(Self { status, protobuf, length: length.ok_or_else(|| invalid("an answer has no content-length"))? })
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let address = |url: &str| ServerAddress::new(url, "tml-k").map(|address| (address.authority, address.prefix));
        assert_eq!(address("http://h"), Ok(("h:80".to_owned(), String::new())));
        assert_eq!(address("http://h:8000/"), Ok(("h:8000".to_owned(), String::new())));
        assert_eq!(address("http://[::1]:8000/a/b/"), Ok(("[::1]:8000".to_owned(), "/a/b".to_owned())));
        assert_eq!(address("http://[::1]"), Ok(("[::1]:80".to_owned(), String::new())));
        assert!(address("https://h").is_err());
        assert!(address("http:///x").is_err());
    }

    /// Two answers in one packet, the second cut in its body.
    #[tokio::test]
    async fn answers_are_separated_by_their_length() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let first = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\ncontent-length: 2\r\n\r\nab";
            peer.write_all(format!("{first}HTTP/1.1 429 No\r\ncontent-length: 3\r\n\r\nx").as_bytes()).await.unwrap();
            peer.flush().await.unwrap();
            peer.write_all(b"yz").await.unwrap();
            peer
        });
        let mut connection = Connection::open(Arc::new(ServerAddress::new(&url, "tml-k").unwrap())).await.unwrap();
        let first = connection.send("POST", "a", "", Media::Json, b"{}").await.unwrap();
        assert_eq!((first.status, first.protobuf, &first.body[..]), (200, true, &b"ab"[..]));
        let second = connection.send("POST", "a", "", Media::Json, b"{}").await.unwrap();
        assert_eq!((second.status, second.protobuf, &second.body[..]), (429, false, &b"xyz"[..]));
        drop(server.await.unwrap());
        assert!(connection.send("POST", "a", "", Media::Json, b"{}").await.is_err());
    }
}

//! Sends requests: retries them, and reads answers and refusals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;

use crate::error::{ApiError, Error};
pub(crate) use crate::request::Request;
use crate::retry::{Attempts, RetryPolicy};

/// A server that accepts no connection within this time counts as unreachable.
const CONNECT: Duration = Duration::from_secs(5);

/// Longest silence while an answer arrives; the server waits for results for half a minute.
const SILENCE: Duration = Duration::from_secs(60);

/// Every operation of the service by its name, generated from the API's description. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    http: reqwest::Client,
    base: Url,
    retry: RetryPolicy,
}

/// An answer read to its end.
pub(crate) struct Answer {
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    pub(crate) place: String,
}

/// Failure of one attempt.
enum Failure {
    /// The request may be repeated, after as long as the server advises.
    Passing(Error, Option<Duration>),
    Final(Error),
}

impl Api {
    pub(crate) fn new(base: &str, key: &str, retry: RetryPolicy) -> Result<Self, Error> {
        let base = Url::parse(base).map_err(|error| Error::Configuration(format!("base URL {base:?}: {error}")))?;
        if base.cannot_be_a_base() {
            return Err(Error::Configuration(format!(
                "base URL {:?}: expected a URL that can have a path",
                base.as_str()
            )));
        }
        // reqwest uses the process's provider of cryptography. Install one unless the program already has.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut headers = reqwest::header::HeaderMap::new();
        let mut secret = reqwest::header::HeaderValue::from_str(key).map_err(|_| {
            Error::Configuration("the API key contains characters that are not allowed in a header".into())
        })?;
        secret.set_sensitive(true);
        headers.insert("x-api-key", secret);
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .user_agent(concat!("trainyard-rust/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .build()
            .map_err(|error| Error::Configuration(error.to_string()))?;
        Ok(Self { inner: Arc::new(Inner { http, base, retry }) })
    }

    pub(crate) async fn send_for_json<T: DeserializeOwned>(&self, request: Request) -> Result<T, Error> {
        let answer = self.send(&request).await?;
        answer.json()
    }

    pub(crate) async fn send_for_nothing(&self, request: Request) -> Result<(), Error> {
        self.send(&request).await.map(drop)
    }

    pub(crate) async fn send_for_text(&self, request: Request) -> Result<String, Error> {
        let answer = self.send(&request).await?;
        let place = answer.place;
        String::from_utf8(answer.body).map_err(|_| Error::Protocol(format!("{place}: the answer is not text")))
    }

    pub(crate) async fn send_for_bytes(&self, request: Request) -> Result<Vec<u8>, Error> {
        Ok(self.send(&request).await?.body)
    }

    /// Sends a request until it is answered in full, refused for good, or the time is over.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, Error> {
        let mut attempts = Attempts::new(&self.inner.retry, request.deadline);
        loop {
            let attempt = async {
                let response = self.attempt(request).await?;
                let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let content_type = content_type.unwrap_or_default().to_owned();
                let body = response.bytes().await.map_err(|error| unreachable_server(request, error))?.to_vec();
                Ok(Answer { content_type, body, place: request.place() })
            };
            match attempt.await {
                Ok(answer) => return Ok(answer),
                Err(failure) => pause(&mut attempts, failure).await?,
            }
        }
    }

    /// Sends a request as [`Self::send`] does, but returns as soon as the answer begins.
    pub(crate) async fn open(&self, request: &Request) -> Result<Response, Error> {
        let mut attempts = Attempts::new(&self.inner.retry, request.deadline);
        loop {
            match self.attempt(request).await {
                Ok(response) => return Ok(response),
                Err(failure) => pause(&mut attempts, failure).await?,
            }
        }
    }

    async fn attempt(&self, request: &Request) -> Result<Response, Failure> {
        let response = self.http(request)?.send().await.map_err(|error| unreachable_server(request, error))?;
        let status = response.status().as_u16();
        if status < 400 {
            return Ok(response);
        }
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (request_id, advice) = (header("x-request-id"), header(RETRY_AFTER.as_str()));
        let advice = advice.and_then(|advice| advice.parse().ok()).and_then(|it| Duration::try_from_secs_f64(it).ok());
        let body = response.bytes().await.map_err(|error| unreachable_server(request, error))?;
        let refusal = Error::Api(ApiError::read(status, request_id, &body));
        let passes = status == 408 || status == 429 || status >= 500;
        match passes && (request.is_repeatable() || [408, 429, 503].contains(&status)) {
            true => Err(Failure::Passing(refusal, advice)),
            false => Err(Failure::Final(refusal)),
        }
    }

    fn http(&self, request: &Request) -> Result<reqwest::RequestBuilder, Failure> {
        let mut url = self.inner.base.clone();
        let no_path = || Failure::Final(Error::Configuration("the base URL cannot have a path".into()));
        url.path_segments_mut().map_err(|()| no_path())?.pop_if_empty().extend(&request.path);
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut builder = self.inner.http.request(request.method.clone(), url).header(ACCEPT, request.accept);
        if request.method != Method::GET {
            builder = builder.header("x-idempotency-key", &request.key);
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, request.content_type).body(body.clone());
        }
        if request.compressed {
            builder = builder.header(CONTENT_ENCODING, "zstd");
        }
        let left = request.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if let Some(timeout) = [request.timeout, left].into_iter().flatten().min() {
            builder = builder.timeout(timeout.max(Duration::from_millis(1)));
        }
        Ok(builder)
    }
}

impl Answer {
    pub(crate) fn is_protobuf(&self) -> bool {
        self.content_type.starts_with(crate::request::PROTOBUF)
    }

    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| Error::Protocol(format!("{}: {error}", self.place)))
    }
}

/// Returns the failure of a request without an answer.
fn unreachable_server(request: &Request, error: reqwest::Error) -> Failure {
    let passes = !error.is_builder() && !is_distrust(&error) && (request.is_repeatable() || error.is_connect());
    let error = Error::Transport { place: request.place(), source: error };
    if passes { Failure::Passing(error, None) } else { Failure::Final(error) }
}

/// Returns whether the client rejected the server's certificate, which retries would not change.
fn is_distrust(error: &(dyn std::error::Error + 'static)) -> bool {
    if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
        return true;
    }
    // `source` of an I/O error skips the error inside it, so look at that one too.
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    inner.is_some_and(|inner| is_distrust(inner)) || error.source().is_some_and(is_distrust)
}

/// Waits for the next attempt, or returns the failure if there is none.
async fn pause(attempts: &mut Attempts<'_>, failure: Failure) -> Result<(), Error> {
    let (error, advice) = match failure {
        Failure::Passing(error, advice) => (error, advice),
        Failure::Final(error) => return Err(error),
    };
    let Some(delay) = attempts.next_delay(advice) else { return Err(error) };
    tracing::warn!(%error, delay_ms = delay.as_millis(), "request is sent again");
    tokio::time::sleep(delay).await;
    Ok(())
}

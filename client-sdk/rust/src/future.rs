//! Results of requests that the server executes asynchronously.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::api::{Answer, Api, Request};
use crate::error::{Category, Error, RequestFailed};
use crate::resample::Resample;

/// Longest wait for an answer of `retrieve_future`; the server answers after half a minute.
const POLL: Duration = Duration::from_secs(45);

/// Function that reads a result.
pub(crate) type Read<T> = fn(&Answer) -> Result<T, Error>;

/// A request that was accepted. Awaiting it returns its result; [`result`](Self::result) may be called repeatedly.
#[derive(Debug)]
#[must_use = "the result says whether the request succeeded"]
pub struct Submitted<T> {
    api: Api,
    request_id: Mutex<String>,
    read: Read<T>,
    /// Resubmits a sample whose result has expired.
    resample: Option<Resample>,
}

impl<T> Submitted<T> {
    pub(crate) fn new(api: Api, request_id: String, read: Read<T>) -> Self {
        Self { api, request_id: Mutex::new(request_id), read, resample: None }
    }

    pub(crate) fn resampling(mut self, resample: Resample) -> Self {
        self.resample = Some(resample);
        self
    }

    /// Waits for the result.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] when the request failed; others when the server does not answer.
    pub async fn result(&self) -> Result<T, Error> {
        self.wait(None).await
    }

    /// Waits for the result for a limited time.
    ///
    /// # Errors
    ///
    /// The errors of [`result`](Self::result), and [`Error::Timeout`].
    pub async fn result_within(&self, limit: Duration) -> Result<T, Error> {
        self.wait(Some(Instant::now() + limit)).await
    }

    async fn wait(&self, deadline: Option<Instant>) -> Result<T, Error> {
        // Two callers that wait for a sample whose result expired resubmit it only once.
        let mut request_id = self.request_id.lock().await;
        loop {
            let over = || deadline.is_some_and(|deadline| Instant::now() + Duration::from_millis(100) >= deadline);
            if over() {
                return Err(Error::Timeout(request_id.clone()));
            }
            match self.poll(&request_id, deadline).await {
                Ok(Some(result)) => return Ok(result),
                Ok(None) => {}
                Err(error) if error.status() == Some(410) => match &self.resample {
                    Some(resample) => *request_id = resample.submit().await?,
                    None => return Err(error),
                },
                Err(Error::Transport { .. }) if over() => return Err(Error::Timeout(request_id.clone())),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the result unless the request is still pending.
    async fn poll(&self, request_id: &str, deadline: Option<Instant>) -> Result<Option<T>, Error> {
        let request = Request::post("retrieve_future")
            .json(&json!({"request_id": request_id}))?
            .accept("application/x-protobuf, application/json")
            .timeout(POLL)
            .deadline(deadline);
        let answer = self.api.send(&request).await?;
        if !answer.is_protobuf() {
            let body: Value = answer.json()?;
            if body["type"] == "try_again" {
                return Ok(None);
            }
            if let Some(error) = body.get("error") {
                return Err(Error::Failed(RequestFailed {
                    message: error.as_str().map_or_else(|| error.to_string(), str::to_owned),
                    category: Category::of(body["category"].as_str()),
                    request_id: request_id.to_owned(),
                }));
            }
        }
        (self.read)(&answer).map(Some)
    }
}

impl<T: Send + 'static> IntoFuture for Submitted<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.result().await })
    }
}

/// Reads one string of a JSON result.
pub(crate) fn text(answer: &Answer, name: &str) -> Result<String, Error> {
    let body: Value = answer.json()?;
    let missing = || Error::Protocol(format!("{}: the result has no {name}", answer.place));
    body[name].as_str().map(str::to_owned).ok_or_else(missing)
}

/// Reads a result in protobuf.
pub(crate) fn protobuf<T>(answer: &Answer, decode: fn(&[u8]) -> Result<T, Error>) -> Result<T, Error> {
    if !answer.is_protobuf() {
        return Err(Error::Protocol(format!("{}: the result is not protobuf", answer.place)));
    }
    decode(&answer.body)
}

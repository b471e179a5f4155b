//! The published keys of an issuer, fetched when they are needed.
//!
//! Keys are used for some seconds, then fetched again in the background while requests use the old ones for a short
//! while. A token that names an unknown key triggers a fetch, at most once in a while. A key that the issuer no longer
//! publishes is refused from the next fetch on, also for tokens that it has signed before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::fetch::{KeySource, TOTAL, client, fetch};
use crate::error::ApiError;
use crate::jwt::{PublicKey, PublicKeys, TokenError};

/// Minimum time between fetches for an unknown key.
const PAUSE: Duration = Duration::from_secs(5);
/// Minimum time between fetches after one failed, until keys are known.
const RETRY: Duration = Duration::from_secs(2);

/// Times for which keys are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The time without another fetch.
    fresh: Duration,
    /// The time while another fetch is running.
    overdue: Duration,
    /// The time while fetches fail.
    usable: Duration,
    pause: Duration,
}

impl Times {
    /// Keys are fetched again after `refresh`, and used for `stale` while that fails.
    pub(super) fn new(refresh: Duration, stale: Duration) -> Self {
        let overdue = refresh + refresh.min(TOTAL);
        Self { fresh: refresh, overdue, usable: stale.max(overdue), pause: PAUSE.min(refresh) }
    }
}

#[derive(Clone)]
struct Known {
    /// The time of the fetch.
    at: Instant,
    keys: Arc<PublicKeys>,
}

/// The keys of an issuer.
pub(super) struct RemoteKeys {
    source: KeySource,
    issuer: String,
    times: Times,
    client: Option<reqwest::Client>,
    known: RwLock<Option<Known>>,
    /// The end of the last fetch; the lock allows one at a time.
    looked: Mutex<Option<Instant>>,
    failed: AtomicBool,
}

impl RemoteKeys {
    pub(super) fn new(source: KeySource, issuer: String, times: Times) -> Self {
        let client = client();
        if let Err(error) = &client {
            tracing::error!(%error, "tokens of the external issuer are refused: failed to make an HTTP client");
        }
        Self {
            source,
            issuer,
            times,
            client: client.ok(),
            known: RwLock::default(),
            looked: Mutex::default(),
            failed: AtomicBool::new(false),
        }
    }

    pub(super) async fn find(self: &Arc<Self>, kid: Option<&str>) -> Result<PublicKey, ApiError> {
        Ok(self.ask(|keys| keys.find(kid).cloned()).await??)
    }

    /// Returns whether the key with this fingerprint is published.
    pub(super) async fn contain(self: &Arc<Self>, fingerprint: &str) -> Result<bool, ApiError> {
        let found = self.ask(|keys| if keys.contains(fingerprint) { Ok(()) } else { Err(TokenError::WithdrawnKey) });
        Ok(found.await?.is_ok())
    }

    /// Returns the answer of the keys; fetches them again when they have none.
    async fn ask<T>(
        self: &Arc<Self>,
        answer: impl Fn(&PublicKeys) -> Result<T, TokenError>,
    ) -> Result<Result<T, TokenError>, ApiError> {
        self.renew().await;
        if let Some(Ok(found)) = self.usable().map(|keys| answer(&keys)) {
            return Ok(Ok(found));
        }
        self.look(Instant::now()).await;
        let unavailable = || ApiError::Unavailable("the keys of the token's issuer can't be fetched".to_owned());
        let keys = self.usable().ok_or_else(unavailable)?;
        Ok(answer(&keys))
    }

    /// Fetches keys that are not fresh: in the background, and before the request once they are overdue. No request
    /// waits for an issuer that did not answer the last time.
    async fn renew(self: &Arc<Self>) {
        let Some(age) = self.known().map(|known| known.at.elapsed()) else { return };
        if age < self.times.fresh {
            return;
        }
        if age >= self.times.overdue && !self.failed.load(Ordering::Relaxed) {
            self.look(Instant::now()).await;
        } else if self.looked.try_lock().is_ok() {
            let keys = Arc::clone(self);
            // It ends by itself, after the time that an answer may take.
            tokio::spawn(async move { keys.look(Instant::now()).await });
        }
    }

    /// Fetches the keys, unless that was done after `asked`, or a short while ago.
    async fn look(&self, asked: Instant) {
        let mut looked = self.looked.lock().await;
        let pause = if self.known().is_some() { self.times.pause } else { RETRY };
        if looked.is_some_and(|at| at >= asked || at.elapsed() < pause) {
            return;
        }
        let Some(client) = &self.client else { return };
        let at = Instant::now();
        let fetched = fetch(client, &self.source, &self.issuer).await;
        self.failed.store(fetched.is_err(), Ordering::Relaxed);
        match fetched {
            Ok((keys, unusable)) => self.replace(Known { at, keys: Arc::new(keys) }, &unusable),
            Err(error) => {
                tracing::warn!(issuer = self.issuer, %error, "failed to fetch the keys of the external issuer");
            }
        }
        *looked = Some(Instant::now());
    }

    fn replace(&self, known: Known, unusable: &[&str]) {
        let issuer = &self.issuer;
        let former = self.known.write().unwrap_or_else(PoisonError::into_inner).replace(known.clone());
        let keys = &known.keys;
        let withdrawn = former.as_ref().map_or(0, |former| keys.missing_of(&former.keys));
        let is_same = withdrawn == 0 && former.is_some_and(|former| former.keys.missing_of(keys) == 0);
        if !is_same {
            tracing::info!(issuer, keys = keys.len(), withdrawn, ?unusable, "fetched the keys of the external issuer");
        }
    }

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn usable(&self) -> Option<Arc<PublicKeys>> {
        self.known().filter(|known| known.at.elapsed() < self.times.usable).map(|known| known.keys)
    }
}

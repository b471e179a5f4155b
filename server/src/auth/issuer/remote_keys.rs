//! The published keys of an issuer, fetched when they are needed.
//!
//! They are used for some seconds, then fetched again beside the requests that go on using them for a short while. A token
//! that names a key which is not among them makes the service look, once in a while. A key that the issuer does not publish
//! any more is of no use from the next look on, also for tokens that it has signed before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::fetch::{KeySource, TOTAL, client, fetch};
use crate::error::ApiError;
use crate::jwt::{PublicKey, PublicKeys, TokenError};

/// How long after a look no other one is made for a key that is not known.
const PAUSE: Duration = Duration::from_secs(5);
/// How long after a look that failed no other one is made while there are no keys.
const RETRY: Duration = Duration::from_secs(2);

/// How long keys are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Without another look.
    fresh: Duration,
    /// While another look is being made.
    overdue: Duration,
    /// When they can't be fetched again.
    usable: Duration,
    /// See [`PAUSE`].
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
    /// When they were asked for.
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
    /// When the last look ended; one at a time.
    looked: Mutex<Option<Instant>>,
    /// Whether it failed.
    failed: AtomicBool,
}

impl RemoteKeys {
    pub(super) fn new(source: KeySource, issuer: String, times: Times) -> Self {
        let client = client();
        if let Err(error) = &client {
            tracing::error!(%error, "tokens of the external issuer are refused: there is no HTTP client");
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

    /// The key of this name.
    pub(super) async fn find(self: &Arc<Self>, kid: Option<&str>) -> Result<PublicKey, ApiError> {
        Ok(self.ask(|keys| keys.find(kid).cloned()).await??)
    }

    /// Whether the key with this fingerprint is among them.
    pub(super) async fn contain(self: &Arc<Self>, fingerprint: &str) -> Result<bool, ApiError> {
        let found = self.ask(|keys| if keys.contains(fingerprint) { Ok(()) } else { Err(TokenError::WithdrawnKey) });
        Ok(found.await?.is_ok())
    }

    /// What the keys say. Looks again when they have no answer.
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

    /// Looks again at keys that are not fresh: beside the requests, and before them once that should have been done. Nobody
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
                tracing::warn!(issuer = self.issuer, %error, "the keys of the external issuer can't be fetched");
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

    /// The keys, as long as they may be used.
    fn usable(&self) -> Option<Arc<PublicKeys>> {
        self.known().filter(|known| known.at.elapsed() < self.times.usable).map(|known| known.keys)
    }
}

//! The sampling sessions behind requests: one session per tenant and server, with a sampling session for each requested
//! model. Requests that name a client's sampling session sample in that one, by numbers that no client has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use tokio::sync::Mutex;
use trainyard_protocol::{SamplingSessionId, SessionId, TenantId, TinkerPath};
use trainyard_scheduler::{Error, NewSamplingSession, NewSession, Scheduler};

/// Tag of these sessions in the catalogue.
const TAG: &str = "inference";
/// Maximum number of sampling sessions of one session; after that, a new session is created.
const MAX_SAMPLING_SESSIONS: usize = 1_024;
/// Samples of a clone of a client: clone `n` numbers its samples from `n` times this on.
const SAMPLES_OF_CLONE: i64 = 1_000_000_000;

/// The weights from which a request samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    /// The base model's name.
    pub(crate) base_model: String,
    pub(crate) weights: Weights,
}

/// The weights beside those of the base model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weights {
    /// The base model alone.
    Base,
    /// A sampler checkpoint with its folder, which differs when one of the same name was deleted and saved again.
    Checkpoint(String, PathBuf),
    /// Those of a client's sampling session, in the client's session.
    Sampler {
        /// Session that owns the sampling session.
        session: SessionId,
        /// Id of the sampling session.
        id: SamplingSessionId,
    },
}

/// The sessions of all tenants. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SamplingSessions(Arc<SyncMutex<BTreeMap<TenantId, Shared>>>);

/// The sessions of a tenant, locked while one is created.
type Shared = Arc<Mutex<OfTenant>>;

/// The sessions of a tenant.
#[derive(Default)]
struct OfTenant {
    /// The server's own session, created when it is first needed.
    own: Option<Own>,
    /// Numbers of the next samples in clients' sampling sessions.
    joined: BTreeMap<SamplingSessionId, i64>,
}

/// The server's session for a tenant.
struct Own {
    session: SessionId,
    sampling: BTreeMap<Source, SamplingSessionId>,
    next_sampling: i64,
    next_sample: i64,
}

/// The identity of a sample to be submitted.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) session: SessionId,
    pub(crate) sampling_session: SamplingSessionId,
    pub(crate) seq_id: i64,
}

impl SamplingSessions {
    /// A sample number, unique within a sampling session on `source`.
    ///
    /// # Errors
    /// Fails if a session can't be created, the checkpoint is gone, or the client's session has ended.
    pub(crate) async fn place(
        &self,
        scheduler: &Scheduler,
        tenant: &TenantId,
        source: &Source,
    ) -> Result<Place, Error> {
        let of_tenant = self.of(tenant);
        let mut of_tenant = of_tenant.lock().await;
        if let Weights::Sampler { session, id } = &source.weights {
            let seq_id = of_tenant.next_of_clone(scheduler, tenant, id).await?;
            return Ok(Place { session: session.clone(), sampling_session: id.clone(), seq_id });
        }
        let own = &mut of_tenant.own;
        if own.as_ref().is_some_and(|own| own.sampling.len() >= MAX_SAMPLING_SESSIONS) {
            *own = None;
        }
        let own = match own {
            Some(own) => own,
            none => none.insert(Own::create(scheduler, tenant).await?),
        };
        let sampling_session = match own.sampling.get(source) {
            Some(known) => known.clone(),
            None => own.open(scheduler, tenant, source).await?,
        };
        let seq_id = own.next_sample;
        own.next_sample += 1;
        Ok(Place { session: own.session.clone(), sampling_session, seq_id })
    }

    /// Gives the next request of a tenant a new session, unless it has one already: the given session has ended.
    pub(crate) async fn forget(&self, tenant: &TenantId, session: &SessionId) {
        let of_tenant = self.of(tenant);
        let mut of_tenant = of_tenant.lock().await;
        if of_tenant.own.as_ref().is_some_and(|own| own.session == *session) {
            of_tenant.own = None;
        }
    }

    fn of(&self, tenant: &TenantId) -> Shared {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(tenant.clone()).or_default())
    }
}

impl OfTenant {
    /// The number of the next sample in a client's sampling session: that of a clone of the client, which this server is.
    async fn next_of_clone(
        &mut self,
        scheduler: &Scheduler,
        tenant: &TenantId,
        id: &SamplingSessionId,
    ) -> Result<i64, Error> {
        let known = self.joined.get(id).copied().filter(|next| next % SAMPLES_OF_CLONE != 0);
        let number = match known {
            Some(next) => next,
            None => scheduler.join_sampling_session(tenant, id).await? * SAMPLES_OF_CLONE,
        };
        if self.joined.len() >= MAX_SAMPLING_SESSIONS {
            self.joined.clear();
        }
        self.joined.insert(id.clone(), number + 1);
        Ok(number)
    }
}

impl Own {
    async fn create(scheduler: &Scheduler, tenant: &TenantId) -> Result<Self, Error> {
        let new = NewSession {
            tags: vec![TAG.to_owned()],
            user_metadata: serde_json::Map::new().into(),
            sdk_version: String::new(),
            project_id: None,
            display_name: None,
            idempotency_key: None,
        };
        let session = scheduler.create_session(tenant, new).await?;
        Ok(Self { session, sampling: BTreeMap::new(), next_sampling: 0, next_sample: 0 })
    }

    async fn open(
        &mut self,
        scheduler: &Scheduler,
        tenant: &TenantId,
        source: &Source,
    ) -> Result<SamplingSessionId, Error> {
        let path = match &source.weights {
            Weights::Checkpoint(path, _) => Some(path.parse::<TinkerPath>()),
            _ => None,
        };
        let new = NewSamplingSession {
            session: self.session.clone(),
            seq_id: self.next_sampling,
            base_model: source.base_model.clone(),
            model_path: path.transpose().map_err(|error| Error::Invalid(error.message))?,
            snapshot: None,
        };
        // The number is used up in any case: a partly failed submission may exist.
        self.next_sampling += 1;
        let id = scheduler.create_sampling_session(tenant, new).await?;
        self.sampling.insert(source.clone(), id.clone());
        Ok(id)
    }
}

//! The sampling sessions behind requests that name none: one session per tenant and server, with a sampling session for
//! each requested model.

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

/// The weights from which a request samples.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Source {
    /// The base model's name.
    pub(crate) base_model: String,
    /// A sampler checkpoint with its folder, which differs when one of the same name was deleted and saved again.
    pub(crate) checkpoint: Option<(String, PathBuf)>,
}

/// The sessions of all tenants. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct SamplingSessions(Arc<SyncMutex<BTreeMap<TenantId, Shared>>>);

/// The session of a tenant, created when it is first needed and locked meanwhile.
type Shared = Arc<Mutex<Option<Own>>>;

/// The session of a tenant.
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
    /// Fails if a session can't be created, or the checkpoint is gone.
    pub(crate) async fn place(
        &self,
        scheduler: &Scheduler,
        tenant: &TenantId,
        source: &Source,
    ) -> Result<Place, Error> {
        let own = self.of(tenant);
        let mut own = own.lock().await;
        if own.as_ref().is_some_and(|own| own.sampling.len() >= MAX_SAMPLING_SESSIONS) {
            *own = None;
        }
        let own = match &mut *own {
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
        let own = self.of(tenant);
        let mut own = own.lock().await;
        if own.as_ref().is_some_and(|own| own.session == *session) {
            *own = None;
        }
    }

    fn of(&self, tenant: &TenantId) -> Arc<Mutex<Option<Own>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(tenant.clone()).or_default())
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
        let path = source.checkpoint.as_ref().map(|(path, _)| path.parse::<TinkerPath>());
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

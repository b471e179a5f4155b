//! The base models that are served, and their tokenizers: fixed where the engine is in the same process, otherwise read
//! from the store, where workers register them.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::sleep;
use trainyard_gpu_runtime::config::ModelFiles;
use trainyard_protocol::BaseModel;
use trainyard_scheduler::{Error, Scheduler};

use crate::hub::Hub;

/// The time between two looks of an API server for new base models.
const PERIOD: Duration = Duration::from_secs(5);
/// The same time while there are none, or the store can't be reached.
const EAGER_PERIOD: Duration = Duration::from_millis(250);

/// The base models that are served. Cheap to clone; all clones are one list.
#[derive(Clone, Default)]
pub struct Models {
    list: Arc<RwLock<Arc<[BaseModel]>>>,
    hub: Hub,
}

impl Models {
    /// Makes the list of these models, with the tokenizer and configuration files of each.
    pub fn new(models: Vec<BaseModel>, files: &BTreeMap<String, ModelFiles>) -> Self {
        let new = Self::default();
        new.set(models, files);
        new
    }

    fn set(&self, models: Vec<BaseModel>, files: &BTreeMap<String, ModelFiles>) {
        self.hub.set(files);
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = models.into();
    }

    /// Returns the models in their current state.
    pub fn list(&self) -> Arc<[BaseModel]> {
        Arc::clone(&self.list.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the tokenizers and configuration files of the models.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Waits until the store contains a base model, then reads all of them.
    pub async fn wait_for_first(&self, scheduler: &Scheduler) {
        loop {
            match self.refresh(scheduler).await {
                Ok(()) if !self.list().is_empty() => return,
                Ok(()) => {}
                Err(error) => tracing::warn!(%error, "failed to read base models; retrying"),
            }
            sleep(EAGER_PERIOD).await;
        }
    }

    /// Keeps reading new base models from the store until the process ends.
    pub async fn follow(&self, scheduler: &Scheduler) {
        loop {
            sleep(PERIOD).await;
            if let Err(error) = self.refresh(scheduler).await {
                tracing::warn!(%error, "failed to read base models; retrying");
            }
        }
    }

    async fn refresh(&self, scheduler: &Scheduler) -> Result<(), Error> {
        let models = scheduler.base_models().await?;
        if *self.list() == *models {
            return Ok(());
        }
        let mut files = BTreeMap::new();
        for model in &models {
            files.insert(model.name.clone(), scheduler.base_model_files(&model.name).await?);
        }
        tracing::info!(models = models.len(), "base models read from the store");
        self.set(models, &files);
        Ok(())
    }
}

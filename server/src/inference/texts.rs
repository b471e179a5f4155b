//! Tokenizers and chat templates of the base models, read when they are first needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use trainyard_chat::texts::{ModelText, without_tokenizer};

use crate::error::ApiError;
use crate::hub::Hub;

/// Maximum number of renderings and encodings at a time; others wait.
const AT_ONCE: usize = 4;

/// Tokenizers and templates of the base models requested so far. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ModelTexts {
    read: Arc<Mutex<BTreeMap<String, Known>>>,
    working: Arc<Semaphore>,
}

/// A model's texts with the commit of the files that they were read from.
struct Known {
    commit: String,
    text: Arc<ModelText>,
}

impl Default for ModelTexts {
    fn default() -> Self {
        Self { read: Arc::default(), working: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl ModelTexts {
    /// The tokenizer and template of a base model.
    ///
    /// # Errors
    /// Fails if the model has no tokenizer, or its tokenizer can't be read.
    pub(crate) async fn get(&self, hub: &Hub, model: &str) -> Result<Arc<ModelText>, ApiError> {
        let files = hub.files(model).ok_or_else(|| without_tokenizer(model))?;
        if let Some(known) = self.lock().get(model).filter(|known| known.commit == files.commit) {
            return Ok(Arc::clone(&known.text));
        }
        let commit = files.commit.clone();
        let name = model.to_owned();
        let text = self.work(move || ModelText::read(&name, |file| files.content(file))).await??;
        let text = Arc::new(text);
        self.lock().insert(model.to_owned(), Known { commit, text: Arc::clone(&text) });
        Ok(text)
    }

    /// Runs long work on a separate thread.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let internal = |error: &dyn std::fmt::Display| ApiError::Internal(format!("failed to process text: {error}"));
        let permit = Arc::clone(&self.working).acquire_owned().await.map_err(|error| internal(&error))?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|error| internal(&error))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Known>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[tokio::test]
    async fn a_model_without_a_tokenizer_is_refused_by_name() {
        let refused = ModelTexts::default().get(&Hub::default(), "m").await.err().unwrap();
        assert!(refused.to_string().contains("\"m\" has no tokenizer.json"), "{refused}");
    }
}

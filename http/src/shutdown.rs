//! The announcement that the process ends.

use tokio::sync::watch;

/// Ends accepting, idle connections and long polls when the server shuts down.
#[derive(Clone, Debug)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Returns the side that announces a shutdown (send `true`) and the side that listens.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Returns once a shutdown is announced; never, if the announcing side is dropped before.
    pub async fn requested(&self) {
        if self.0.clone().wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

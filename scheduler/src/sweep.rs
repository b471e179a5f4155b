//! What time brings.

use crate::{Error, Scheduler, Swept};

impl Scheduler {
    /// Expires silent sessions, drops old results and reports expired checkpoints. To be called every
    /// few seconds.
    pub async fn sweep(&self) -> Result<Swept, Error> {
        Err(Error::Store("x"))
    }
}

//! Thins out the metrics of runs with very many requests.

use trainyard_protocol::RunId;

use crate::Error;
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::metrics_thinning::{self, Thinning};
use crate::writer::write::Write;

impl Core {
    /// Thins out the metrics of those of this worker's runs that approach their limit.
    pub(crate) async fn thin_out_metrics(&self) -> Result<(), Error> {
        let most = i64::try_from(self.options.metrics_rows).unwrap_or(i64::MAX);
        let mut runs = self.queue.read().run_ids();
        runs.retain(|run| self.queue.read().next_seq(run).is_some_and(|next| next > most / 4 * 3));
        for run in runs {
            let span = metrics_thinning::metrics_span(&mut self.system_reader().await?, &run).await?;
            let mut left = span.and_then(|span| span.thinning(most));
            while let Some(thinning) = left {
                left = self.call(ThinOut { run: run.clone(), thinning }).await?;
            }
        }
        Ok(())
    }
}

/// A write that thins out some rows of a run.
struct ThinOut {
    run: RunId,
    thinning: Thinning,
}

impl Write for ThinOut {
    /// What is left to do.
    type Output = Option<Thinning>;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, _core: &Core) -> Result<Option<Thinning>, Error> {
        metrics_thinning::thin_out_page(conn, &self.run, self.thinning).await
    }
}

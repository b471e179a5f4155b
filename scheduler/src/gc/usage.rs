//! Adds up usage by hour, and deletes usage whose retention is over.

use std::time::Duration;

use crate::Error;
use crate::context::core::Core;
use crate::store::db::{Conn, RowScope};
use crate::store::usage_by_hour::{self, Kept};
use crate::writer::write::Write;

/// Delay after which usage of a moment has been recorded by all transactions.
const LAG: Duration = Duration::from_secs(600);
/// Maximum number of rounds of one call; the next call continues.
const ROUNDS: usize = 20;

impl Core {
    /// Adds up usage by hour, and deletes usage whose retention is over.
    pub(crate) async fn collect_usage(&self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            if !self.call(CollectUsage).await? {
                break;
            }
        }
        Ok(())
    }
}

struct CollectUsage;

impl Write for CollectUsage {
    /// Whether there may be more.
    type Output = bool;

    fn scope(&self) -> RowScope {
        RowScope::System
    }

    async fn apply(&mut self, conn: &mut Conn, core: &Core) -> Result<bool, Error> {
        let (now, options) = (core.now(), &core.options);
        let added = usage_by_hour::add_up_usage(conn, now.minus(LAG)).await?;
        let kept = Kept {
            requests: now.minus(options.usage_retention),
            rows: options.usage_rows,
            history: now.minus(options.usage_history),
        };
        Ok(usage_by_hour::delete_usage(conn, kept).await? || added)
    }
}

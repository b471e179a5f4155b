//! Thins out the rows of a run in the table `run_metrics`, so that a run may go on for ever.
//!
//! The newest rows are complete. Of the older requests, in blocks of 64 with consecutive positions, every second, fourth,
//! eighth … block is kept: the smallest power of two that leaves half of the permitted rows. A block that a larger power
//! keeps was kept by the smaller ones, so the kept rows are the same however often a run is thinned out.

use trainyard_protocol::RunId;

use super::db::{Conn, Row, column, sql};
use super::failed;
use crate::Error;

/// Most rows that one call of [`thin_out_page`] examines.
const ROWS: i64 = 2_000;
/// Consecutive positions that are kept or deleted together: some steps with all their passes.
const BLOCK: i64 = 64;

/// Place of a row: its step and its position in the run's order.
type Place = (i64, i64);

/// How far the metrics of a run have got, and how far they are thinned out.
#[derive(Clone, Copy)]
pub(crate) struct MetricsSpan {
    /// Position of the newest row.
    newest: i64,
    /// Position up to which rows are thinned out.
    thinned_to: i64,
    /// First step of which all rows are kept.
    complete_from: i64,
}

/// Rows that are to be thinned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thinning {
    /// Place behind which rows are examined.
    pub(crate) after: Place,
    /// Last position that is examined.
    pub(crate) to: i64,
    /// Number of blocks of which one is kept.
    pub(crate) one_of: i64,
}

impl MetricsSpan {
    /// Returns what to thin out so that a run keeps at most `most` rows; `None` while it has fewer in any case.
    pub(crate) fn thinning(self, most: i64) -> Option<Thinning> {
        let to = self.newest - most / 4;
        let one_of =
            |to: i64| to.div_euclid((most / 2).max(1)).saturating_add(1).max(1).unsigned_abs().next_power_of_two();
        // Between two calls, up to a quarter of the permitted rows are added to the newest quarter.
        if to - self.thinned_to < most / 4 || one_of(to) == 1 {
            return None;
        }
        let goes_on = one_of(to) == one_of(self.thinned_to);
        let after = if goes_on { (self.complete_from - 1, self.thinned_to) } else { (-1, -1) };
        Some(Thinning { after, to, one_of: i64::try_from(one_of(to)).unwrap_or(i64::MAX) })
    }
}

/// Returns how far the metrics of a run have got; `None` if it has none.
pub(crate) async fn metrics_span(conn: &mut Conn, run: &RunId) -> Result<Option<MetricsSpan>, Error> {
    const SQL: &str = "-- metrics_span
        SELECT metrics.seq_id, runs.metrics_thinned_to, runs.metrics_complete_from
        FROM run_metrics AS metrics CROSS JOIN runs WHERE metrics.run_id = $1 AND runs.id = $1
        ORDER BY metrics.step DESC, metrics.seq_id DESC LIMIT 1";
    let found = sql(SQL).bind(run.as_str()).fetch_optional(conn).await.map_err(failed("read metrics"))?;
    let read = |row: Row| {
        Ok(MetricsSpan {
            newest: column(&row, "seq_id")?,
            thinned_to: column(&row, "metrics_thinned_to")?,
            complete_from: column(&row, "metrics_complete_from")?,
        })
    };
    found.map(read).transpose()
}

/// Thins out some rows of a run. Returns what is left to do. The last call records how far the metrics are thinned out; after
/// a crash before it, all begins again.
pub(crate) async fn thin_out_page(conn: &mut Conn, run: &RunId, thinning: Thinning) -> Result<Option<Thinning>, Error> {
    const NEXT: &str = "-- thin_out_page: next
        SELECT step, seq_id FROM run_metrics WHERE run_id = $1 AND (step, seq_id) > ($2, $3)
        ORDER BY step, seq_id LIMIT $4";
    const DELETE: &str = "-- thin_out_page
        DELETE FROM run_metrics WHERE run_id = $1 AND (step, seq_id) > ($2, $3) AND (step, seq_id) <= ($4, $5)
            AND (seq_id / $6) % $7 <> 0";
    const DONE: &str = "-- thin_out_page: done
        UPDATE runs SET metrics_thinned_to = $2, metrics_complete_from = $3 WHERE id = $1";
    let doing = || failed("thin out metrics");
    let Thinning { after, to, one_of } = thinning;
    let next = sql(NEXT).bind(run.as_str()).bind(after.0).bind(after.1).bind(ROWS).fetch_all(conn).await;
    let mut last = after;
    let mut examined = 0;
    for row in next.map_err(doing())? {
        let place: Place = (column(&row, "step")?, column(&row, "seq_id")?);
        if place.1 > to {
            break;
        }
        (last, examined) = (place, examined + 1);
    }
    let delete = sql(DELETE).bind(run.as_str()).bind(after.0).bind(after.1).bind(last.0).bind(last.1);
    delete.bind(BLOCK).bind(one_of).execute(conn).await.map_err(doing())?;
    if examined == ROWS {
        return Ok(Some(Thinning { after: last, ..thinning }));
    }
    let done = sql(DONE).bind(run.as_str()).bind(to).bind(last.0.saturating_add(1));
    done.execute(conn).await.map_err(doing())?;
    Ok(None)
}

/// Returns the first step of a run of which all metrics are kept.
pub(crate) async fn complete_from(conn: &mut Conn, run: &RunId) -> Result<i64, Error> {
    const SQL: &str = "-- complete_from
        SELECT metrics_complete_from FROM runs WHERE id = $1";
    let found = sql(SQL).bind(run.as_str()).scalar(conn).await;
    Ok(found.map_err(failed("read metrics"))?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: i64 = 1_000;

    fn span(newest: i64, thinned_to: i64, complete_from: i64) -> Option<Thinning> {
        MetricsSpan { newest, thinned_to, complete_from }.thinning(MOST)
    }

    #[test]
    fn a_run_is_thinned_out_before_it_has_more_rows_than_permitted() {
        assert_eq!(span(749, 0, 0), None);
        assert_eq!(span(750, 0, 0), Some(Thinning { after: (-1, -1), to: 500, one_of: 2 }));
        // Later the same share of the following rows is kept, and of all rows once there are twice as many.
        assert_eq!(span(999, 500, 7), None);
        assert_eq!(span(1_000, 500, 7), Some(Thinning { after: (6, 500), to: 750, one_of: 2 }));
        assert_eq!(span(1_250, 750, 9), Some(Thinning { after: (-1, -1), to: 1_000, one_of: 4 }));
        assert_eq!(span(1 << 40, 1_000, 9).map(|thinning| thinning.one_of), Some(1 << 32));
    }

    #[test]
    fn kept_rows_stay_within_the_limit_for_ever() {
        // Positions from 1 on, of the blocks that are kept.
        let kept_of = |to: i64, one_of: i64| {
            let blocks = (0..=to / BLOCK).filter(|block| block % one_of == 0);
            blocks.map(|block| (to + 1).min((block + 1) * BLOCK) - block * BLOCK).sum::<i64>() - 1
        };
        let (mut thinned_to, mut one_of) = (0, 1);
        for newest in (10..400_000).step_by(10) {
            assert!(kept_of(thinned_to, one_of) + (newest - thinned_to) <= MOST + BLOCK, "{newest}");
            if let Some(thinning) = span(newest, thinned_to, 0) {
                assert!(thinning.one_of >= one_of && newest - thinning.to >= MOST / 4);
                (thinned_to, one_of) = (thinning.to, thinning.one_of);
            }
        }
        assert!(one_of > 256, "{one_of}");
    }
}

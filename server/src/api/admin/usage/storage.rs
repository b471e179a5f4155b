//! Storage by hour, computed from stored checkpoints.

use std::collections::BTreeMap;

use trainyard_scheduler::{Attribution, StoredCheckpoint, Timestamp};

use super::GIGABYTE;
use super::period::HOUR;

/// Storage that checkpoints used within an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HourOfStorage {
    /// Storage in use, in gigabytes times hours.
    pub(super) gigabyte_hours: f64,
    /// Number of checkpoints saved in the hour.
    pub(super) saved: u64,
}

/// Returns storage by the start of the hour and attribution, for whole hours from `from` to `to`. Checkpoints that
/// still exist count until `now`.
pub(super) fn by_hour(
    stored: Vec<StoredCheckpoint>,
    from: Timestamp,
    to: Timestamp,
    now: Timestamp,
) -> BTreeMap<(i64, Attribution), HourOfStorage> {
    let mut hours: BTreeMap<(i64, Attribution), HourOfStorage> = BTreeMap::new();
    for checkpoint in stored {
        let begin = checkpoint.from.as_millis();
        let end = checkpoint.to.unwrap_or(now).as_millis().min(to.as_millis());
        let mut hour = begin.max(from.as_millis()).div_euclid(HOUR) * HOUR;
        while hour < end.max(begin + 1).min(to.as_millis()) {
            let millis = (end.min(hour + HOUR) - begin.max(hour)).max(0);
            let entry = hours.entry((hour, checkpoint.of.clone())).or_default();
            entry.gigabyte_hours += checkpoint.size_bytes as f64 / GIGABYTE * millis as f64 / HOUR as f64;
            entry.saved += u64::from((hour..hour + HOUR).contains(&begin));
            hour += HOUR;
        }
    }
    hours
}

#[cfg(test)]
mod tests {
    use trainyard_protocol::SessionId;

    use super::*;

    fn stored(from: i64, to: Option<i64>, size_bytes: u64) -> StoredCheckpoint {
        let of = Attribution { base_model: "m".into(), session: SessionId::new("s"), project: None, user: None };
        StoredCheckpoint { from: Timestamp(from), to: to.map(Timestamp), size_bytes, of }
    }

    fn hours(stored: Vec<StoredCheckpoint>, now: i64) -> Vec<(i64, f64, u64)> {
        let found = by_hour(stored, Timestamp(HOUR), Timestamp(4 * HOUR), Timestamp(now));
        found.into_iter().map(|((hour, _), of)| (hour / HOUR, of.gigabyte_hours, of.saved)).collect()
    }

    #[test]
    fn a_checkpoint_counts_for_as_long_as_it_is_stored() {
        let late = 100 * HOUR;
        let half = HOUR / 2;
        assert_eq!(
            hours(vec![stored(HOUR + half, Some(2 * HOUR + half), 2_000_000_000)], late),
            [(1, 1.0, 1), (2, 1.0, 0)]
        );
        // It was there before, and is there still.
        assert_eq!(hours(vec![stored(0, None, 1_000_000_000)], late), [(1, 1.0, 0), (2, 1.0, 0), (3, 1.0, 0)]);
        assert_eq!(hours(vec![stored(0, None, 1_000_000_000)], HOUR + half), [(1, 0.5, 0)]);
        // Replaced at once, it was saved all the same.
        assert_eq!(hours(vec![stored(2 * HOUR, Some(2 * HOUR), 5)], late), [(2, 0.0, 1)]);
        let two = vec![stored(HOUR, Some(2 * HOUR), 1_000_000_000), stored(HOUR, Some(2 * HOUR), 500_000_000)];
        assert_eq!(hours(two, late), [(1, 1.5, 2)]);
    }
}

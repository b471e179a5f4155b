//! A run's metrics as curves over all its requests, without a row in memory for each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use trainyard_protocol::{RunId, TenantId};

use crate::store::{metrics_thinning, run_metrics, runs};
use crate::{Error, MetricCurve, MetricPoint, MetricsRange, RequestKind, RunCurves, Scheduler};

/// Number of requests that one statement reads.
const PAGE: usize = 4_000;

impl Scheduler {
    /// Returns the curves of one of the tenant's runs, limited to a kind of request and to some metrics if these are
    /// given.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown run, or another tenant's.
    pub async fn run_curves(
        &self,
        tenant: &TenantId,
        run: &RunId,
        range: &MetricsRange,
        kind: Option<RequestKind>,
        names: Option<&BTreeSet<String>>,
    ) -> Result<RunCurves, Error> {
        let complete_from = {
            let conn = &mut self.core.reader_of(tenant).await?;
            runs::run(conn, tenant, run).await?;
            metrics_thinning::complete_from(conn, run).await?
        };
        let mut curves = Curves { kind, names, complete_from, requests: 0, by_kind: BTreeMap::new() };
        let mut after = (range.steps.0, -1);
        loop {
            // Each page uses its own connection, so that a long run does not block others.
            let conn = &mut self.core.reader_of(tenant).await?;
            let page = run_metrics::joined_metrics(conn, tenant, run, range, after.0, after.1, PAGE as i64).await?;
            let Some(page) = page else { return Ok(curves.sorted()) };
            let rows: Vec<Row<'_>> = serde_json::from_str(&page).map_err(damaged)?;
            let count = rows.len();
            for row in rows {
                let place = (row.0, row.1);
                if place <= after {
                    return Err(damaged(format!("{run}: step and number {place:?} follow {after:?}")));
                }
                after = place;
                curves.add(row)?;
            }
            if count < PAGE {
                return Ok(curves.sorted());
            }
        }
    }
}

fn damaged(detail: impl fmt::Display) -> Error {
    Error::store("read metrics", detail)
}

/// A request: step, number, kind, end in ms since the epoch, and metrics.
#[derive(Deserialize)]
struct Row<'a>(i64, i64, &'a str, i64, #[serde(borrow)] Metrics<'a>);

/// The metrics of a request in their order.
struct Metrics<'a>(Vec<(Name<'a>, Option<f64>)>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Metrics<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Metrics<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("numbers by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::with_capacity(8);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Metrics(pairs))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

/// Curves of the requests read so far.
struct Curves<'w> {
    kind: Option<RequestKind>,
    names: Option<&'w BTreeSet<String>>,
    complete_from: i64,
    requests: u64,
    by_kind: BTreeMap<RequestKind, Vec<(String, Vec<MetricPoint>)>>,
}

impl Curves<'_> {
    fn add(&mut self, row: Row<'_>) -> Result<(), Error> {
        let Row(step, _, kind, at, Metrics(metrics)) = row;
        let kind = RequestKind::from_text(kind).ok_or_else(|| damaged(format!("{kind:?} is not a kind of request")))?;
        if self.kind.is_some_and(|wanted| wanted != kind) {
            return Ok(());
        }
        let curves = self.by_kind.entry(kind).or_default();
        let mut is_wanted = self.names.is_none();
        for (place, (Name(name), value)) in metrics.into_iter().enumerate() {
            if self.names.is_some_and(|names| !names.contains(name.as_ref())) {
                continue;
            }
            is_wanted = true;
            let point = (step, at, value);
            // Requests of a kind mostly have the same metrics, in the same places.
            let known = match curves.get(place) {
                Some((known, _)) if *known == name => Some(place),
                _ => curves.iter().position(|(known, _)| *known == name),
            };
            match known.and_then(|place| curves.get_mut(place)) {
                Some((_, points)) => points.push(point),
                None => curves.push((name.into_owned(), vec![point])),
            }
        }
        self.requests += u64::from(is_wanted);
        Ok(())
    }

    fn sorted(self) -> RunCurves {
        let of_kind = |(kind, curves): (RequestKind, Vec<(String, Vec<MetricPoint>)>)| {
            curves.into_iter().map(move |(metric, points)| MetricCurve { kind, metric, points })
        };
        let mut curves: Vec<MetricCurve> = self.by_kind.into_iter().flat_map(of_kind).collect();
        curves.sort_by(|a, b| (a.kind.as_str(), &a.metric).cmp(&(b.kind.as_str(), &b.metric)));
        RunCurves { requests: self.requests, complete_from: self.complete_from, curves }
    }
}

//! Thins out the points of a curve so that its extremes stay.

use trainyard_scheduler::MetricPoint;

/// Maximum number of points per interval: the smallest and the largest value, and the first that is not finite.
const PER_STRETCH: usize = 3;

/// Thins out a curve to at most `most` points, but at least four, and keeps their order. Of more points, intervals of
/// equal width in `position` keep their smallest and largest value and their first gap. The last point always stays.
pub(super) fn thin_out(
    points: Vec<MetricPoint>,
    most: usize,
    position: impl Fn(&MetricPoint) -> i64,
) -> Vec<MetricPoint> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return points };
    if points.len() <= most {
        return points;
    }
    let stretches = ((most - 1) / PER_STRETCH).max(1) as i128;
    let (start, end) = (i128::from(position(first)), i128::from(position(last)));
    let width = (end - start).max(0) + 1;
    let mut kept = Vec::with_capacity(most);
    let mut rest = points.as_slice();
    while let Some(next) = rest.first() {
        let stretch = ((i128::from(position(next)) - start).max(0) * stretches / width).min(stretches - 1);
        // The last one takes what comes after the end, where a clock was set back.
        let behind = match stretch + 1 {
            next if next == stretches => i128::MAX,
            next => start + (next * width + stretches - 1) / stretches,
        };
        let length = rest.iter().position(|point| i128::from(position(point)) >= behind).unwrap_or(rest.len());
        let (stretch, others) = rest.split_at(length);
        keep(stretch, &mut kept);
        rest = others;
    }
    if kept.last() != Some(last) {
        kept.push(*last);
    }
    kept
}

/// Keeps the points of an interval that thinning out does not remove.
fn keep(stretch: &[MetricPoint], kept: &mut Vec<MetricPoint>) {
    let finite = || stretch.iter().enumerate().filter_map(|(at, point)| Some((at, point.2?)));
    let smallest = finite().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let largest = finite().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let gap = stretch.iter().position(|point| point.2.is_none());
    let mut places: Vec<usize> = [smallest, largest, gap].into_iter().flatten().collect();
    places.sort_unstable();
    places.dedup();
    kept.extend(places.into_iter().map(|at| stretch[at]));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn by_step(point: &MetricPoint) -> i64 {
        point.0
    }

    #[test]
    fn a_spike_a_gap_and_the_end_survive() {
        let mut points: Vec<MetricPoint> = (0..10_000).map(|step| (step, step * 10, Some((step % 7) as f64))).collect();
        points[4_321].2 = Some(1e9);
        points[8_888].2 = None;
        points[9_999].2 = Some(3.25);
        let thin = thin_out(points.clone(), 300, by_step);
        assert!(thin.len() <= 300 && thin.len() > 150, "{}", thin.len());
        for place in [4_321, 8_888, 9_999] {
            assert!(thin.contains(&points[place]), "{place}");
        }
        assert_eq!(thin_out(points[..300].to_vec(), 300, by_step), points[..300]);
        assert_eq!(thin_out(Vec::new(), 300, by_step), []);
    }

    #[test]
    fn stretches_are_of_equal_width_and_not_of_equal_numbers() {
        // A thousand points in the first step, ten in as many later ones.
        let mut points: Vec<MetricPoint> = (0..1_000).map(|i| (0, i, Some(i as f64))).collect();
        points.extend((1..11).map(|step| (step, 1_000 + step, Some(0.5))));
        let thin = thin_out(points, 40, by_step);
        assert!((1..11).all(|step| thin.iter().any(|point| point.0 == step)), "{thin:?}");
    }

    #[test]
    fn a_clock_that_is_set_back_yields_no_more_points() {
        let by_time = |point: &MetricPoint| point.1;
        let saw = |i: i64| (i, (i % 50) * 100, Some(i as f64));
        let points: Vec<MetricPoint> = (0..5_000).map(saw).collect();
        let thin = thin_out(points.clone(), 60, by_time);
        assert!(thin.len() <= 60 && thin.last() == points.last() && thin.contains(&points[0]), "{}", thin.len());
    }

    proptest! {
        #[test]
        fn some_of_the_points_are_kept_in_order_with_both_extremes(
            gaps in prop::collection::vec((0_i64..50, prop::option::weighted(0.9, -1e6_f64..1e6)), 0..400),
            most in 10_usize..100,
        ) {
            let mut at = -100;
            let points: Vec<MetricPoint> = gaps.iter().map(|(gap, value)| { at += gap; (at, at * 2, *value) }).collect();
            let thin = thin_out(points.clone(), most, by_step);
            prop_assert!(thin.len() <= most.max(4));
            let mut rest = points.iter();
            prop_assert!(thin.iter().all(|kept| rest.any(|point| point == kept)), "order");
            let extremes = |points: &[MetricPoint]| {
                let values = points.iter().filter_map(|point| point.2);
                (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
            };
            prop_assert_eq!(extremes(&thin), extremes(&points));
            prop_assert_eq!(thin.last(), points.last());
            prop_assert_eq!(thin.iter().any(|point| point.2.is_none()), points.iter().any(|point| point.2.is_none()));
        }
    }
}

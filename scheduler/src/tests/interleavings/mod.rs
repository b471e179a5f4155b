//! Random interleavings of submissions, retries, work, cancellations, expiry and crashes against a model of what each
//! worker has in memory: in one process on each database, and with two workers and an API server on PostgreSQL.

mod plan;
mod process;
mod steps;
mod world;

use plan::{RUNS, Script, script};
use proptest::prelude::*;
use proptest::test_runner::Config;
use steps::{Step, steps};
use world::{Layout, World};

use super::database::Backend;

fn play(layout: Layout, scripts: Vec<Script>, steps: &[Step]) {
    let mut world = World::new(layout, scripts);
    for step in steps {
        world.step(step);
    }
    world.finish();
}

proptest! {
    #![proptest_config(Config { cases: 24, max_shrink_iters: 60, failure_persistence: None, ..Config::default() })]

    #[test]
    fn one_process_on_sqlite_does_each_operation_once_and_in_order(
        scripts in prop::collection::vec(script(), RUNS), steps in steps(),
    ) {
        play(Layout::One(Backend::Sqlite), scripts, &steps);
    }

    #[test]
    fn one_process_on_postgres_does_each_operation_once_and_in_order(
        scripts in prop::collection::vec(script(), RUNS), steps in steps(),
    ) {
        play(Layout::One(Backend::Postgres), scripts, &steps);
    }

    #[test]
    fn two_workers_do_each_operation_once_and_in_order(
        scripts in prop::collection::vec(script(), RUNS), steps in steps(),
    ) {
        play(Layout::Fleet, scripts, &steps);
    }
}

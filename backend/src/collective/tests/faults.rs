//! Ranks that end the others' exchanges, for reasons of their own.

use super::*;

#[test]
fn a_rank_that_fails_ends_what_others_wait_in() {
    for ranks in all(3, LIMIT) {
        let began = Instant::now();
        let errors = on_each(ranks, |rank| {
            rank.barrier().unwrap();
            if rank.rank() == 1 {
                rank.fail(CollectiveError::Failed { rank: 1, reason: "its device is lost".to_owned() });
            }
            rank.barrier().unwrap_err().to_string()
        });
        assert!(errors.iter().all(|error| error.contains("its device is lost")), "{errors:?}");
        assert!(began.elapsed() < LIMIT / 2);
    }
}

#[test]
fn a_rank_that_failed_is_noticed_without_a_call() {
    for ranks in all(2, LIMIT) {
        let noticed = on_each(ranks, |rank| {
            rank.barrier().unwrap();
            assert_eq!(rank.fault(), None);
            rank.barrier().unwrap();
            if rank.rank() == 1 {
                rank.fail(CollectiveError::Failed { rank: 1, reason: "its device is lost".to_owned() });
                return rank.fault().unwrap();
            }
            let began = Instant::now();
            loop {
                match rank.fault() {
                    Some(fault) => return fault,
                    None => assert!(began.elapsed() < LIMIT, "rank 1 failed"),
                }
            }
        });
        assert!(noticed.iter().all(|fault| fault.to_string().starts_with("rank 1 failed: ")), "{noticed:?}");
    }
}

#[test]
fn parts_that_are_on_their_way_are_no_failure() {
    for ranks in all(2, LIMIT) {
        on_each(ranks, |rank| {
            for _ in 0..3 {
                // The other's part may have arrived.
                thread::sleep(Duration::from_millis(5 * rank.rank() as u64));
                assert_eq!(rank.fault(), None);
                rank.barrier().unwrap();
            }
            // Neither ends before the other has looked.
            rank.barrier().unwrap();
        });
    }
}

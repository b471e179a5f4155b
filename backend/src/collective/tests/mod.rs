//! Every collective on every transport, and every way in which one fails.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use super::rank::ONE_EXCHANGE;
use super::*;

const LIMIT: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn rendezvous(address: &str, rank: usize, world: usize, limit: Duration) -> Rendezvous {
    Rendezvous { address: address.to_owned(), rank, world, job: "tests tp=2".to_owned(), patience: LIMIT, limit }
}

/// The ranks of `world` processes, here threads.
fn tcp_ranks(world: usize, limit: Duration) -> Vec<TcpRank> {
    let address = free_address();
    thread::scope(|scope| {
        let join = |rank| {
            let meeting = rendezvous(&address, rank, world, limit);
            scope.spawn(move || meeting.join().unwrap())
        };
        // The last ones first: they wait for rank 0 to listen.
        let mut joined: Vec<_> = (0..world).rev().map(join).collect();
        joined.reverse();
        joined.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn all(world: usize, limit: Duration) -> [Vec<Box<dyn Collective>>; 2] {
    fn boxed<C: Collective + 'static>(ranks: Vec<C>) -> Vec<Box<dyn Collective>> {
        ranks.into_iter().map(|rank| Box::new(rank) as Box<dyn Collective>).collect()
    }
    [boxed(local_ranks(world, limit)), boxed(tcp_ranks(world, limit))]
}

/// Results of `f` on every rank, in the order of ranks. A rank is dropped when its `f` returns.
fn on_each<T: Send>(ranks: Vec<Box<dyn Collective>>, f: impl Fn(&dyn Collective) -> T + Sync) -> Vec<T> {
    let f = &f;
    thread::scope(|scope| {
        let running: Vec<_> = ranks.into_iter().map(|rank| scope.spawn(move || f(&*rank))).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Values whose sum depends on its order.
fn values(rank: usize, len: usize) -> Vec<f32> {
    (0..len).map(|at| ((rank * 7_919 + at * 104_729) % 10_007) as f32 * 1e-3 + 1e4 * (rank % 2) as f32).collect()
}

fn sum_in_order(world: usize, len: usize) -> Vec<f32> {
    let mut sums = values(0, len);
    for rank in 1..world {
        sums.iter_mut().zip(values(rank, len)).for_each(|(sum, term)| *sum += term);
    }
    sums
}

#[test]
fn sums_are_in_the_order_of_ranks() {
    for world in [1, 2, 3, 4] {
        for len in [0, 1, 5, ONE_EXCHANGE, ONE_EXCHANGE + 1, 3 * ONE_EXCHANGE + 2] {
            for ranks in all(world, LIMIT) {
                let sums = on_each(ranks, |rank| {
                    let mut sum = values(rank.rank(), len);
                    rank.all_reduce(&mut sum).unwrap();
                    (sum, rank.reduce_scatter(&values(rank.rank(), len)).unwrap())
                });
                let expected = sum_in_order(world, len);
                for (rank, (sum, slice)) in sums.into_iter().enumerate() {
                    assert_eq!(sum, expected, "{world} ranks, {len} elements");
                    assert_eq!(slice, expected[slice_of(len, world, rank)]);
                }
            }
        }
    }
}

#[test]
fn gathers_keep_the_order_of_ranks_and_every_length() {
    for ranks in all(3, LIMIT) {
        let gathered = on_each(ranks, |rank| rank.all_gather(values(rank.rank(), 2 * rank.rank())).unwrap());
        for all in gathered {
            let expected: Vec<_> = (0..3).map(|rank| Arc::new(values(rank, 2 * rank))).collect();
            assert_eq!(all, expected);
        }
    }
}

#[test]
fn rows_go_from_each_rank_to_each() {
    let part = |from: usize, to: usize| vec![(10 * from + to) as f32; 4 * ((from + to) % 3)];
    for ranks in all(3, LIMIT) {
        let received =
            on_each(ranks, |rank| rank.all_to_all(4, (0..3).map(|to| part(rank.rank(), to)).collect()).unwrap());
        for (to, received) in received.into_iter().enumerate() {
            assert_eq!(received, (0..3).map(|from| Arc::new(part(from, to))).collect::<Vec<_>>());
        }
    }
}

#[test]
fn large_messages_cross_without_waiting_for_each_other() {
    // More than the buffers of a socket.
    let len = 2 << 20;
    for ranks in all(2, LIMIT) {
        let all = on_each(ranks, |rank| rank.all_gather(vec![rank.rank() as f32; len]).unwrap());
        assert!(all.iter().all(|all| *all[0] == vec![0.0; len] && *all[1] == vec![1.0; len]));
    }
}

#[test]
fn the_root_is_heard_and_barriers_wait_for_all() {
    for ranks in all(3, LIMIT) {
        let started = Instant::now();
        let heard = on_each(ranks, |rank| {
            let plan = rank.broadcast(1, format!("plan of {}", rank.rank()).into_bytes()).unwrap();
            if rank.rank() == 2 {
                thread::sleep(SHORT);
            }
            rank.barrier().unwrap();
            assert!(started.elapsed() >= SHORT);
            plan
        });
        assert!(heard.iter().all(|plan| **plan == b"plan of 1"));
    }
}

#[test]
fn groups_of_ranks_exchange_apart_from_each_other() {
    for ranks in all(4, LIMIT) {
        let sums = on_each(ranks, |rank| {
            // Rows and columns of a square, at different times.
            let (row, column) = (rank.rank() / 2, rank.rank() % 2);
            let among = |members: [usize; 2], value: usize| {
                let call = Call::new(Operation::AllReduce, &[1]);
                let parts = vec![Payload::from(vec![value as f32]); 2];
                let received = rank.exchange_among(&members, call, parts).unwrap();
                received.iter().map(|part| payload::floats_of(part)[0] as usize).fold(0, |sum, part| 10 * sum + part)
            };
            if row == 1 {
                thread::sleep(SHORT / 10);
            }
            let of_row = among([2 * row, 2 * row + 1], rank.rank() + 1);
            (of_row, among([column, column + 2], of_row))
        });
        assert_eq!(sums, [(12, 120 + 34), (12, 120 + 34), (34, 120 + 34), (34, 120 + 34)]);
    }
}

#[test]
fn ranks_that_wait_in_different_groups_are_noticed() {
    let [ranks, _] = all(4, LIMIT);
    let errors = on_each(ranks, |rank| {
        // Each waits for another one.
        let members = [[0, 1], [1, 3], [0, 2], [2, 3]][rank.rank()];
        let call = Call::new(Operation::AllGather, &[rank.rank()]);
        rank.exchange_among(&members, call, vec![Payload::from(vec![0u8]); 2]).unwrap_err().to_string()
    });
    assert_eq!(errors, ["rank 1 entered all-gather of [1] while rank 0 entered all-gather of [0]"; 4]);
}

#[test]
fn a_rank_that_is_lost_fails_groups_without_it() {
    let [ranks, _] = all(3, LIMIT);
    let failures = on_each(ranks, |rank| {
        let call = Call::new(Operation::Barrier, &[]);
        // Rank 0 ends, and rank 1 waits for rank 2, which waits for all.
        match rank.rank() {
            0 => None,
            1 => rank.exchange_among(&[1, 2], call, vec![Payload::from(vec![0u8]); 2]).err(),
            _ => rank.barrier().err(),
        }
    });
    assert_eq!(failures[0], None);
    assert!(failures[1..].iter().flatten().all(|error| error.to_string().starts_with("rank 0 was lost")));
    assert!(failures[1..].iter().all(Option::is_some));
}

#[test]
fn a_lost_rank_fails_the_call_for_good() {
    for ranks in all(3, LIMIT) {
        let results = on_each(ranks, |rank| {
            rank.barrier().unwrap();
            // Rank 1 ends.
            (rank.rank() != 1).then(|| (rank.all_reduce(&mut [0.0; 8]).unwrap_err(), rank.barrier().unwrap_err()))
        });
        for (first, second) in results.into_iter().flatten() {
            assert_eq!(first, second, "the failure is final");
            let text = first.to_string();
            assert!(text.starts_with("rank ") && text.contains("was lost during all-reduce of [8]: "), "{text}");
        }
    }
}

#[test]
fn another_collective_or_another_shape_is_a_mismatch() {
    for ranks in all(2, LIMIT) {
        let errors = on_each(ranks, |rank| match rank.rank() {
            0 => rank.all_reduce(&mut [0.0; 8]).unwrap_err().to_string(),
            _ => rank.all_reduce(&mut [0.0; 9]).unwrap_err().to_string(),
        });
        let mismatch =
            |text: &String| text.contains("entered all-reduce of [8]") && text.contains("entered all-reduce of [9]");
        assert!(errors.iter().any(mismatch), "{errors:?}");
    }
    for ranks in all(2, LIMIT) {
        let errors = on_each(ranks, |rank| match rank.rank() {
            0 => rank.barrier().unwrap_err().to_string(),
            _ => rank.broadcast(1, Vec::new()).unwrap_err().to_string(),
        });
        let mismatch = |text: &String| text.contains("barrier") && text.contains("broadcast from rank 1");
        assert!(errors.iter().any(mismatch), "{errors:?}");
    }
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    for ranks in all(2, SHORT) {
        let is_named = AtomicBool::new(false);
        let results = on_each(ranks, |rank| match rank.rank() {
            0 => {
                let error = rank.all_reduce(&mut [0.0; 3]).unwrap_err();
                is_named.store(true, Ordering::Relaxed);
                Some(error)
            }
            _ => {
                while !is_named.load(Ordering::Relaxed) {
                    thread::sleep(SHORT / 10);
                }
                None
            }
        });
        let expected = format!("rank 1 did not enter all-reduce of [3] within {SHORT:?}");
        assert_eq!(results[0].as_ref().unwrap().to_string(), expected);
    }
}

#[test]
fn payloads_of_the_wrong_kind_are_refused() {
    for ranks in all(2, LIMIT) {
        let results = on_each(ranks, |rank| match rank.rank() {
            0 => rank.all_gather(vec![1.0]).map(drop).unwrap_err().to_string(),
            _ => {
                let call = Call::new(Operation::AllGather, &[]);
                rank.exchange(call, vec![Payload::from(vec![1u8, 2]); 2]).unwrap();
                String::new()
            }
        });
        assert_eq!(results[0], "rank 1 sent 2 bytes in all-gather, not f32 elements");
    }
}

#[test]
fn ranks_of_another_job_or_world_are_refused_and_strangers_ignored() {
    let address = free_address();
    let reasons = thread::scope(|scope| {
        let host = scope.spawn(|| rendezvous(&address, 0, 2, LIMIT).join().map(|rank| rank.world()));
        let stranger = |address: &str| {
            use std::io::Write;
            while std::net::TcpStream::connect(address).and_then(|mut it| it.write_all(&[b'x'; 64])).is_err() {
                thread::sleep(Duration::from_millis(5));
            }
        };
        stranger(&address);
        let refused = |change: fn(&mut Rendezvous)| {
            let mut other = rendezvous(&address, 1, 2, LIMIT);
            change(&mut other);
            other.join().unwrap_err().to_string()
        };
        let reasons = [
            refused(|other| other.job = "tests dp=2".to_owned()),
            refused(|other| other.world = 3),
            refused(|other| other.rank = 2),
        ];
        let fitting = rendezvous(&address, 1, 2, LIMIT).join().unwrap();
        assert_eq!(host.join().unwrap().unwrap(), 2);
        drop(fitting);
        reasons
    });
    let expected = [
        "ranks cannot be connected: rank 0 belongs to \"tests tp=2\", rank 1 to \"tests dp=2\"",
        "ranks cannot be connected: rank 0 expects 2 ranks, rank 1 3",
        "ranks cannot be connected: rank 2 of 2 does not exist",
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn missing_ranks_are_named() {
    let address = free_address();
    let meeting = Rendezvous { patience: SHORT, ..rendezvous(&address, 0, 3, LIMIT) };
    let error = meeting.join().unwrap_err().to_string();
    assert_eq!(error, format!("ranks cannot be connected: ranks [1, 2] did not join within {SHORT:?}"));
}

#[test]
fn slices_cover_everything_once() {
    for (len, world) in [(0, 3), (2, 4), (10, 3), (12, 4)] {
        let slices: Vec<_> = (0..world).map(|rank| slice_of(len, world, rank)).collect();
        assert_eq!(slices.iter().flat_map(Clone::clone).collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
        let lens: Vec<_> = slices.iter().map(ExactSizeIterator::len).collect();
        assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1);
    }
}

/// Results of `f` on each of the ranks of `world` processes, here threads, which have messages beside their
/// collectives.
fn with_messages<T: Send>(heartbeats: &[Heartbeat], f: impl Fn(TcpRank, Vec<MessageLink>) -> T + Sync) -> Vec<T> {
    let (address, f) = (free_address(), &f);
    thread::scope(|scope| {
        let run = |(rank, heartbeat): (usize, &Heartbeat)| {
            let meeting = rendezvous(&address, rank, heartbeats.len(), LIMIT);
            let heartbeat = *heartbeat;
            scope.spawn(move || {
                let (rank, links) = meeting.join_with_messages(heartbeat).unwrap();
                f(rank, links)
            })
        };
        let running: Vec<_> = heartbeats.iter().enumerate().map(run).collect();
        running.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn messages_arrive_in_order_beside_the_collectives() {
    let sent = |to: usize| [vec![to as u8], vec![7; 3 << 20], vec![1, 2]];
    let received = with_messages(&[Heartbeat::default(); 3], |rank, links| {
        if rank.rank() == 0 {
            assert_eq!(links.iter().map(MessageLink::rank).collect::<Vec<_>>(), [1, 2]);
            for link in &links {
                sent(link.rank()).into_iter().for_each(|message| assert!(link.send(message)));
            }
        }
        rank.barrier().unwrap();
        let mut received = Vec::new();
        // Rank 0 ends, the others hear it.
        while let Some(message) = links.first().filter(|_| rank.rank() > 0).and_then(MessageLink::receive) {
            received.push(message);
        }
        if rank.rank() > 0 {
            assert_eq!(links[0].lost(), None);
        }
        received
    });
    assert_eq!(received, [Vec::new(), sent(1).to_vec(), sent(2).to_vec()]);
}

#[test]
fn a_silent_rank_is_lost_and_nobody_waits_for_it() {
    let often = Heartbeat { every: Duration::from_millis(20), limit: SHORT };
    let silent = Heartbeat { every: LIMIT, limit: LIMIT };
    let failures = with_messages(&[often, silent], |rank, links| {
        if rank.rank() == 1 {
            // Until rank 0 ends the connection.
            return links[0].receive().map(|_| String::new());
        }
        let error = rank.all_reduce(&mut [0.0; 3]).unwrap_err().to_string();
        assert!(error.starts_with("rank 1 was lost during all-reduce of [3]"), "{error}");
        assert!(!links[0].send(vec![1]));
        links[0].lost().map(str::to_owned)
    });
    assert_eq!(failures, [Some(format!("no heartbeat for {SHORT:?}")), None]);
}

/// The lost rank's connections with all others end, but the others are not named as the cause.
#[test]
fn of_several_ranks_the_one_that_is_lost_is_named() {
    let often = Heartbeat { every: Duration::from_millis(20), limit: SHORT };
    let silent = Heartbeat { every: LIMIT, limit: LIMIT };
    let ended = Barrier::new(3);
    let found = with_messages(&[often, often, silent], |rank, links| {
        let mut found = Vec::new();
        if rank.rank() == 0 {
            while links[1].lost().is_none() {
                thread::sleep(Duration::from_millis(5));
            }
            // The connections are ended a moment after the reason is known.
            while rank.fault().is_none() {
                thread::sleep(Duration::from_millis(5));
            }
            found.push(rank.fault().unwrap().to_string());
            found.push(rank.barrier().unwrap_err().to_string());
        }
        ended.wait();
        found
    });
    let reason = format!("no heartbeat for {SHORT:?}");
    assert_eq!(found[0], [format!("rank 2 was lost: {reason}"), format!("rank 2 was lost during barrier: {reason}")]);
}

#[test]
fn heartbeats_keep_idle_ranks() {
    let often = Heartbeat { every: Duration::from_millis(20), limit: SHORT };
    let lost = with_messages(&[often; 2], |rank, links| {
        thread::sleep(3 * SHORT);
        rank.barrier().unwrap();
        links[0].lost().map(str::to_owned)
    });
    assert_eq!(lost, [None, None]);
}

/// Results of `f` on every rank of each transport.
fn on_ranks<T: Send>(world: usize, f: impl Fn(Ranks) -> T + Sync) -> Vec<Vec<T>> {
    let f = &f;
    let run = |ranks: Vec<Box<dyn Collective>>| {
        thread::scope(|scope| {
            let start = |rank: Box<dyn Collective>| scope.spawn(move || f(Ranks::new(Arc::from(rank))));
            let running: Vec<_> = ranks.into_iter().map(start).collect();
            running.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    };
    all(world, LIMIT).into_iter().map(run).collect()
}

#[test]
fn groups_are_ranks_of_their_own() {
    for len in [3, ONE_EXCHANGE + 1] {
        let found = on_ranks(4, |ranks| {
            let (rank, first) = (ranks.rank(), ranks.rank() / 2 * 2);
            let (pair, alone) = (ranks.among(vec![first, first + 1]), ranks.among(vec![rank]));
            let (mut sum, mut own) = (values(rank, len), values(rank, len));
            pair.all_reduce(&mut sum);
            alone.all_reduce(&mut own);
            assert_eq!((pair.rank(), pair.world(), alone.is_single()), (rank - first, 2, true));
            assert_eq!(own, values(rank, len));
            ranks.check().unwrap();
            assert!(ranks.used().bytes_sent >= pair.used().bytes_sent && pair.used().bytes_sent > 0);
            sum
        });
        let pair = |first: usize| {
            let mut sums = values(first, len);
            sums.iter_mut().zip(values(first + 1, len)).for_each(|(sum, term)| *sum += term);
            sums
        };
        for sums in found {
            assert_eq!(sums, [pair(0), pair(0), pair(2), pair(2)]);
        }
    }
}

#[test]
fn a_failure_of_a_group_is_one_of_its_ranks() {
    // A failure ends the calls of all ranks that come after it: those of the first group come before.
    let first_group_met = Barrier::new(4);
    for failures in on_ranks(4, |ranks| {
        let meet = |first: usize| ranks.among(vec![first, first + 1]).all_reduce(&mut [1.0]);
        if ranks.rank() < 2 {
            meet(0);
        }
        first_group_met.wait();
        if ranks.rank() == 2 {
            meet(2);
        }
        ranks.check().map_err(|failure| failure.to_string())
    }) {
        assert_eq!([&failures[0], &failures[1]], [&Ok(()), &Ok(())]);
        let named = failures[2].as_ref().unwrap_err();
        assert!(named.starts_with("rank 3 was lost during all-reduce of [1]"), "{named}");
    }
}

#[test]
fn arrays_of_other_lengths_than_all_ranks_expect_are_refused() {
    let lens = [2, 0, 3];
    for all in on_ranks(3, |ranks| ranks.all_gather_sized(values(ranks.rank(), lens[ranks.rank()]), &lens).unwrap()) {
        let expected: Vec<_> = (0..3).map(|rank| Arc::new(values(rank, lens[rank]))).collect();
        assert_eq!(all, [expected.clone(), expected.clone(), expected]);
    }
    for failures in on_ranks(3, |ranks| {
        assert_eq!(ranks.all_gather_sized(values(ranks.rank(), 2), &lens), None);
        ranks.check().unwrap_err().to_string()
    }) {
        assert!(
            failures.iter().all(|text| text.contains("sent 2 f32 elements in all-gather of [2, 0, 3]")),
            "{failures:?}"
        );
    }
}

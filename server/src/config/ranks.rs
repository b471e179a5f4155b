//! Workers whose ranks are processes: flags, and their check against the layout.

use clap::Args;
use trainyard_gpu_runtime::Parallel;

use super::ConfigError;

/// Flags of a worker whose ranks are processes, on one machine or several. All are started with the same flags except
/// `--rank`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Ranks as processes")]
pub struct RankFlags {
    /// Rank of this process in --parallel; without it the ranks are threads of one process. Rank 0 is the worker, the
    /// others compute with it.
    #[arg(long, env = "TRAINYARD_RANK", value_name = "R")]
    pub rank: Option<usize>,
    /// Number of ranks, which must match --parallel; for launchers that pass it.
    #[arg(long, env = "TRAINYARD_WORLD", value_name = "N")]
    pub world: Option<usize>,
    /// Address at which rank 0 listens for the others. The network is trusted: traffic between ranks is neither
    /// encrypted nor authenticated.
    #[arg(long, env = "TRAINYARD_RENDEZVOUS", value_name = "HOST:PORT")]
    pub rendezvous: Option<String>,
}

/// The position of this process among the ranks of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankConfig {
    /// The number of this rank.
    pub rank: usize,
    /// The number of ranks.
    pub world: usize,
    /// The address at which rank 0 listens.
    pub rendezvous: String,
}

/// Checks the flags; `None` where ranks are threads.
pub(super) fn resolve(flags: RankFlags, parallel: Parallel) -> Result<Option<RankConfig>, ConfigError> {
    let world = parallel.world();
    let (rank, rendezvous) = match (flags.rank, flags.rendezvous, flags.world) {
        (None, None, None) => return Ok(None),
        (Some(rank), Some(rendezvous), _) => (rank, rendezvous),
        (None, Some(_), _) => return Err(ConfigError::Pair { given: "rendezvous", missing: "rank" }),
        (Some(_), None, _) => return Err(ConfigError::Pair { given: "rank", missing: "rendezvous" }),
        (None, None, Some(_)) => return Err(ConfigError::Pair { given: "world", missing: "rank" }),
    };
    if let Some(given) = flags.world.filter(|given| *given != world) {
        return Err(ConfigError::World { given, parallel });
    }
    if rank >= world {
        return Err(ConfigError::Rank { rank, parallel });
    }
    Ok(Some(RankConfig { rank, world, rendezvous }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn of(rank: Option<usize>, world: Option<usize>, rendezvous: Option<&str>) -> Result<Option<RankConfig>, String> {
        let flags = RankFlags { rank, world, rendezvous: rendezvous.map(str::to_owned) };
        resolve(flags, Parallel::with_tp(2).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn ranks_are_threads_unless_one_is_named() {
        assert_eq!(of(None, None, None), Ok(None));
        let expected = RankConfig { rank: 1, world: 2, rendezvous: "node0:29500".to_owned() };
        assert_eq!(of(Some(1), None, Some("node0:29500")), Ok(Some(expected.clone())));
        assert_eq!(of(Some(1), Some(2), Some("node0:29500")), Ok(Some(expected)));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused = |rank, world, rendezvous| of(rank, world, rendezvous).unwrap_err();
        assert_eq!(refused(Some(0), None, None), "--rank: requires --rendezvous");
        assert_eq!(refused(None, None, Some("a:1")), "--rendezvous: requires --rank");
        assert_eq!(refused(None, Some(2), None), "--world: requires --rank");
        assert_eq!(refused(Some(0), Some(4), Some("a:1")), "--world: 4 processes, but --parallel tp=2 has 2 ranks");
        assert_eq!(refused(Some(2), None, Some("a:1")), "--rank: 2, but the ranks of --parallel tp=2 are 0 to 1");
    }
}

//! Ranks of several processes, each connected to every other one by TCP. The network is trusted, as with NCCL and MPI:
//! traffic is neither encrypted nor authenticated.

mod frame;
mod link;
mod messages;
mod rendezvous;

pub use link::TcpRank;
pub use messages::{Heartbeat, MessageLink, MessageSender};
pub use rendezvous::Rendezvous;

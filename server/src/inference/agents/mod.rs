//! Samples of agent sessions: a request with a session's key continues the tokens that the session has recorded, or
//! begins a branch, and its replies are recorded before it ends.
//!
//! | | |
//! |---|---|
//! | `agent` | the session that the key of a request belongs to |
//! | `open` | a session at the beginning of a request: its limits, and the prompt |
//! | `ledger` | what running requests may still use of a session's limits |
//! | `turn` | replies on their way to the store |
//! | `trajectories` | recorded turns as examples for training |

mod agent;
mod ledger;
mod open;
pub(crate) mod trajectories;
mod turn;

pub(crate) use self::agent::Agent;
pub(crate) use self::ledger::Ledger;
pub(crate) use self::open::{Chat, Open, open};
pub(crate) use self::turn::{Content, Turn};

//! Messages between rank 0 and other processes: MessagePack with names.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use trainyard_protocol::RequestId;

use super::command::Command;
use super::copies::FetchFailure;

/// A message from rank 0 to another rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Message<'a> {
    /// A call that every rank executes.
    Call(Cow<'a, Command>),
    /// A folder of the storage is to be fetched; rank 0 has it at `dir`.
    Fetch { dir: PathBuf, location: PathBuf },
    /// Asks for the removal of a copy of a folder.
    Remove { dir: PathBuf },
    /// Reports that nobody waits for a request, possibly during the step that executes it.
    Abandoned(RequestId),
}

impl Message<'_> {
    /// # Errors
    /// A path that is not UTF-8.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// # Errors
    /// Bytes of another version.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Message<'static>, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}

/// A reply to rank 0: a folder was fetched, or fetching it failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) dir: PathBuf,
    pub(super) result: Result<(), FetchFailure>,
}

impl Reply {
    /// # Errors
    /// A path that is not UTF-8.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// # Errors
    /// Bytes of another version.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, rmp_serde::decode::Error> {
        rmp_serde::from_slice(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn messages_about_folders_survive() {
        let dir = PathBuf::from("/data/work/1");
        let messages = [
            Message::Fetch { dir: dir.clone(), location: "checkpoints/r/weights/ä.1".into() },
            Message::Remove { dir: dir.clone() },
            Message::Abandoned(RequestId::new("r")),
        ];
        for message in messages {
            assert_eq!(Message::from_bytes(&message.to_bytes().unwrap()).unwrap(), message);
        }
        for result in [Ok(()), Err(FetchFailure::Missing), Err(FetchFailure::Failed("full".to_owned()))] {
            let reply = Reply { dir: dir.clone(), result };
            assert_eq!(Reply::from_bytes(&reply.to_bytes().unwrap()).unwrap(), reply);
        }
    }
}

//! Messages between ranks and the hub.

use std::io::{Error, ErrorKind, Read, Result, Write};

/// A collective as one rank calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) kind: Kind,
    /// The number of NCCL's data type.
    pub(crate) element: u8,
    /// The number of NCCL's operation: sum, product, maximum, minimum, average.
    pub(crate) operation: u8,
    pub(crate) root: u32,
    /// Elements that the caller named.
    pub(crate) count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Waits until all ranks are there.
    Join,
    AllReduce,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
    /// Exchanges messages between pairs.
    Exchange,
}

const KINDS: [Kind; 7] =
    [Kind::Join, Kind::AllReduce, Kind::Broadcast, Kind::Reduce, Kind::AllGather, Kind::ReduceScatter, Kind::Exchange];

impl Call {
    /// Sends the call and the rank's data.
    pub(crate) fn send(&self, to: &mut impl Write, data: &[u8]) -> Result<()> {
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(0);
        let mut head = vec![kind as u8, self.element, self.operation];
        head.extend(self.root.to_le_bytes());
        head.extend(self.count.to_le_bytes());
        to.write_all(&head)?;
        send_bytes(to, data)
    }

    pub(crate) fn receive(from: &mut impl Read) -> Result<(Self, Vec<u8>)> {
        let mut head = [0; 15];
        from.read_exact(&mut head)?;
        let kind = KINDS.get(usize::from(head[0])).copied();
        let kind = kind.ok_or_else(|| Error::new(ErrorKind::InvalidData, "unknown collective"))?;
        let root = u32::from_le_bytes([head[3], head[4], head[5], head[6]]);
        let mut count = [0; 8];
        count.copy_from_slice(&head[7..]);
        let call = Self { kind, element: head[1], operation: head[2], root, count: u64::from_le_bytes(count) };
        Ok((call, receive_bytes(from)?))
    }
}

/// Sends bytes after their number.
fn send_bytes(to: &mut impl Write, bytes: &[u8]) -> Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

fn receive_bytes(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Sends the hub's answer: the rank's result, or the reason why it is missing.
pub(crate) fn send_answer(to: &mut impl Write, answer: &std::result::Result<Vec<u8>, String>) -> Result<()> {
    match answer {
        Ok(bytes) => {
            to.write_all(&[1])?;
            send_bytes(to, bytes)
        }
        Err(message) => {
            to.write_all(&[0])?;
            send_bytes(to, message.as_bytes())
        }
    }
}

/// Receives an answer after its first byte, which tells whether there is a result.
pub(crate) fn receive_answer(first: u8, from: &mut impl Read) -> Result<std::result::Result<Vec<u8>, String>> {
    let bytes = receive_bytes(from)?;
    Ok(if first == 1 { Ok(bytes) } else { Err(String::from_utf8_lossy(&bytes).into_owned()) })
}

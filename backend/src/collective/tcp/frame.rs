//! Messages between ranks: little-endian, each with the call that it belongs to.

use std::io::{self, Read, Write};

use crate::collective::call::{Call, Operation};
use crate::collective::payload::Payload;

/// Maximum number of extents of a call.
const MAX_EXTENTS: usize = 8;
/// Elements that are converted at a time.
const CHUNK: usize = 16_384;
const FAILED: u8 = 255;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// A rank's part of a call.
    Part { call: Call, part: Payload },
    /// The rank stops, for this reason.
    Failed(String),
}

impl Frame {
    /// Whether a frame that begins with this byte is [`Frame::Failed`].
    pub(super) fn is_failure(first: u8) -> bool {
        first == FAILED
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut head = Vec::with_capacity(64);
        match self {
            Self::Part { call, part } => {
                let (code, root) = code_of(call.operation);
                head.push(code);
                head.extend(root.to_le_bytes());
                head.push(u8::try_from(call.shape.len()).unwrap_or(u8::MAX));
                call.shape.iter().for_each(|&extent| head.extend((extent as u64).to_le_bytes()));
                match part {
                    Payload::Floats(values) => {
                        head.push(0);
                        head.extend((values.len() as u64).to_le_bytes());
                        to.write_all(&head)?;
                        for chunk in values.chunks(CHUNK) {
                            to.write_all(&chunk.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())?;
                        }
                    }
                    Payload::Bytes(values) => {
                        head.push(1);
                        head.extend((values.len() as u64).to_le_bytes());
                        to.write_all(&head)?;
                        to.write_all(values)?;
                    }
                }
            }
            Self::Failed(reason) => {
                head.push(FAILED);
                head.extend((reason.len() as u64).to_le_bytes());
                to.write_all(&head)?;
                to.write_all(reason.as_bytes())?;
            }
        }
        to.flush()
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let code = read_u8(from)?;
        if code == FAILED {
            let len = read_u64(from)?;
            return Ok(Self::Failed(String::from_utf8_lossy(&read_bytes(from, len)?).into_owned()));
        }
        let root = u32::from_le_bytes(read_array(from)?);
        let operation = operation_of(code, root).ok_or_else(|| invalid(format!("unknown operation {code}")))?;
        let extents = usize::from(read_u8(from)?);
        if extents > MAX_EXTENTS {
            return Err(invalid(format!("{extents} extents")));
        }
        let shape: Vec<usize> =
            (0..extents).map(|_| read_u64(from).map(|extent| extent as usize)).collect::<Result<_, _>>()?;
        let part = match (read_u8(from)?, read_u64(from)?) {
            (0, len) => Payload::from(read_floats(from, len)?),
            (1, len) => Payload::from(read_bytes(from, len)?),
            (kind, _) => return Err(invalid(format!("unknown kind of payload {kind}"))),
        };
        Ok(Self::Part { call: Call { operation, shape }, part })
    }
}

fn code_of(operation: Operation) -> (u8, u32) {
    match operation {
        Operation::AllReduce => (0, 0),
        Operation::ReduceScatter => (1, 0),
        Operation::AllGather => (2, 0),
        Operation::AllToAll => (3, 0),
        Operation::Broadcast { root } => (4, u32::try_from(root).unwrap_or(u32::MAX)),
        Operation::Barrier => (5, 0),
        Operation::Gather { root } => (6, u32::try_from(root).unwrap_or(u32::MAX)),
    }
}

fn operation_of(code: u8, root: u32) -> Option<Operation> {
    Some(match code {
        0 => Operation::AllReduce,
        1 => Operation::ReduceScatter,
        2 => Operation::AllGather,
        3 => Operation::AllToAll,
        4 => Operation::Broadcast { root: root as usize },
        5 => Operation::Barrier,
        6 => Operation::Gather { root: root as usize },
        _ => return None,
    })
}

fn invalid(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not a message of a rank: {reason}"))
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_u8(from: &mut impl Read) -> io::Result<u8> {
    Ok(u8::from_le_bytes(read_array(from)?))
}

fn read_u64(from: &mut impl Read) -> io::Result<u64> {
    Ok(u64::from_le_bytes(read_array(from)?))
}

/// Memory grows with what arrives, not with what a length claims.
fn read_bytes(from: &mut impl Read, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if from.take(len).read_to_end(&mut bytes)? as u64 == len { Ok(bytes) } else { Err(ended()) }
}

fn read_floats(from: &mut impl Read, len: u64) -> io::Result<Vec<f32>> {
    let (mut values, mut left) = (Vec::new(), len);
    let mut chunk = Vec::with_capacity(4 * CHUNK);
    while left > 0 {
        let count = left.min(CHUNK as u64);
        chunk.clear();
        if from.take(4 * count).read_to_end(&mut chunk)? as u64 != 4 * count {
            return Err(ended());
        }
        values.extend(chunk.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])));
        left -= count;
    }
    Ok(values)
}

fn ended() -> io::Error {
    io::Error::from(io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn calls() -> impl Strategy<Value = Call> {
        let operation = prop_oneof![
            Just(Operation::AllReduce),
            Just(Operation::ReduceScatter),
            Just(Operation::AllGather),
            Just(Operation::AllToAll),
            (0usize..64).prop_map(|root| Operation::Broadcast { root }),
            Just(Operation::Barrier),
            (0usize..64).prop_map(|root| Operation::Gather { root }),
        ];
        (operation, prop::collection::vec(0usize..1 << 40, 0..=MAX_EXTENTS))
            .prop_map(|(operation, shape)| Call { operation, shape })
    }

    fn parts() -> impl Strategy<Value = Payload> {
        prop_oneof![
            prop::collection::vec(-1e9f32..1e9, 0..200).prop_map(Payload::from),
            prop::collection::vec(any::<u8>(), 0..200).prop_map(Payload::from),
        ]
    }

    proptest! {
        #[test]
        fn a_frame_survives_and_a_cut_one_is_refused(call in calls(), part in parts(), cut in any::<prop::sample::Index>()) {
            for frame in [Frame::Part { call, part }, Frame::Failed("why".to_owned())] {
                let mut bytes = Vec::new();
                frame.write(&mut bytes).unwrap();
                prop_assert_eq!(&Frame::read(&mut bytes.as_slice()).unwrap(), &frame);
                let cut = cut.index(bytes.len());
                prop_assert_eq!(Frame::read(&mut &bytes[..cut]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
            }
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Frame::read(&mut bytes.as_slice());
        }
    }

    #[test]
    fn more_than_a_chunk_survives() {
        let values: Vec<f32> = (0..2 * CHUNK + 3).map(|at| at as f32).collect();
        let frame = Frame::Part { call: Call::new(Operation::AllGather, &[]), part: values.into() };
        let mut bytes = Vec::new();
        frame.write(&mut bytes).unwrap();
        assert_eq!(Frame::read(&mut bytes.as_slice()).unwrap(), frame);
    }
}

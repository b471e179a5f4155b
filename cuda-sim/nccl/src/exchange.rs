//! Messages between pairs of ranks: those of one group, of all ranks, are exchanged in one round.

/// Messages that one rank sends and expects, in the order of its calls.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// Receiver and bytes of each message.
    pub(crate) sends: Vec<(u32, Vec<u8>)>,
    /// Sender and number of bytes of each message.
    pub(crate) receives: Vec<(u32, u64)>,
}

impl Exchange {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = (self.sends.len() as u64).to_le_bytes().to_vec();
        for (peer, data) in &self.sends {
            bytes.extend(u64::from(*peer).to_le_bytes());
            bytes.extend((data.len() as u64).to_le_bytes());
            bytes.extend(data);
        }
        for (peer, length) in &self.receives {
            bytes.extend(u64::from(*peer).to_le_bytes());
            bytes.extend(length.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut at = 0;
        let mut take = |length: usize| {
            let part = bytes.get(at..at + length)?;
            at += length;
            Some(part)
        };
        let mut out = Self::default();
        let number = |part: &[u8]| Some(u64::from_le_bytes(part.try_into().ok()?));
        for _ in 0..number(take(8)?)? {
            let peer = number(take(8)?)? as u32;
            let length = number(take(8)?)? as usize;
            out.sends.push((peer, take(length)?.to_vec()));
        }
        while let Some(peer) = take(8) {
            out.receives.push((number(peer)? as u32, number(take(8)?)?));
        }
        Some(out)
    }
}

/// Messages that each rank receives, one after the other.
pub(crate) fn route(ranks: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
    let decoded: Option<Vec<Exchange>> = ranks.iter().map(|bytes| Exchange::decode(bytes)).collect();
    let mut exchanges = decoded.ok_or("malformed message")?;
    let mut received = Vec::new();
    for rank in 0..exchanges.len() {
        let mut bytes = Vec::new();
        for (peer, length) in std::mem::take(&mut exchanges[rank].receives) {
            let sends = exchanges.get_mut(peer as usize).map(|exchange| &mut exchange.sends);
            let found = sends.and_then(|sends| {
                let at = sends.iter().position(|(to, _)| *to as usize == rank)?;
                Some(sends.remove(at).1)
            });
            let data = found.ok_or_else(|| format!("rank {rank} waits for rank {peer}, which sends nothing"))?;
            if data.len() as u64 != length {
                return Err(format!("rank {rank} expects {length} bytes of rank {peer}, which sends {}", data.len()));
            }
            bytes.extend(data);
        }
        received.push(bytes);
    }
    let left = exchanges.iter().position(|exchange| !exchange.sends.is_empty());
    left.map_or(Ok(received), |rank| Err(format!("no rank receives a message of rank {rank}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(sends: &[(u32, &[u8])], receives: &[(u32, u64)]) -> Vec<u8> {
        let sends = sends.iter().map(|(peer, bytes)| (*peer, bytes.to_vec())).collect();
        Exchange { sends, receives: receives.to_vec() }.encode()
    }

    #[test]
    fn messages_reach_their_receivers() {
        let ranks = [exchange(&[(1, b"ab"), (0, b"c")], &[(0, 1), (1, 3)]), exchange(&[(0, b"xyz")], &[(0, 2)])];
        assert_eq!(route(&ranks), Ok(vec![b"cxyz".to_vec(), b"ab".to_vec()]));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let ranks = [exchange(&[(1, b"ab")], &[]), exchange(&[], &[(0, 3)])];
        assert_eq!(route(&ranks), Err("rank 1 expects 3 bytes of rank 0, which sends 2".to_owned()));
        let ranks = [exchange(&[(1, b"ab")], &[]), exchange(&[], &[])];
        assert_eq!(route(&ranks), Err("no rank receives a message of rank 0".to_owned()));
        let ranks = [exchange(&[], &[(1, 2)]), exchange(&[], &[])];
        assert_eq!(route(&ranks), Err("rank 0 waits for rank 1, which sends nothing".to_owned()));
    }
}

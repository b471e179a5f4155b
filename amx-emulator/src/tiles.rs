//! The tile registers of a thread, and their configuration.

/// Number of tile registers.
const TILES: usize = 8;
/// Most rows of a tile.
const MAX_ROWS: usize = 16;
/// Most bytes of a row.
const ROW_BYTES: usize = 64;
/// Bytes of a whole tile.
pub const TILE_BYTES: usize = MAX_ROWS * ROW_BYTES;

/// The extents of the tiles: the operand of `ldtilecfg` after its checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    bytes: [u8; 64],
}

impl Config {
    /// The configuration without a palette: no tile can be used.
    pub const NONE: Self = Self { bytes: [0; 64] };

    /// Checks an operand of `ldtilecfg`. Returns `None` if the instruction would raise a fault.
    pub fn parse(bytes: [u8; 64]) -> Option<Self> {
        let config = Self { bytes };
        match bytes[0] {
            0 => Some(Self::NONE),
            1 => {
                let reserved = bytes[2..16].iter().chain(&bytes[32..48]).chain(&bytes[56..]);
                let fits = |tile: &usize| {
                    let (rows, row_bytes) = config.extents(*tile);
                    rows <= MAX_ROWS && row_bytes <= ROW_BYTES && (rows == 0) == (row_bytes == 0)
                };
                (reserved.copied().all(|byte| byte == 0) && (0..TILES).all(|tile| fits(&tile))).then_some(config)
            }
            _ => None,
        }
    }

    /// The operand that `sttilecfg` stores.
    pub fn bytes(&self) -> &[u8; 64] {
        &self.bytes
    }

    /// Rows of a tile, and bytes of a row.
    fn extents(&self, tile: usize) -> (usize, usize) {
        let row_bytes = u16::from_le_bytes([self.bytes[16 + 2 * tile], self.bytes[17 + 2 * tile]]);
        (usize::from(self.bytes[48 + tile]), usize::from(row_bytes))
    }

    /// Returns the extents of a tile if it can be used.
    fn usable(&self, tile: usize) -> Option<(usize, usize)> {
        let extents = self.extents(tile);
        (tile < TILES && self.bytes[0] == 1 && extents.0 > 0).then_some(extents)
    }
}

/// A tile register: rows of 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Tile(pub [[u8; ROW_BYTES]; MAX_ROWS]);

impl Tile {
    const ZERO: Self = Self([[0; ROW_BYTES]; MAX_ROWS]);
}

/// All tile registers of a thread.
#[derive(Clone, Debug)]
pub struct Tiles {
    config: Config,
    tiles: [Tile; TILES],
}

/// An instruction that raises a fault with this configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

impl Tiles {
    /// Returns the tiles of a new thread: all zero, without a configuration.
    pub const fn new() -> Self {
        Self { config: Config::NONE, tiles: [Tile::ZERO; TILES] }
    }

    /// Returns the current configuration of the tiles.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Loads a configuration, which sets all tiles to zero.
    pub fn configure(&mut self, config: Config) {
        *self = Self { config, ..Self::new() };
    }

    /// The contents of a tile.
    pub fn tile(&self, tile: usize) -> &Tile {
        &self.tiles[tile]
    }

    /// Sets a tile to zero.
    pub(crate) fn zero(&mut self, tile: usize) -> Result<(), Fault> {
        self.config.usable(tile).ok_or(Fault)?;
        self.tiles[tile] = Tile::ZERO;
        Ok(())
    }

    /// Loads a tile: `read` fills each row, given its number. The rest of the tile becomes zero.
    pub(crate) fn load(&mut self, tile: usize, mut read: impl FnMut(usize, &mut [u8])) -> Result<(), Fault> {
        let (rows, row_bytes) = self.config.usable(tile).ok_or(Fault)?;
        let mut loaded = Tile::ZERO;
        for (number, row) in loaded.0.iter_mut().enumerate().take(rows) {
            read(number, &mut row[..row_bytes]);
        }
        self.tiles[tile] = loaded;
        Ok(())
    }

    /// Stores a tile: `write` is called for each row with its number.
    pub(crate) fn store(&self, tile: usize, mut write: impl FnMut(usize, &[u8])) -> Result<(), Fault> {
        let (rows, row_bytes) = self.config.usable(tile).ok_or(Fault)?;
        for (number, row) in self.tiles[tile].0.iter().enumerate().take(rows) {
            write(number, &row[..row_bytes]);
        }
        Ok(())
    }

    /// Computes `to += a · b` with pairs of bf16 in `a` and `b` and f32 in `to`. `multiply` is called with the number
    /// of rows, the words in a row of `a`, and the words in a row of `to`. The rest of `to` becomes zero.
    pub(crate) fn multiply(
        &mut self,
        [to, a, b]: [usize; 3],
        multiply: impl FnOnce(&mut Tile, &Tile, &Tile, [usize; 2]),
    ) -> Result<(), Fault> {
        let [to_extents, a_extents, b_extents] = [to, a, b].map(|tile| self.config.usable(tile));
        let ((rows, width), (a_rows, a_width), (b_rows, b_width)) =
            (to_extents.ok_or(Fault)?, a_extents.ok_or(Fault)?, b_extents.ok_or(Fault)?);
        let distinct = to != a && to != b && a != b;
        let whole = width % 4 == 0 && a_width % 4 == 0 && b_width % 4 == 0;
        if !distinct || !whole || rows != a_rows || width != b_width || a_width / 4 != b_rows {
            return Err(Fault);
        }
        let mut sums = self.tiles[to];
        multiply(&mut sums, &self.tiles[a], &self.tiles[b], [rows, a_width / 4]);
        for (number, row) in sums.0.iter_mut().enumerate() {
            row[if number < rows { width } else { 0 }..].fill(0);
        }
        self.tiles[to] = sums;
        Ok(())
    }
}

impl Default for Tiles {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn operand(rows: u8, row_bytes: u8) -> [u8; 64] {
        let mut bytes = [0; 64];
        (bytes[0], bytes[16], bytes[48]) = (1, row_bytes, rows);
        bytes
    }

    #[test]
    fn operands_of_ldtilecfg_are_checked() {
        assert!(Config::parse(operand(16, 64)).is_some());
        assert_eq!(Config::parse([0; 64]), Some(Config::NONE));
        for wrong in [operand(17, 64), operand(16, 65), operand(0, 64), operand(16, 0)] {
            assert_eq!(Config::parse(wrong), None);
        }
        for (at, value) in [(0, 2), (2, 1), (32, 1), (56, 1)] {
            let mut bytes = operand(16, 64);
            bytes[at] = value;
            assert_eq!(Config::parse(bytes), None, "byte {at}");
        }
    }

    #[test]
    fn a_load_keeps_to_the_extents_and_clears_the_rest() {
        let mut tiles = Tiles::new();
        assert_eq!(tiles.zero(0), Err(Fault));
        tiles.configure(Config::parse(operand(2, 8)).unwrap());
        tiles.tiles[0] = Tile([[9; 64]; 16]);
        tiles.load(0, |row, bytes| bytes.fill(1 + row as u8)).unwrap();
        let mut rows = Vec::new();
        tiles.store(0, |number, bytes| rows.push((number, bytes.to_vec()))).unwrap();
        assert_eq!(rows, [(0, vec![1; 8]), (1, vec![2; 8])]);
        assert_eq!(tiles.tile(0).0[0][8..], [0; 56]);
        assert_eq!(tiles.tile(0).0[2], [0; 64]);
        assert_eq!(tiles.zero(1), Err(Fault), "it has no extents");
    }

    #[test]
    fn products_of_tiles_that_do_not_fit_are_faults() {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        // tmm0 3 × 5 words, tmm1 3 × 4, tmm2 4 × 5, tmm3 4 × 4.
        for (tile, rows, row_bytes) in [(0, 3, 20), (1, 3, 16), (2, 4, 20), (3, 4, 16)] {
            (bytes[16 + 2 * tile], bytes[48 + tile]) = (row_bytes, rows);
        }
        let mut tiles = Tiles::new();
        tiles.configure(Config::parse(bytes).unwrap());
        let mut extents = None;
        assert_eq!(tiles.multiply([0, 1, 2], |_, _, _, found| extents = Some(found)), Ok(()));
        assert_eq!(extents, Some([3, 4]));
        for wrong in [[0, 1, 3], [0, 3, 2], [0, 1, 1], [0, 0, 2], [0, 1, 4]] {
            assert_eq!(tiles.multiply(wrong, |_, _, _, _| unreachable!()), Err(Fault), "{wrong:?}");
        }
    }
}

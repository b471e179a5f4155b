//! Parquet files: flat tables with plainly encoded, zstd-compressed columns, written row group by row group.
//!
//! The files use only encodings that every reader knows: in the terms of the format's specification `PLAIN`, `RLE`,
//! data pages of version 1 and the compact protocol of Thrift.

mod thrift;

use std::io;

use thrift::Struct;

const MAGIC: &[u8; 4] = b"PAR1";
/// The compression level of zstd: fast, and close to what higher levels reach on numbers.
const LEVEL: i32 = 3;

// Enumerations of the specification.
const TYPE_INT64: i32 = 2;
const TYPE_DOUBLE: i32 = 5;
const TYPE_BYTE_ARRAY: i32 = 6;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const CONVERTED_UTF8: i32 = 0;
const CONVERTED_TIMESTAMP_MILLIS: i32 = 9;
const ENCODING_PLAIN: i32 = 0;
const ENCODING_RLE: i32 = 3;
const CODEC_ZSTD: i32 = 6;
const DATA_PAGE: i32 = 0;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A signed 64-bit integer.
    Integer,
    /// A text in UTF-8.
    Text,
    /// A time in milliseconds since the epoch, UTC.
    TimeMs,
    /// A 64-bit float, which may be absent.
    OptionalDouble,
}

/// A column of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the column, which must be unique in the file.
    pub name: String,
    /// The type of the values.
    pub kind: ColumnKind,
}

/// The values of a column in a row group.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    /// Values of [`ColumnKind::Integer`] and [`ColumnKind::TimeMs`].
    Integers(Vec<i64>),
    /// Values of a column of texts.
    Texts(Vec<&'a str>),
    /// Values of a column of doubles that may be absent.
    OptionalDoubles(Vec<Option<f64>>),
}

/// Writes a file in parts. The concatenated parts are the file.
#[derive(Debug)]
pub struct ParquetWriter {
    columns: Vec<Column>,
    /// Bytes of all parts so far.
    offset: i64,
    rows: i64,
    groups: Vec<Struct>,
}

impl ParquetWriter {
    /// Starts a file with these columns.
    pub fn new(columns: Vec<Column>) -> Self {
        Self { columns, offset: 0, rows: 0, groups: Vec::new() }
    }

    /// Returns the next part: a row group, with the values of each column in the order of the columns.
    ///
    /// # Errors
    /// Fails if the number, the kinds or the lengths of the columns don't match.
    pub fn row_group(&mut self, values: &[Values<'_>]) -> io::Result<Vec<u8>> {
        let rows = values.first().map_or(0, Values::len);
        if values.len() != self.columns.len() || values.iter().any(|column| column.len() != rows) {
            return Err(io::Error::other("expected values of equal length for every column of the row group"));
        }
        let mut part = if self.offset == 0 { MAGIC.to_vec() } else { Vec::new() };
        let (mut chunks, mut total) = (Vec::new(), 0);
        for (column, values) in self.columns.iter().zip(values) {
            let at = self.offset + part.len() as i64;
            let page = Page::of(column, values)?;
            part.extend_from_slice(&page.header);
            part.extend_from_slice(&page.compressed);
            let headed = |bytes: usize| (page.header.len() + bytes) as i64;
            total += headed(page.plain);
            chunks.push(
                Struct::new().i64(2, at).record(
                    3,
                    Struct::new()
                        .i32(1, physical(column.kind))
                        .i32s(2, &[ENCODING_PLAIN, ENCODING_RLE])
                        .texts(3, &[&column.name])
                        .i32(4, CODEC_ZSTD)
                        .i64(5, rows as i64)
                        .i64(6, headed(page.plain))
                        .i64(7, headed(page.compressed.len()))
                        .i64(9, at),
                ),
            );
        }
        self.groups.push(Struct::new().records(1, chunks).i64(2, total).i64(3, rows as i64));
        self.rows += rows as i64;
        self.offset += part.len() as i64;
        Ok(part)
    }

    /// Returns the last part.
    pub fn finish(self) -> Vec<u8> {
        let mut part = if self.offset == 0 { MAGIC.to_vec() } else { Vec::new() };
        let root = Struct::new().text(4, "schema").i32(5, self.columns.len() as i32);
        let schema = std::iter::once(root).chain(self.columns.iter().map(schema_element)).collect();
        let created_by = concat!("trainyard version ", env!("CARGO_PKG_VERSION"));
        let footer = Struct::new()
            .i32(1, 1)
            .records(2, schema)
            .i64(3, self.rows)
            .records(4, self.groups)
            .text(6, created_by)
            .finish();
        part.extend_from_slice(&footer);
        part.extend_from_slice(&(footer.len() as u32).to_le_bytes());
        part.extend_from_slice(MAGIC);
        part
    }
}

fn physical(kind: ColumnKind) -> i32 {
    match kind {
        ColumnKind::Integer | ColumnKind::TimeMs => TYPE_INT64,
        ColumnKind::Text => TYPE_BYTE_ARRAY,
        ColumnKind::OptionalDouble => TYPE_DOUBLE,
    }
}

fn schema_element(column: &Column) -> Struct {
    let repetition = if column.kind == ColumnKind::OptionalDouble { OPTIONAL } else { REQUIRED };
    let element = Struct::new().i32(1, physical(column.kind)).i32(3, repetition).text(4, &column.name);
    match column.kind {
        ColumnKind::Text => element.i32(6, CONVERTED_UTF8),
        ColumnKind::TimeMs => element.i32(6, CONVERTED_TIMESTAMP_MILLIS),
        ColumnKind::Integer | ColumnKind::OptionalDouble => element,
    }
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::OptionalDoubles(values) => values.len(),
        }
    }
}

struct Page {
    header: Vec<u8>,
    compressed: Vec<u8>,
    /// The size before compression, in bytes.
    plain: usize,
}

impl Page {
    fn of(column: &Column, values: &Values<'_>) -> io::Result<Self> {
        let mut body = Vec::new();
        match (column.kind, values) {
            (ColumnKind::Integer | ColumnKind::TimeMs, Values::Integers(values)) => {
                values.iter().for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
            }
            (ColumnKind::Text, Values::Texts(values)) => {
                for value in values {
                    body.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    body.extend_from_slice(value.as_bytes());
                }
            }
            (ColumnKind::OptionalDouble, Values::OptionalDoubles(values)) => {
                let levels = definition_levels(values);
                body.extend_from_slice(&(levels.len() as u32).to_le_bytes());
                body.extend_from_slice(&levels);
                values.iter().flatten().for_each(|value| body.extend_from_slice(&value.to_le_bytes()));
            }
            _ => return Err(io::Error::other(format!("the values of column {:?} do not match its kind", column.name))),
        }
        let compressed = zstd::bulk::compress(&body, LEVEL)?;
        let size = |bytes: usize| i32::try_from(bytes).map_err(|_| io::Error::other("a page is too large"));
        let described =
            Struct::new().i32(1, size(values.len())?).i32(2, ENCODING_PLAIN).i32(3, ENCODING_RLE).i32(4, ENCODING_RLE);
        let header = Struct::new()
            .i32(1, DATA_PAGE)
            .i32(2, size(body.len())?)
            .i32(3, size(compressed.len())?)
            .record(5, described)
            .finish();
        Ok(Self { header, compressed, plain: body.len() })
    }
}

/// Encodes which values are present, in runs of equal levels of one bit.
fn definition_levels(values: &[Option<f64>]) -> Vec<u8> {
    let mut levels = Vec::new();
    for run in values.chunk_by(|a, b| a.is_some() == b.is_some()) {
        thrift::varint(&mut levels, (run.len() as u64) << 1);
        levels.push(u8::from(run[0].is_some()));
    }
    levels
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::Read;

    use super::*;

    fn columns() -> Vec<Column> {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        vec![column("step", ColumnKind::Integer), column("loss:sum", ColumnKind::OptionalDouble)]
    }

    #[test]
    fn a_file_has_the_frame_of_the_format() {
        let mut writer = ParquetWriter::new(columns());
        let mut file = Vec::new();
        for _ in 0..2 {
            let values = [Values::Integers(vec![1, -2]), Values::OptionalDoubles(vec![Some(0.5), None])];
            file.extend(writer.row_group(&values).unwrap());
        }
        file.extend(writer.finish());
        assert_eq!((&file[..4], &file[file.len() - 4..]), (&MAGIC[..], &MAGIC[..]));
        let length = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
        let footer = &file[file.len() - 8 - length..file.len() - 8];
        assert_eq!(footer.last(), Some(&0), "a structure ends with a stop");
        assert!(footer.windows(8).any(|bytes| bytes == b"loss:sum"));
        // The first page: an integer column, whose zstd frame holds the two values.
        let frame = file.windows(4).position(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
        let mut plain = Vec::new();
        zstd::Decoder::new(&file[frame..]).unwrap().single_frame().read_to_end(&mut plain).unwrap();
        assert_eq!(plain, [1_i64.to_le_bytes(), (-2_i64).to_le_bytes()].concat());
    }

    #[test]
    fn levels_are_runs() {
        let levels = definition_levels(&[Some(1.0), Some(2.0), None, Some(3.0)]);
        assert_eq!(levels, [4, 1, 2, 0, 2, 1]);
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        let mut writer = ParquetWriter::new(columns());
        assert!(writer.row_group(&[Values::Integers(vec![1])]).is_err());
        let uneven = [Values::Integers(vec![1]), Values::OptionalDoubles(vec![])];
        assert!(writer.row_group(&uneven).is_err());
        assert!(writer.row_group(&[Values::Integers(vec![1]), Values::Texts(vec!["x"])]).is_err());
    }
}

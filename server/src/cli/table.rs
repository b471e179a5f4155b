//! Lists on standard output: aligned columns on a terminal, fields separated by tabs for programs, both below a header.

use std::io::{self, IsTerminal, Write};

/// Prints rows below the names of their columns.
pub(super) fn print<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> io::Result<()> {
    let rows = [header.map(str::to_owned)].into_iter().chain(rows).collect();
    let out = io::stdout();
    let is_aligned = out.is_terminal();
    write(&mut out.lock(), rows, is_aligned)
}

fn write<const N: usize>(out: &mut impl Write, rows: Vec<[String; N]>, is_aligned: bool) -> io::Result<()> {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        if is_aligned { widths.max().unwrap_or_default() } else { 0 }
    });
    let between = if is_aligned { "   " } else { "\t" };
    for row in rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let line = cells.join(between);
        writeln!(out, "{}", if is_aligned { line.trim_end() } else { &line })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn people_get_columns_and_programs_get_tabs() {
        let rows = || vec![["NAME", "STATE"].map(str::to_owned), ["a-long-name", ""].map(str::to_owned)];
        let text = |is_aligned| {
            let mut out = Vec::new();
            write(&mut out, rows(), is_aligned).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(true), "NAME          STATE\na-long-name\n");
        assert_eq!(text(false), "NAME\tSTATE\na-long-name\t\n");
    }
}

//! Checks the lengths of production files.

use crate::sources::ProductionFile;

/// Returns files with more lines than allowed.
pub(crate) fn oversized(files: &[ProductionFile], most: usize) -> Vec<(&str, usize)> {
    files.iter().map(|file| (file.path.as_str(), lines(file))).filter(|&(_, lines)| lines > most).collect()
}

/// Returns the lower median of the lines of a crate's files, and a file of that length.
pub(crate) fn median(files: &[ProductionFile]) -> (&str, usize) {
    let mut all: Vec<_> = files.iter().map(|file| (lines(file), file.path.as_str())).collect();
    all.sort_unstable();
    let (lines, path) = all[(all.len() - 1) / 2];
    (path, lines)
}

fn lines(file: &ProductionFile) -> usize {
    file.text.lines().count()
}

#[cfg(test)]
mod tests {
    use super::{median, oversized};
    use crate::sources::ProductionFile;

    #[test]
    fn long_files_and_the_median_are_found() {
        let file = |lines: usize| ProductionFile {
            path: format!("{lines}.rs"),
            module: Vec::new(),
            text: "x\n".repeat(lines),
        };
        let files: Vec<_> = [5, 401, 3, 400].map(file).into();
        assert_eq!(oversized(&files, 400), [("401.rs", 401)]);
        assert_eq!(median(&files), ("5.rs", 5));
        assert_eq!(median(&files[..3]), ("5.rs", 5));
    }
}

//! The browser that tests of the console drive.

use std::path::Path;

use crate::apt;

/// Where Debian's package puts it; `tests/sdk/browser.py` looks there.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Installs Chromium where there is none and that is possible. Without it those tests are skipped, and say so.
pub(crate) fn ensure() {
    if std::env::var_os("TRAINYARD_CHROMIUM").is_some() || Path::new(CHROMIUM).exists() {
        return;
    }
    match apt::install("chromium") {
        Ok(true) => {}
        Ok(false) => eprintln!("    Chromium is not installed: the tests of the console in a browser are skipped"),
        Err(error) => eprintln!("    Chromium cannot be installed, the tests of the console are skipped: {error}"),
    }
}

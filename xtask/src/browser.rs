//! The browser that the console's tests drive.

use std::path::Path;

use crate::apt;

/// Path of the browser in Debian's package; `tests/sdk/browser.py` looks there.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Installs Chromium if it is missing and can be installed. Without it those tests are skipped with a message.
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

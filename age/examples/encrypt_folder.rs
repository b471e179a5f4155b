//! Replaces every file of a folder by its encryption: `encrypt_folder FOLDER RECIPIENT…`. The SDK suite decrypts them with
//! another implementation of the format.

use std::error::Error;
use std::path::PathBuf;

use trainyard_age::{encrypt_folder, recipients};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder = PathBuf::from(words.next().ok_or("usage: encrypt_folder FOLDER RECIPIENT…")?);
    let recipients = recipients(&words.collect::<Vec<_>>()).map_err(|refused| refused.message)?;
    encrypt_folder(&folder, &recipients)?;
    Ok(())
}

//! The store and the storage, for programs that need nothing else of the configuration.

use std::path::PathBuf;

use clap::Args;
use trainyard_scheduler::{Database, Policies};

use super::{ConfigError, ImageFlags, Images, QueueFlags, database, queue, read_file, tenants};

/// Flags that select store and storage, as for `trainyard serve`.
#[derive(Args, Clone, Debug, Default)]
pub struct StoreFlags {
    /// Folder of the store, payloads and checkpoints [default: data].
    #[arg(long, env = "TRAINYARD_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The store, sqlite://PATH or postgres://USER@HOST/NAME; DIR/trainyard.db by default.
    #[arg(long, env = "TRAINYARD_DATABASE_URL", value_name = "URL")]
    pub database_url: Option<String>,
    /// Payloads, checkpoints and snapshots: a folder, or s3://BUCKET/PREFIX; DIR by default.
    #[arg(long, env = "TRAINYARD_STORAGE", value_name = "URL")]
    pub storage: Option<String>,
    /// Configuration file; trainyard.toml in the working directory by default.
    #[arg(long, env = "TRAINYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Flags of `trainyard backup`.
#[derive(Args, Clone, Debug, Default)]
pub struct BackupFlags {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub store: StoreFlags,
    /// Folder to write the backup to; it must be empty or not exist yet.
    #[arg(long, value_name = "BACKUP", required_unless_present = "verify")]
    pub to: Option<PathBuf>,
    /// Complete the backup when the storage lacks objects that the database names; the manifest lists them.
    #[arg(long)]
    pub allow_missing: bool,
    /// Check the files of a finished backup, and do nothing else.
    #[arg(long, value_name = "BACKUP", conflicts_with_all = ["to", "allow_missing"])]
    pub verify: Option<PathBuf>,
}

/// Flags of `trainyard restore`.
#[derive(Args, Clone, Debug, Default)]
pub struct RestoreFlags {
    #[command(flatten)]
    #[expect(missing_docs, reason = "the fields are documented")]
    pub store: StoreFlags,
    /// Folder of a backup.
    #[arg(long, value_name = "BACKUP")]
    pub from: PathBuf,
}

/// The places where the service keeps its data.
#[derive(Clone, Debug)]
pub struct Stores {
    /// The folder of one process.
    pub data_dir: PathBuf,
    /// The database of sessions, runs and requests.
    pub database: Database,
    /// A folder, or `s3://BUCKET/PREFIX`.
    pub storage: String,
}

impl Stores {
    /// Joins flags (with their variables), the file and the defaults, as for `trainyard serve`.
    ///
    /// # Errors
    /// Fails if the file can't be read or the URL of the store is invalid.
    pub fn resolve(flags: StoreFlags) -> Result<Self, ConfigError> {
        let file = read_file(flags.config.as_deref())?;
        Self::join(
            flags.data_dir.or(file.data_dir),
            flags.database_url.or(file.database_url),
            flags.storage.or(file.storage),
        )
    }

    /// Reads the limits of tenants that the configuration file sets, which other programs can't change.
    ///
    /// # Errors
    /// Fails if the file can't be read, or its tenants are invalid.
    pub fn policies(flags: &StoreFlags) -> Result<Policies, ConfigError> {
        let file = read_file(flags.config.as_deref())?;
        let images = Images::resolve(ImageFlags::default(), file.images)?;
        let default =
            tenants::default_policy(queue::resolve(QueueFlags::default(), file.queue)?, images.pixels_per_minute);
        Ok(tenants::resolve(&file.tenants, &file.keys, default)?.1)
    }

    /// Joins the settings with the defaults of the missing ones.
    pub(super) fn join(
        data_dir: Option<PathBuf>,
        database_url: Option<String>,
        storage: Option<String>,
    ) -> Result<Self, ConfigError> {
        let data_dir = data_dir.unwrap_or_else(|| PathBuf::from("data"));
        Ok(Self {
            database: database::parse_database(database_url, &data_dir)?,
            storage: storage.unwrap_or_else(|| data_dir.to_string_lossy().into_owned()),
            data_dir,
        })
    }
}

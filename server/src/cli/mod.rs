//! The command line.

mod auth;
mod backup;
mod banner;
mod directory;
mod doctor;
mod former_process;
mod gate;
mod keys;
mod logging;
mod maintenance;
mod memory;
mod migrate;
mod plan;
mod process;
mod rank;
mod reachable;
mod serve;
mod shutdown;
mod tenants;
mod worker;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{
    AuthFlags, BackupFlags, Config, DoctorFlags, KeysFlags, MigrateFlags, RestoreFlags, ServeFlags, ServerFlags,
    TenantsFlags, WorkerFlags,
};
use crate::engine;

/// A training service for language models that speaks the Tinker protocol.
#[derive(Debug, Parser)]
#[command(name = "trainyard", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve base models for training and sampling.
    Serve(Box<ServeFlags>),
    /// Execute requests that API servers accept, over one PostgreSQL database and one storage.
    Worker(Box<WorkerFlags>),
    /// Bring the schema of a store up to date.
    Migrate(MigrateFlags),
    /// Copy a service's store and storage to a folder while it runs, or check such a folder.
    Backup(BackupFlags),
    /// Fill an empty store and storage from a backup.
    Restore(RestoreFlags),
    /// List and change organisations, users and projects, while servers run or not.
    Tenants(TenantsFlags),
    /// List, create and revoke API keys, while servers run or not.
    Keys(KeysFlags),
    /// Ask a server for the owner of a key, or for a token.
    Auth(AuthFlags),
    /// Watch a server in a terminal: workers, queues, speed and failures.
    Top(ServerFlags),
    /// Check whether `serve` with the same options would work here; changes nothing.
    Doctor(Box<DoctorFlags>),
    /// Estimate the memory and speed of a layout from a model's configuration; loads and starts nothing.
    Plan(Box<plan::PlanFlags>),
    /// Measure training and sampling on this machine.
    Bench(Box<trainyard_bench::BenchFlags>),
    /// Print the API's OpenAPI document.
    Openapi,
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(flags) => Config::resolve(*flags).map_err(Into::into).and_then(serve::serve),
        Command::Worker(flags) => Config::resolve_worker(*flags).map_err(Into::into).and_then(worker::work),
        Command::Migrate(flags) => migrate::migrate(&flags),
        Command::Backup(flags) => backup::backup(flags),
        Command::Restore(flags) => backup::restore(flags),
        Command::Tenants(flags) => tenants::tenants(flags.command),
        Command::Keys(flags) => keys::keys(flags.command),
        Command::Auth(flags) => auth::auth(flags.command),
        Command::Top(flags) => crate::top::top(&flags),
        Command::Doctor(flags) => doctor::doctor(*flags),
        Command::Plan(flags) => plan::plan(&flags),
        Command::Bench(flags) => trainyard_bench::bench(&flags, engine::open),
        Command::Openapi => print_openapi(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing more can be done when standard error is gone.
            let _ = writeln!(io::stderr(), "trainyard: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_openapi() -> Result<(), Box<dyn Error>> {
    io::stdout().write_all(crate::openapi::json()?.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use trainyard_wire::training;

    use super::Cli;

    /// The benchmark has its own message types; they must match the server's.
    #[test]
    fn the_benchmarks_training_request_is_readable() {
        let body = trainyard_bench::forward_backward_body("s:train:0");
        assert_eq!(
            training::proto_ids(&body).map(|(run, seq_id)| (run.to_string(), seq_id)),
            Some(("s:train:0".to_owned(), 1))
        );
        let batch = training::decode(body.into()).and_then(training::batch);
        assert!(batch.is_ok_and(|batch| batch.data[0].tokens.len() == 16 && batch.data[0].loss_fn_inputs.len() == 2));
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

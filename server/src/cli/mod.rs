//! Implementation of the command line: a module per command.

mod audit;
mod auth;
mod backup;
mod banner;
mod client;
mod demo;
mod directory;
mod doctor;
mod export;
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
mod short_log;
mod shutdown;
mod table;
mod tenants;
mod worker;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{
    AuditFlags, AuthFlags, BackupFlags, Config, DoctorFlags, ExportFlags, KeysFlags, MigrateFlags, RestoreFlags,
    ServeFlags, ServerFlags, TenantsFlags, WorkerFlags,
};

/// Trainyard: a training service for language models that speaks the Tinker protocol.
#[derive(Debug, Parser)]
#[command(name = "trainyard", version)]
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
    /// Export and prune the audit log of all organisations, while servers run or not.
    Audit(AuditFlags),
    /// Ask a server for the owner of a key, or for a token.
    Auth(AuthFlags),
    /// Download the weights of a checkpoint, for use elsewhere.
    Export(ExportFlags),
    /// Watch a server in a terminal: workers, queues, speed and failures.
    Top(ServerFlags),
    /// Check whether `serve` with the same options would work here; changes nothing.
    Doctor(Box<DoctorFlags>),
    /// Estimate the memory and speed of a layout from a model's configuration; loads and starts nothing.
    Plan(Box<plan::PlanFlags>),
    /// Train a small model on this machine with the Python client's demonstration.
    #[command(disable_help_flag = true)]
    Demo(demo::DemoFlags),
    /// Print the API's OpenAPI document.
    Openapi,
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    let given = Cli::from_arg_matches_mut(&mut program().get_matches());
    let command = given.unwrap_or_else(|error| error.exit()).command;
    let prints = !matches!(command, Command::Serve(_) | Command::Worker(_));
    let result = match command {
        Command::Serve(flags) => Config::resolve(*flags).map_err(Into::into).and_then(serve::serve),
        Command::Worker(flags) => Config::resolve_worker(*flags).map_err(Into::into).and_then(worker::work),
        Command::Migrate(flags) => migrate::migrate(&flags),
        Command::Backup(flags) => backup::backup(flags),
        Command::Restore(flags) => backup::restore(flags),
        Command::Tenants(flags) => tenants::tenants(flags.command),
        Command::Keys(flags) => keys::keys(flags.command),
        Command::Audit(flags) => audit::audit(flags.command),
        Command::Auth(flags) => auth::auth(flags.command),
        Command::Export(flags) => export::export(flags),
        #[cfg(feature = "top")]
        Command::Top(flags) => crate::top::top(&flags),
        #[cfg(not(feature = "top"))]
        Command::Top(_) => Err(crate::features::TOP.into()),
        Command::Doctor(flags) => doctor::doctor(*flags),
        Command::Plan(flags) => plan::plan(&flags),
        Command::Demo(flags) => demo::demo(&flags),
        Command::Openapi => print_openapi(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output, such as `head`, has enough of it.
        Err(error) if prints && is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing more can be done when standard error is gone.
            let _ = writeln!(io::stderr(), "trainyard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the command line. Short help lists the common flags, which have no heading of their own.
fn program() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        command.mut_args(|arg| {
            let is_common = arg.get_help_heading().is_none();
            arg.hide_short_help(!is_common)
        })
    })
}

/// Returns whether an error, or one that caused it, is that nobody reads the output.
fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let kinds = causes.filter_map(|error| {
        let of_json = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        of_json.or_else(|| error.downcast_ref::<io::Error>().map(io::Error::kind))
    });
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

fn print_openapi() -> Result<(), Box<dyn Error>> {
    io::stdout().write_all(crate::openapi::json()?.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    /// The help of `serve`, short or long.
    fn help(is_long: bool) -> String {
        let mut program = program();
        program.build();
        let serve = program.find_subcommand_mut("serve").unwrap();
        if is_long { serve.render_long_help() } else { serve.render_help() }.to_string()
    }

    #[test]
    fn the_command_line_is_consistent() {
        program().debug_assert();
    }

    #[test]
    fn the_help_begins_with_what_the_program_is() {
        let help = program().render_help().to_string();
        assert!(help.starts_with("Trainyard: a training service for language models"), "{help}");
    }

    #[test]
    fn common_flags_come_first_and_the_others_under_headings() {
        let long = help(true);
        let at = |text: &str| long.find(text).unwrap_or_else(|| panic!("{text} is not in {long}"));
        let order = ["--model", "--host", "--port", "--data-dir", "--memory-mib", "--log-level"].map(at);
        assert!(order.is_sorted(), "{order:?}");
        assert!(at("--config") < at("Storage:"), "{long}");
        for heading in ["Storage:", "Compute:", "Memory:", "Lifetimes:", "Connections and bodies:", "Queues:", "HTTPS:"]
        {
            assert!(at(heading) > order[5], "{heading}");
        }
        let short = help(false);
        assert!(short.contains("--model") && short.contains("--device") && !short.contains("--max-run-queued-bytes"));
        assert!(short.lines().count() < 40, "{short}");
    }

    #[test]
    fn every_flag_of_a_group_is_under_its_heading() {
        let mut program = program();
        program.build();
        let headings = |command: &str, flag: &str| {
            let command = program.find_subcommand(command).unwrap();
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag)).unwrap();
            arg.get_help_heading().map(str::to_owned)
        };
        for (command, common) in [
            ("serve", &["model", "host", "port", "data-dir", "device", "memory-mib", "log-level", "config"][..]),
            ("worker", &["model", "data-dir", "device", "memory-mib", "log-level", "config"]),
            ("doctor", &["json", "model", "host", "config"]),
        ] {
            for flag in common {
                assert_eq!(headings(command, flag), None, "{command} --{flag}");
            }
            assert_eq!(headings(command, "tls-cert").as_deref(), Some("HTTPS"), "{command}");
            assert_eq!(headings(command, "idle-seconds").as_deref(), Some("Lifetimes"), "{command}");
        }
        assert_eq!(headings("serve", "public-url").as_deref(), Some("Access"));
    }

    #[test]
    fn a_reader_that_is_gone_is_not_an_error() {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&gone()));
        assert!(is_broken_pipe(&serde_json::Error::io(gone())));
        assert!(!is_broken_pipe(&io::Error::from(io::ErrorKind::NotFound)));
    }
}

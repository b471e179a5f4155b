//! The entry point of the `trainyard` binary.

fn main() -> std::process::ExitCode {
    trainyard_server::cli::run()
}

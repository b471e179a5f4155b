//! The text that the server prints once it is ready.

use std::fmt::Write;
use std::net::SocketAddr;

use trainyard_protocol::{BaseModel, MemoryPlan};

use crate::config::{Config, Device};
use crate::engine::describe_memory;

/// Formats the start-up text: the addresses, the models, and how to point a client at them.
pub(super) fn banner(
    config: &Config,
    address: SocketAddr,
    models: &[BaseModel],
    memory_plan: Option<MemoryPlan>,
    keyed: bool,
) -> String {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let url = reachable(scheme, address);
    let mut text = format!("\nTrainyard {}\n\n", env!("CARGO_PKG_VERSION"));
    let mut line = |label: &str, value: &str| {
        // Writing to a string never fails.
        let _ = writeln!(text, "  {label:<10}{value}");
    };
    let all = if address.ip().is_unspecified() { ", on all interfaces" } else { "" };
    line("API", &format!("{url}{all}"));
    if config.console {
        line("console", &format!("{url}/"));
    }
    line("OpenAI", &format!("{url}/oai/api/v1"));
    for (index, model) in models.iter().enumerate() {
        let label = if index == 0 { "models" } else { "" };
        line(label, &describe(model));
    }
    let threads = match config.device {
        Device::Cuda(_) => config.device.to_string(),
        _ if config.threads == 1 => "1 thread".to_owned(),
        _ => format!("{} threads", config.threads),
    };
    let layout = if config.parallel.world() == 1 { String::new() } else { format!(", {}", config.parallel) };
    line("compute", &format!("{}, {threads}{layout}", config.dtype.name()));
    if let Some(plan) = memory_plan {
        line("memory", &describe_memory(&plan));
    }
    line("data", &config.data_dir.display().to_string());
    line("keys", if keyed { "as configured" } else { "any tml-… key, only from this machine" });
    let key = if keyed { "tml-…" } else { "tml-local" };
    let _ = write!(
        text,
        "\nPoint the Tinker SDK at it:\n\n  export TINKER_BASE_URL={url}\n  export TINKER_API_KEY={key}\n  \
         export HF_ENDPOINT={url}/hf   # tokenizers from this server, no model hub needed\n\n"
    );
    text
}

/// Formats an address that a client can connect to: all interfaces includes this machine.
fn reachable(scheme: &str, address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("{scheme}://localhost:{}", address.port())
    } else {
        format!("{scheme}://{address}")
    }
}

fn describe(model: &BaseModel) -> String {
    let millions = model.parameters.div_ceil(1_000_000);
    format!("{} ({}, {millions}M parameters, {} tokens of context)", model.name, model.arch, model.max_context_length)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::config::{NamedPath, ServeFlags, SharedFlags};
    use trainyard_http::tls::TlsFiles;

    const ADDRESS: &str = "127.0.0.1:4321";

    #[test]
    fn it_says_where_what_and_how() {
        let model = NamedPath { name: "m".to_owned(), path: "/m".into() };
        let config = Config::resolve(ServeFlags {
            shared: SharedFlags { models: vec![model], ..SharedFlags::default() },
            ..ServeFlags::default()
        })
        .unwrap();
        let models = [BaseModel {
            name: "org/m".to_owned(),
            arch: "llama".to_owned(),
            max_context_length: 8192,
            vocab_size: 10,
            parameters: 134_515_008,
            vision: None,
        }];
        let plan = MemoryPlan { budget: Some(900 << 20), weights: 300 << 20, kv: 64 << 20, ..MemoryPlan::default() };
        let text = banner(&config, ADDRESS.parse().unwrap(), &models, Some(plan), false);
        for part in [
            "API       http://127.0.0.1:4321\n",
            "console   http://127.0.0.1:4321/\n",
            "OpenAI    http://127.0.0.1:4321/oai/api/v1\n",
            "org/m (llama, 135M parameters, 8192 tokens",
            "TINKER_BASE_URL=http://127.0.0.1:4321",
            "TINKER_API_KEY=tml-",
            "HF_ENDPOINT=http://127.0.0.1:4321/hf",
            "900 MiB: models 300 MiB,",
            "runs up to 536 MiB\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        let plain =
            banner(&Config { console: false, ..config.clone() }, ADDRESS.parse().unwrap(), &models, None, false);
        assert!(!plain.contains("console"), "{plain}");
        let tls = Some(TlsFiles { cert: "/c".into(), key: "/k".into() });
        let secure = banner(&Config { tls, ..config }, "0.0.0.0:4321".parse().unwrap(), &models, Some(plan), true);
        assert!(secure.contains("API       https://localhost:4321, on all interfaces\n"), "{secure}");
        assert!(secure.contains("BASE_URL=https://localhost:4321\n"));
        assert!(!secure.contains("http://"), "{secure}");
    }
}

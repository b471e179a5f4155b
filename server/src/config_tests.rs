#![allow(clippy::unwrap_used, reason = "tests")]
use trainyard_http::peer::TrustedProxies;
use trainyard_protocol::{TenantId, hex};

use std::net::Ipv4Addr;

use super::*;

fn flags(file: &str) -> (tempfile::TempDir, ServeFlags) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trainyard.toml");
    std::fs::write(&path, file).unwrap();
    let model = NamedPath { name: "m".to_owned(), path: PathBuf::from("/m") };
    (
        dir,
        ServeFlags {
            shared: SharedFlags { config: Some(path), models: vec![model], ..SharedFlags::default() },
            ..ServeFlags::default()
        },
    )
}

fn refusal(file: &str, change: impl FnOnce(&mut ServeFlags)) -> String {
    let (_dir, mut flags) = flags(file);
    change(&mut flags);
    Config::resolve(flags).unwrap_err().to_string()
}

#[test]
fn bounds_on_queues_come_from_flags_the_file_and_tenants() {
    let file = "[queue]\nmax_run_queued_requests = 7\nmax_queued_requests = 70\nmax_seq_gap = 9\n\
        [[tenants]]\nname = \"t\"\nkeys = [{ key = \"tml-t-0123456789-0123456789\" }]\nmax_queued_requests = 700\n";
    let (_dir, mut flags) = flags(file);
    flags.queue.max_run_queued_requests = Some(8);
    let policies = Config::resolve(flags).unwrap().policies;
    let bounds = |tenant| {
        let training = policies.of(&TenantId::new(tenant)).training;
        (training.run_requests.get(), training.requests.get(), training.seq_gap.get(), training.bytes.get())
    };
    assert_eq!((bounds("t"), bounds("other")), ((8, 700, 9, 16 << 30), (8, 70, 9, 16 << 30)));
    let samples = |file: &str, flag| {
        let (_dir, mut given) = self::flags(file);
        given.queue.max_queued_samples = flag;
        Config::resolve(given).unwrap().max_queued_samples
    };
    let file = "[queue]\nmax_queued_samples = 100\n";
    assert_eq!([samples("", None), samples(file, None), samples(file, Some(9))], [None, Some(100), Some(9)]);
    let zero = refusal("", |flags| flags.queue.max_queued_samples = Some(0));
    assert_eq!(zero, "--max-queued-samples: must be at least 1");
    let zero = refusal("", |flags| flags.queue.max_seq_gap = Some(0));
    assert_eq!(zero, "--max-seq-gap: must be at least 1");
}

const KEY: &str = "[[keys]]\nname = \"ci\"\ntenant = \"t\"\nsha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n";

#[test]
fn flags_override_the_file_which_overrides_the_defaults() {
    let file = "port = 9000\ndtype = \"f32\"\ndata_dir = \"/from-file\"\ncheckpoint_memory_mib = 64\n";
    let (_dir, mut flags) = flags(file);
    flags.shared.data_dir = Some(PathBuf::from("/from-flag"));
    let config = Config::resolve(flags).unwrap();
    assert_eq!((config.port, config.dtype), (9000, ComputeType::F32));
    assert_eq!(config.checkpoint_memory_mib, Some(64));
    assert_eq!(config.data_dir, PathBuf::from("/from-flag"));
    assert_eq!(config.database, Database::Sqlite("/from-flag/trainyard.db".into()));
    assert_eq!(config.host, IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert!(config.threads >= 1);
}

#[test]
fn weights_stay_in_their_blocks_on_the_processor_only() {
    let (_dir, mut given) = flags("weights = \"file\"\n");
    assert_eq!(Config::resolve(given.clone()).unwrap().weights, Some(WeightForm::File));
    given.shared.weights = Some(WeightForm::Bf16);
    assert_eq!(Config::resolve(given.clone()).unwrap().weights, Some(WeightForm::Bf16));
    given.shared.dtype = Some(ComputeType::F32);
    assert!(Config::resolve(given).unwrap_err().to_string().contains("--weights: bf16 requires --dtype bf16"));
    let on_gpu = refusal("device = \"cuda\"\nweights = \"file\"\n", |_| {});
    assert!(on_gpu.contains("--weights: file requires --device cpu"), "{on_gpu}");
    let packed = refusal("device = \"cuda\"\nweights = \"q4\"\n", |_| {});
    assert!(packed.contains("--weights: q4 requires --device cpu"), "{packed}");
    let (_dir, given) = flags("weights = \"q8\"\n");
    assert_eq!(Config::resolve(given).unwrap().weights, Some(WeightForm::Q8));
    assert!(refusal("weights = \"q3\"\n", |_| {}).contains("file"));
}

#[test]
fn kernels_are_those_of_the_processor_or_older_ones() {
    use HostKernels::{AmxBf16, Avx2, Avx512Bf16, Portable};
    let (_dir, mut given) = flags("kernels = \"portable\"\n");
    assert_eq!(Config::resolve(given.clone()).unwrap().kernels, Some(Portable));
    let best = HostKernels::detect();
    given.shared.kernels = Some(best);
    assert_eq!(Config::resolve(given).unwrap().kernels, Some(best));
    let available = || vec![Avx2, Portable];
    assert_eq!(kernels(None, available()).unwrap(), None);
    assert_eq!(kernels(Some(Avx2), available()).unwrap(), Some(Avx2));
    for newer in [AmxBf16, Avx512Bf16] {
        let refused = kernels(Some(newer), available()).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("--kernels: {} is not available", newer.name())), "{refused}");
        assert!(refused.ends_with("available here: avx2, portable"), "{refused}");
    }
    assert!(refusal("kernels = \"avx3\"\n", |_| {}).contains("avx512-bf16"));
}

#[test]
fn a_layout_comes_from_the_flag_or_the_file() {
    let (_dir, mut given) = flags("parallel = \"tp=2\"\n");
    assert_eq!(Config::resolve(given.clone()).unwrap().parallel.tp(), 2);
    given.shared.parallel = "tp=4".parse().ok();
    assert_eq!(Config::resolve(given).unwrap().parallel.tp(), 4);
    assert_eq!(Config::resolve(flags("").1).unwrap().parallel.world(), 1);
    assert_eq!(Config::resolve(flags("parallel = \"tp=2,dp=3\"\n").1).unwrap().parallel.world(), 6);
    assert_eq!(Config::resolve(flags("parallel = \"tp=2,dp=2,ep=2\"\n").1).unwrap().parallel.world(), 8);
    let divided = Config::resolve(flags("parallel = \"dp=2,zero=3\"\n").1).unwrap().parallel;
    assert!(divided.divides_parameters() && divided.world() == 2);
    let refused = refusal("parallel = \"tp=2,pp=2\"\n", |_| {});
    // Values in the file may be secrets.
    assert!(refused.contains("unknown axis \"…\": expected tp, dp, ep or zero"), "{refused}");
}

#[test]
fn flags_and_the_file_may_each_name_one_half_of_a_certificate() {
    let (_dir, mut flags) = flags("[tls]\ncert = \"/file.pem\"\nkey = \"/file.key\"\n");
    flags.shared.tls.tls_cert = Some("/flag.pem".into());
    let files = TlsFiles { cert: "/flag.pem".into(), key: "/file.key".into() };
    assert_eq!(Config::resolve(flags).unwrap().tls, Some(files));
}

#[test]
fn the_metrics_of_a_run_have_a_bound_that_can_be_set() {
    let (_dir, mut given) = flags("metrics_rows = 20000\n");
    assert_eq!(Config::resolve(given.clone()).unwrap().metrics_rows, Some(20_000));
    given.shared.metrics_rows = Some(10_000);
    assert_eq!(Config::resolve(given).unwrap().metrics_rows, Some(10_000));
    assert_eq!(Config::resolve(flags("").1).unwrap().metrics_rows, None);
}

#[test]
fn models_come_from_the_file_when_no_flag_names_one() {
    let (_dir, mut flags) = flags("[models]\nb = \"/b\"\n\"org/a\" = \"/a\"\n");
    flags.shared.models.clear();
    let names: Vec<_> = Config::resolve(flags).unwrap().models.into_iter().map(|model| model.name).collect();
    assert_eq!(names, ["b", "org/a"]);
}

#[test]
fn what_is_wrong_is_named() {
    assert!(refusal("prot = 1\n", |_| {}).contains("prot"));
    assert!(refusal("", |flags| flags.shared.models.clear()).contains("--model"));
    assert!(refusal("", |flags| flags.shared.models.extend(flags.shared.models.clone())).contains("\"m\""));
    assert!(refusal("", |flags| flags.host = Some("nowhere".into())).contains("\"nowhere\""));
    assert!(refusal("", |flags| flags.shared.threads = Some(0)).contains("--threads"));
    assert!(refusal("database_readers = 0\n", |_| {}).contains("--database-readers"));
    assert!(refusal("metrics_rows = 9999\n", |_| {}).contains("--metrics-rows: must be at least 10000"));
    assert!(refusal("", |flags| flags.shared.kv_memory_mib = Some(0)).contains("--kv-memory-mib"));
    assert!(refusal("activation_memory_mib = 0\n", |_| {}).contains("--activation-memory-mib"));
    assert!(refusal("checkpoint_memory_mib = 0\n", |_| {}).contains("--checkpoint-memory-mib"));
    let url = refusal("", |flags| flags.shared.database_url = Some("mysql://u:secret@h/db".into()));
    assert!(url.contains("mysql://…@h/db") && !url.contains("secret"), "{url}");
    assert!(refusal("", |flags| flags.shared.database_url = Some("sqlite://".into())).contains("sqlite://PATH"));
    assert!(refusal(&KEY.replace("e3b0", "xyz0"), |_| {}).contains("\"ci\""));
    assert!(refusal("[[keys]]\ntenant = \"t\"\n", |_| {}).contains("either key or sha256"));
    assert!(refusal("[[keys]]\ntenant = \"t\"\nkey = \"sk-1\"\n", |_| {}).contains("tml-"));
    assert!(refusal("metrics_token = \"short\"\n", |_| {}).contains("--metrics-token"));
    assert!(refusal("role = \"api\"\n", |_| {}).contains("postgres://"));
    assert!(refusal("lease_seconds = 0\n", |_| {}).contains("--lease-seconds"));
    assert!(refusal("session_seconds = 0\n", |_| {}).contains("--session-seconds"));
    assert!(refusal("rank_timeout_seconds = 0\n", |_| {}).contains("--rank-timeout-seconds"));
    for hours in ["0", "-1", "nan", "inf", "1e300", "1e-6"] {
        assert!(refusal(&format!("retention_hours = {hours}\n"), |_| {}).contains("--retention-hours"), "{hours}");
    }
    assert!(refusal("[tls]\ncert = \"/c\"\n", |_| {}).contains("--tls-cert: requires --tls-key"));
    assert!(
        refusal("", |flags| flags.shared.tls.tls_key = Some("/k".into())).contains("--tls-key: requires --tls-cert")
    );
    let missing = refusal("", |flags| flags.shared.config = Some(PathBuf::from("/no/such/file.toml")));
    assert!(missing.contains("/no/such/file.toml"));
}

#[test]
fn only_loopback_does_without_keys() {
    let on = |host: &str, file: &str| {
        let (_dir, mut flags) = flags(file);
        flags.host = Some(host.into());
        Config::resolve(flags).unwrap()
    };
    // Whether the store has one is known once it is open.
    let open = on("0.0.0.0", "");
    assert_eq!(open.exposure, Some(Exposure::Host("0.0.0.0".parse().unwrap())));
    assert!(open.keys.are_required());
    let refused = ConfigError::from(open.exposure.unwrap()).to_string();
    assert!(refused.starts_with("--host: 0.0.0.0 is not loopback") && refused.contains("[[keys]]"), "{refused}");
    let keyed = on("0.0.0.0", KEY);
    assert!(keyed.exposure.is_none() && !keyed.keys.is_empty());
    let local = on("::1", "");
    assert!(local.exposure.is_none() && !local.keys.are_required());
}

#[test]
fn metrics_are_open_on_loopback_and_elsewhere_need_a_token() {
    let access = |host: &str, token: Option<&str>| {
        let (_dir, mut flags) = flags(KEY);
        flags.host = Some(host.to_owned());
        flags.shared.metrics_token = token.map(str::to_owned);
        Config::resolve(flags).unwrap().metrics_access
    };
    assert!(access("::1", None) == Access::Open);
    assert!(access("0.0.0.0", None) == Access::Off);
    assert!(access("0.0.0.0", Some("long enough")) == Access::new(Some("long enough"), false));
    assert!(access("127.0.0.1", Some("long enough")) != Access::Open);
}

#[test]
fn a_worker_tells_its_metrics_where_it_is_asked_to() {
    let (_dir, flags) = flags("metrics_token = \"long enough\"\n");
    let mut shared = flags.shared;
    shared.database_url = Some("postgres://u@h/db".to_owned());
    let resolve = |address: Option<&str>| {
        let metrics_addr = address.map(|address| address.parse().unwrap());
        Config::resolve_worker(WorkerFlags { shared: shared.clone(), metrics_addr, ..WorkerFlags::default() }).unwrap()
    };
    assert_eq!(resolve(None).metrics_addr, None);
    let config = resolve(Some("0.0.0.0:9100"));
    assert_eq!(config.metrics_addr, Some("0.0.0.0:9100".parse().unwrap()));
    assert!(config.metrics_access == Access::new(Some("long enough"), false));
}

#[test]
fn keys_are_given_as_text_or_digest() {
    let digest = hex(&Keys::digest("tml-b-0123456789-0123456789"));
    let file = format!(
        "[[keys]]\ntenant = \"alice\"\nkey = \"tml-a-0123456789-0123456789\"\n[[keys]]\ntenant = \"bob\"\nsha256 = \"{digest}\"\n"
    );
    let (_dir, flags) = flags(&file);
    let keys = Config::resolve(flags).unwrap().keys;
    assert_eq!(keys.tenant("tml-a-0123456789-0123456789"), Some(TenantId::new("alice")));
    assert_eq!(keys.tenant("tml-b-0123456789-0123456789"), Some(TenantId::new("bob")));
    assert_eq!(keys.tenant("tml-c-0123456789-0123456789"), None);
}

#[test]
fn sizes_in_the_file_have_units_too() {
    let (_dir, given) = flags(
        "memory_mib = \"12GiB\"\nkv_memory_mib = 512\nmax_body_bytes = \"64 MiB\"\n[http]\nbody_memory_mib = \"1GiB\"\n\
         [queue]\nmax_queued_bytes = \"3GiB\"\n",
    );
    let config = Config::resolve(given).unwrap();
    assert_eq!((config.memory_mib, config.kv_memory_mib), (Some(12 << 10), Some(512)));
    assert_eq!((config.max_body_bytes, config.http.bodies.memory), (Some(64 << 20), 1 << 30));
    assert_eq!(config.policies.of(&TenantId::new("t")).training.bytes.get(), 3 << 30);
    assert!(refusal("memory_mib = \"12 GB\"\n", |_| {}).contains("invalid size \"…\": expected a number of MiB"));
    assert!(refusal("memory_mib = -1\n", |_| {}).contains("expected a size"));
}

#[test]
fn the_http_side_has_limits_from_flags_and_the_file() {
    let (_dir, mut given) = flags("[http]\nmax_connections = 100\nheader_seconds = 5\nmin_upload_kib = 2\n");
    given.http.header_seconds = Some(7);
    given.http.body_memory_mib = Some(64);
    let http = Config::resolve(given).unwrap().http;
    assert_eq!((http.connections.total, http.connections.per_address), (100, 75));
    assert_eq!(http.connections.header_timeout, Duration::from_secs(7));
    assert_eq!((http.bodies.memory, http.bodies.bytes_per_window), (64 << 20, 30 * 2048));
    assert!(refusal("[http]\nmax_conections = 1\n", |_| {}).contains("max_conections"));
    let (_dir, given) = flags("[http]\ntrusted_proxies = [\"10.0.0.0/8\"]\n");
    let read = |text: &str| TrustedProxies::read(&[text.to_owned()]).unwrap();
    assert_eq!(Config::resolve(given).unwrap().http.trusted_proxies, read("10.0.0.0/8"));
    let (_dir, given) = flags("");
    assert_eq!(Config::resolve(given).unwrap().http.trusted_proxies, TrustedProxies::default());
    let wrong = refusal("", |flags| flags.http.trusted_proxies = Some(vec!["10.0.0.0/33".to_owned()]));
    assert_eq!(wrong, "--trusted-proxies: \"10.0.0.0/33\" is not an IP address or a network such as 10.0.0.0/8");
    let zero = refusal("", |flags| flags.http.max_connections = Some(0));
    assert_eq!(zero, "--max-connections: must be at least 1");
}

#[test]
fn images_have_limits_from_flags_and_the_file() {
    let file = "[images]\nthreads = 3\nmemory_mib = \"1GiB\"\ncache_mib = 5\nmax_bytes = \"8MiB\"\nmax_pixels = 1000\nmax_images = 9\n";
    let (_dir, mut given) = flags(file);
    given.shared.images.max_images = Some(7);
    given.shared.images.pixels_per_minute = Some(5_000);
    let images = Config::resolve(given).unwrap().images;
    assert_eq!((images.threads, images.memory, images.cache, images.limits.images), (3, 1 << 30, 5 << 20, 7));
    assert_eq!((images.limits.image.bytes, images.limits.image.pixels), (8 << 20, 1_000));
    assert_eq!(images.pixels_per_minute.map(u64::from), Some(5_000));
    let (_dir, given) = flags("");
    let images = Config::resolve(given).unwrap().images;
    assert_eq!((images.threads, images.memory, images.pixels_per_minute), (2, 512 << 20, None));
    assert_eq!(images.cache, 256 << 20);
    let (_dir, mut given) = flags("[images]\ncache_mib = 5\n");
    given.shared.images.image_cache_mib = Some(0);
    assert_eq!(Config::resolve(given).unwrap().images.cache, 0, "no embeddings are kept");
    assert_eq!(images.limits, Default::default(), "the memory is enough for the largest image");
    let (_dir, given) = flags("[images]\nmemory_mib = 9\n");
    assert_eq!(Config::resolve(given).unwrap().images.limits.image.pixels, 1 << 20);
    let zero = refusal("", |flags| flags.shared.images.image_threads = Some(0));
    assert_eq!(zero, "--image-threads: must be at least 1");
    assert!(refusal("[images]\nthread = 1\n", |_| {}).contains("thread"));
}

#[test]
fn a_public_url_needs_keys_and_closes_the_metrics() {
    let public = |flags: &mut ServeFlags| flags.public_url = Some("https://train.example".to_owned());
    let (_dir, mut open) = flags("");
    public(&mut open);
    let open = Config::resolve(open).unwrap();
    assert!(open.exposure == Some(Exposure::PublicUrl) && open.keys.are_required());
    let refused = ConfigError::from(open.exposure.unwrap()).to_string();
    assert!(refused.starts_with("--public-url: clients elsewhere need keys"), "{refused}");
    let (_dir, given) = flags("public_url = \"https://train.example\"\n");
    assert_eq!(Config::resolve(given).unwrap().exposure, Some(Exposure::PublicUrl));
    let (_dir, mut given) = flags(KEY);
    public(&mut given);
    assert_eq!(Config::resolve(given).unwrap().metrics_access, Access::Off);
    let (_dir, mut given) = flags("insecure_no_auth = true\n");
    public(&mut given);
    assert!(Config::resolve(given).unwrap().keys.is_empty());
}

#[test]
fn the_hub_has_an_upstream_unless_there_is_to_be_none() {
    let (_dir, given) = flags("");
    let default = HubConfig { upstream: Some("https://huggingface.co".to_owned()), require_key: false, weights: false };
    assert_eq!(Config::resolve(given).unwrap().hub, default);
    let (_dir, given) = flags("[hub]\nrequire_key = true\nweights = true\n");
    assert_eq!(Config::resolve(given).unwrap().hub, HubConfig { upstream: None, require_key: true, weights: true });
    let (_dir, mut given) = flags("[hub]\nupstream = \"none\"\n");
    given.hub.hf_upstream = Some("http://mirror:8080/".to_owned());
    assert_eq!(Config::resolve(given).unwrap().hub.upstream.as_deref(), Some("http://mirror:8080"));
    let refused = refusal("", |flags| flags.hub.hf_upstream = Some("mirror".to_owned()));
    assert_eq!(refused, "--hf-upstream: \"mirror\" is not a URL; use https://… or none");
}

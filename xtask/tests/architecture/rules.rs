//! The rules of ARCHITECTURE.md as tables. A change of the layering changes them here, with the reason.

/// Crates of the workspace by folder: what each may depend on, and what its binary must never contain.
pub(crate) const CRATES: &[CrateRule] = &[
    CrateRule {
        folder: "protocol",
        may_use: &["images"],
        never: &["tokio", "axum", "sqlx", "candle-core", "tracing"],
        why: "the nouns of both sides: no async, HTTP, SQL or tensors",
    },
    CrateRule {
        folder: "age",
        may_use: &["protocol"],
        never: &["tokio", "axum", "age"],
        why: "it writes files; the crate `age` only reads them in its tests",
    },
    CrateRule { folder: "test-support", may_use: &[], never: &["tokio"], why: "tests of every crate may use it" },
    CrateRule {
        folder: "wire",
        may_use: &["protocol", "age", "images"],
        never: &["tokio", "axum", "sqlx", "candle-core"],
        why: "wire types are decoded and encoded without a server",
    },
    CrateRule {
        folder: "chat",
        may_use: &["protocol", "wire", "gpu-runtime"],
        never: &["tokio", "axum", "sqlx"],
        why: "text becomes tokens and back without a server and without a scheduler",
    },
    CrateRule {
        folder: "images",
        may_use: &[],
        never: &["tokio", "axum", "candle-core", "image"],
        why: "bytes become pixels and patches, with the bits of the reference: no HTTP and no tensors",
    },
    CrateRule {
        folder: "http",
        may_use: &[],
        never: &["sqlx", "object_store", "candle-core", "utoipa"],
        why: "connections and answers are the same for every API: no state of the server, no tenants",
    },
    CrateRule {
        folder: "storage",
        may_use: &[],
        never: &["axum", "sqlx", "candle-core"],
        why: "folders and buckets know no rows, and nothing of what is stored",
    },
    CrateRule {
        folder: "scheduler",
        may_use: &["protocol", "storage"],
        never: &["axum", "candle-core", "safetensors", "tokenizers"],
        why: "payloads and results are bytes to it: no API and no tensors",
    },
    CrateRule {
        folder: "backend",
        may_use: &["images", "protocol"],
        never: &["tokio", "axum", "candle-core", "safetensors", "tokenizers"],
        why: "a backend computes the ops that it is given; it knows no model, no file and no request",
    },
    CrateRule {
        folder: "gpu-runtime",
        may_use: &["backend", "images", "protocol"],
        never: &["tokio", "axum", "sqlx", "reqwest", "object_store"],
        why: "the engine computes: no HTTP, SQL or storage service, and no executor under its threads",
    },
    CrateRule {
        folder: "bench",
        may_use: &["protocol", "storage", "scheduler", "gpu-runtime"],
        never: &[],
        why: "a program of its own: it measures the server from outside",
    },
    CrateRule {
        folder: "server",
        may_use: &["protocol", "age", "images", "wire", "chat", "http", "storage", "scheduler", "gpu-runtime"],
        never: &["openssl-sys", "pyo3", "age"],
        why: "the one crate that joins scheduler and engine; it runs where neither OpenSSL nor Python is installed",
    },
    CrateRule {
        folder: "cuda-sim/ptx",
        may_use: &[],
        never: &["cudarc", "libloading"],
        why: "an interpreter that other projects may use: plain Rust over plain memory",
    },
    CrateRule {
        folder: "cuda-sim/cubin",
        may_use: &[],
        never: &["cudarc", "libloading"],
        why: "a reader that other projects may use: plain Rust over bytes",
    },
    CrateRule {
        folder: "cuda-sim/driver",
        may_use: &["cuda-sim/cubin", "cuda-sim/ptx"],
        never: &["cudarc"],
        why: "it stands in for the driver: it knows nothing of those who load it",
    },
    CrateRule {
        folder: "cuda-sim/client",
        may_use: &[],
        never: &["cudarc"],
        why: "it finds the simulated driver at run time",
    },
    CrateRule {
        folder: "cuda-sim/cublaslt",
        may_use: &["cuda-sim/client"],
        never: &["cudarc"],
        why: "a library of its own, as the real one: it reaches the device through the driver's functions",
    },
    CrateRule {
        folder: "cuda-sim/nccl",
        may_use: &["cuda-sim/client"],
        never: &["cudarc"],
        why: "a library of its own, as the real one: it reaches the device through the driver's functions",
    },
    CrateRule {
        folder: "cuda-sim/harness",
        may_use: &["cuda-sim/client", "cuda-sim/cublaslt", "cuda-sim/driver", "cuda-sim/nccl"],
        never: &[],
        why: "it has the libraries built, and runs programs on them",
    },
    CrateRule {
        folder: "client-sdk/generator",
        may_use: &[],
        never: &["tokio", "reqwest"],
        why: "it reads the committed description of the API and writes files",
    },
    CrateRule {
        folder: "client-sdk/rust",
        may_use: &[],
        never: &["openssl-sys", "native-tls", "aws-lc-sys", "axum", "sqlx", "candle-core"],
        why: "a client knows the API's description and nothing else of the service",
    },
    CrateRule {
        folder: "amx-emulator",
        may_use: &[],
        never: &[],
        why: "it stands in for instructions: it knows nothing of the programs that use them",
    },
    CrateRule {
        folder: "xtask",
        may_use: &[],
        never: &[],
        why: "tasks build, test and measure the binary; they are not part of it",
    },
];

/// Dependencies that the crate of a folder may have.
pub(crate) struct CrateRule {
    pub(crate) folder: &'static str,
    /// Folders of workspace crates.
    pub(crate) may_use: &'static [&'static str],
    /// Packages that must not be among its dependencies, direct or indirect. Development dependencies are free.
    pub(crate) never: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Paths and names that production code under a folder, or in a file, must not contain.
pub(crate) const IMPORTS: &[ImportRule] = &[
    ImportRule {
        folders: &["protocol/src"],
        paths: &["std::fs", "std::net", "std::thread", "std::time::Instant", "std::time::SystemTime"],
        names: &["async", "now_v7"],
        why: "plain data: no input or output, no threads, no clock",
    },
    ImportRule {
        folders: &["scheduler/src/queue"],
        paths: &["trainyard_scheduler::store", "trainyard_storage", "sqlx", "tokio"],
        names: &["async"],
        why: "the queue is a state machine in memory that tests drive step by step",
    },
    ImportRule {
        folders: &["scheduler/src/store"],
        paths: &["trainyard_scheduler::queue", "trainyard_scheduler::scheduler"],
        names: &[],
        why: "the store writes what it is given and decides nothing",
    },
    ImportRule {
        folders: &["wire/src"],
        paths: &["std::fs", "std::net", "std::thread"],
        names: &["async"],
        why: "wire types are only decoded and encoded",
    },
    ImportRule {
        folders: &["chat/src"],
        paths: &["std::fs", "std::net", "trainyard_gpu_runtime::backend", "trainyard_gpu_runtime::engine"],
        names: &["async"],
        why: "it uses only the tokenizer of the runtime, and is given texts",
    },
    ImportRule {
        folders: &["images/src"],
        paths: &["std::fs", "std::net", "std::thread", "std::time"],
        names: &["async"],
        why: "images are functions of their bytes; the caller decides where they run",
    },
    ImportRule {
        folders: &["server/src/api"],
        paths: &["trainyard_gpu_runtime", "trainyard_server::cli", "trainyard_server::worker"],
        names: &[],
        why: "an API server runs without an engine",
    },
    ImportRule {
        folders: &["server/src/worker", "server/src/worker.rs"],
        paths: &["axum", "trainyard_server::api", "trainyard_server::cli"],
        names: &[],
        why: "a worker runs without the API",
    },
    ImportRule {
        folders: &["gpu-runtime/src/backend"],
        paths: &[
            "trainyard_gpu_runtime::checkpoint",
            "trainyard_gpu_runtime::engine",
            "trainyard_gpu_runtime::load",
            "trainyard_gpu_runtime::model",
        ],
        names: &[],
        why: "a backend computes the ops that it is given; it knows no model and no request",
    },
    ImportRule {
        folders: &["gpu-runtime/src/model"],
        paths: &["trainyard_gpu_runtime::checkpoint", "trainyard_gpu_runtime::engine"],
        names: &[],
        why: "a forward and a backward pass know no request",
    },
    ImportRule {
        folders: &["gpu-runtime/src/load"],
        paths: &["trainyard_gpu_runtime::checkpoint", "trainyard_gpu_runtime::engine"],
        names: &[],
        why: "a file becomes a configuration and tensors, before there is an engine",
    },
    ImportRule {
        folders: &["gpu-runtime/src/loss"],
        paths: &["trainyard_gpu_runtime::backend", "trainyard_gpu_runtime::engine", "trainyard_gpu_runtime::model"],
        names: &[],
        why: "losses are plain functions of log-probabilities, on the host",
    },
];

/// The rule that keeps the model independent of the device. It applies once the folder of the seam exists.
pub(crate) const DEVICE_SEAM: &str = "backend/src/lib.rs";
pub(crate) const DEVICE_INDEPENDENT: ImportRule = ImportRule {
    folders: &["gpu-runtime/src/model", "gpu-runtime/src/engine"],
    paths: &[
        "trainyard_backend::cpu",
        "trainyard_backend::reference",
        "trainyard_gpu_runtime::backend::cpu",
        "trainyard_gpu_runtime::backend::cuda",
        "trainyard_gpu_runtime::backend::reference",
        "std::arch",
        "core::arch",
    ],
    names: &["Cpu", "cuda*", "avx*", "sse*", "neon*", "amx*", "_mm*", "__m*", "x86_64", "aarch64", "target_feature"],
    why: "one model code for every device: it is generic over `Backend`",
};

/// Imports and names that a folder must not use.
pub(crate) struct ImportRule {
    /// Folders or files, relative to the repository.
    pub(crate) folders: &'static [&'static str],
    /// Forbidden paths, with everything below them.
    pub(crate) paths: &'static [&'static str],
    /// Forbidden names. A `*` at the end stands for anything, and then case does not matter.
    pub(crate) names: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// Places where `unsafe` is allowed.
pub(crate) const UNSAFE: &[(&str, &str)] = &[
    ("backend/src/cpu", "vector instructions, and the thread pool's closures"),
    ("backend/src/memory.rs", "a call of the C library's allocator"),
    ("gpu-runtime/src/backend/cuda", "the libraries of CUDA"),
    ("test-support/src/heap.rs", "an allocator that counts, for tests"),
    ("test-support/src/coverage.rs", "counters of branches, which the compiler makes for `make fuzz`"),
    ("amx-emulator/src/arithmetic.rs", "vector instructions with their own rounding mode"),
    (
        "amx-emulator/src/handler.rs",
        "a signal handler, with the registers and the memory of the program that it serves",
    ),
    ("cuda-sim/driver/src/ffi", "functions that C calls, with its pointers"),
    ("cuda-sim/client/src", "functions of a library that is loaded at run time"),
    ("cuda-sim/cublaslt/src/ffi.rs", "functions that C calls, with its pointers"),
    ("cuda-sim/nccl/src/ffi.rs", "functions that C calls, with its pointers"),
];

/// Folders of these tables that may be missing, because they are yet to come or were removed.
pub(crate) const MOVING: &[&str] = &[];

/// Current violations of `IMPORTS`: a file, and the path or name of the rule. An unneeded entry fails the test.
pub(crate) const KNOWN_IMPORTS: &[(&str, &str)] = &[];

/// Most files that import each other, directly or indirectly: two, such as a parent and a child that share a type.
pub(crate) const MOST_CYCLE: usize = 2;

/// Most lines of a production file, with the tests in it.
pub(crate) const MOST_LINES: usize = 400;

/// Most lines of the median production file of a crate.
pub(crate) const MEDIAN_LINES: usize = 130;

/// Files that exceed `MOST_LINES` at present, and folders of crates that exceed `MEDIAN_LINES`. An unneeded entry fails
/// the test.
pub(crate) const KNOWN_SIZES: &[&str] = &[
    // All operations of a group of the API's description, and all its types, as generated.
    "client-sdk/rust/src/generated/administration.rs",
    "client-sdk/rust/src/generated/catalogue.rs",
    "client-sdk/rust/src/generated/types.rs",
];

/// Pages whose paths and links must exist.
pub(crate) const PAGES: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "bench/README.md",
    "client-sdk/python/README.md",
    "client-sdk/rust/README.md",
    "docs/operators/backup.md",
    "cuda-sim/README.md",
    "docs/README.md",
    "docs/users/coming-from/areal.md",
    "docs/users/coming-from/nemo-rl.md",
    "docs/users/coming-from/prime-rl.md",
    "docs/users/coming-from/skyrl.md",
    "docs/users/coming-from/verl.md",
    "docs/users/compatibility.md",
    "docs/users/console.md",
    "docs/users/cookbook.md",
    "docs/operators/cuda.md",
    "docs/design/build.md",
    "docs/design/data-model.md",
    "docs/operators/deployment.md",
    "docs/users/getting-started.md",
    "docs/design/engine.md",
    "docs/design/gpu.md",
    "docs/design/leases.md",
    "docs/design/numerics.md",
    "docs/design/ranks.md",
    "docs/design/writer.md",
    "deploy/README.md",
    "docs/operators/budgets.md",
    "docs/operators/http.md",
    "docs/users/inference.md",
    "docs/operators/metrics.md",
    "docs/operators/operations.md",
    "docs/performance.md",
    "docs/operators/planning.md",
    "docs/users/recipes.md",
    "docs/users/sdks.md",
    "docs/operators/security.md",
    "docs/operators/sharding.md",
    "docs/operators/storage.md",
    "docs/operators/tenants.md",
    "docs/users/take-your-model.md",
    "docs/users/troubleshooting.md",
    "tests/fuzz/README.md",
    "tests/golden/README.md",
];

/// Paths in these pages that do not exist yet. An unneeded entry fails the test.
pub(crate) const KNOWN_PATHS: &[&str] = &[];

/// Licences that every dependency must offer: permissive ones, because the binary is distributed without sources.
pub(crate) const LICENCES: &[&str] = &[
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Zlib",
];

/// Prefix of the source of packages from a registry; packages from elsewhere (a repository, say) are refused.
pub(crate) const REGISTRY: &str = "registry+";

/// Targets that the binary is built for.
pub(crate) const TARGETS: &[&str] = &["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

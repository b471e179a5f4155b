PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'sessions','2026-11-26 00:00:00',1,X'c96b5287c701026538c7bd15e4fd057f44a04527005a55aa76e2e6f2ced0b8e11823d2963cba2dabcb5c2ba94a84b329',0);
INSERT INTO _sqlx_migrations VALUES(2,'runs','2026-11-26 00:00:00',1,X'1e429d3d3f099a20f5f5e2ff578b7b6e158f4ddc45a54f992f10f77555fc65f7e437e2b1316c4b86dc1832eb146b46f3',0);
INSERT INTO _sqlx_migrations VALUES(3,'sampling sessions','2026-11-26 00:00:00',1,X'12e735df01728482a02e966b16252079532e08fd47764224144a3b585cdd582b2b2d8539fad603e55aebb49e1ab350a2',0);
INSERT INTO _sqlx_migrations VALUES(4,'requests','2026-11-26 00:00:00',1,X'102f82ef6f9815f725aaae1ba4c3ff7be029e823075ceac17728c66028113caffd7a4ec9482d21a0c6e961ba3830920c',0);
INSERT INTO _sqlx_migrations VALUES(5,'checkpoints','2026-11-26 00:00:00',1,X'd250a6a6ad6f0cf18906b567e1e2a7a544039ab31a7097238ac8b3bd3395349d344b17aad4d283240e9573f38036301c',0);
INSERT INTO _sqlx_migrations VALUES(6,'workers','2026-11-26 00:00:00',1,X'bf1cc0f69461920d483dc037956628e1f7dc5b586c994f67fcb9b5c3a7d0c0f5083212c512abc7f7cfe804028d024c02',0);
INSERT INTO _sqlx_migrations VALUES(7,'leases','2026-11-26 00:00:00',1,X'493ab94dc5031cd42718d4c97da8a127bccced5ec5b0159cc004bdcd9397f0a3719bf8a955415124486afd9bfb449fda',0);
INSERT INTO _sqlx_migrations VALUES(8,'storage','2026-11-26 00:00:00',1,X'ea3ed430095b60ca1d823227b5b6a3a79370382a01f08762d5f2b9b0a5480476443673c7622c14c3451d65e812404d84',0);
INSERT INTO _sqlx_migrations VALUES(9,'quotas','2026-11-26 00:00:00',1,X'3a6f18e88b9a50f8541c782dd4d70ff3cc4731f5c94b797e78c6bd318b4428637b1c17dfc8778d6393d9c14e1eff528b',0);
INSERT INTO _sqlx_migrations VALUES(10,'secrets','2026-11-26 00:00:00',1,X'0e8fa5334b78753ebc142cae7a468e1ba0532eb7310e103051dabcacb7af12c6fbdcf857346b723666663ba473c73220',0);
INSERT INTO _sqlx_migrations VALUES(11,'paces','2026-11-26 00:00:00',1,X'524eb04520c0170705c64ff8b874d1081495da7170ca12458c8a61d154b05d8ba514859338f2c1bf7a5e41f3f08482f4',0);
INSERT INTO _sqlx_migrations VALUES(12,'suspects','2026-11-26 00:00:00',1,X'1cbc081ece04796dbbd890b8a993402eab026600f1ae60034a1b86254142c531fcaff71f28fe05fe4fc7aa3228620b49',0);
INSERT INTO _sqlx_migrations VALUES(13,'rate limits and crash counts','2026-11-26 00:00:00',1,X'10b6715efc863ebed183928fdf3ccf88015c60233aab1271c2270390c6f919b41fd6dc8d9abfdc88c2467c6ec222c87d',0);
INSERT INTO _sqlx_migrations VALUES(14,'row retention','2026-11-26 00:00:00',1,X'703b58dbe830ed73d1ba7e5c9ea98e5d9f2c34dfdb5ff9fbcea4276cfba6eea096fd5eb205b8a5e671413e26f9418783',0);
INSERT INTO _sqlx_migrations VALUES(15,'pending saves','2026-11-26 00:00:00',1,X'e296dab02ddcf0ffe4ec9e6b2abfab737ffa10964f4572e0ccd0e803db066506b1b2a901d7dc3dbc84c03e5c38e53004',0);
INSERT INTO _sqlx_migrations VALUES(16,'memory waits','2026-11-26 00:00:00',1,X'aa42820e964ffbd4715997ca10ec9d4990df68bfac111da398464e5d22e51dc1139469e6c650c360626c933eb58c32fb',0);
INSERT INTO _sqlx_migrations VALUES(17,'training queue','2026-11-26 00:00:00',1,X'765b0d779fb3406b2f705cd6e298a3291cee79c86198ea3e782d70e96fabe6469aad9c0fc4a73ee75e5d5268a72b3b58',0);
INSERT INTO _sqlx_migrations VALUES(18,'collected snapshots','2026-11-26 00:00:00',1,X'f5334baa62fbef3b28e377e60b4105d6563c1f88de4586945c2481b6a989a0cf02843602e4a882995b9ed8b4a55cfe49',0);
INSERT INTO _sqlx_migrations VALUES(19,'numerics','2026-11-26 00:00:00',1,X'f55bc4b95f2199eb045d860bc30544430de25dc1c0be3cc88cf131e201ecee8b8f23d65d1e153f8d1529c434eef3e284',0);
INSERT INTO _sqlx_migrations VALUES(20,'schema compatibility','2026-11-26 00:00:00',1,X'b3e7fff9913b69d072ea638cdc4255b05ddcc0f1e1c607920d6a8f094eb93bcde0bdd84b986ffd65a4a0281cccf1cba5',0);
INSERT INTO _sqlx_migrations VALUES(21,'backup holds','2026-11-26 00:00:00',1,X'd4dffde248858fe2805f5aca681d663e6fbd8ebdc946fcd19f7638e7f5da7812a048ad01a5bc8183d2c88bc8cc2fba6e',0);
INSERT INTO _sqlx_migrations VALUES(22,'tenants','2026-11-26 00:00:00',1,X'ae5a40715a7e9b492edde1b272288232f31f5ff09908e094ab11c2cae354aef42f1bb946ca8e70add428b03972e4cf8e',0);
INSERT INTO _sqlx_migrations VALUES(23,'usage','2026-11-26 00:00:00',1,X'fa9b92c89deb834e9f1e676a7ebffe4af5acd11530f824ce9705efe6173953d65921f619f23fb119efab4405e024e935',0);
INSERT INTO _sqlx_migrations VALUES(24,'copies and scopes','2026-11-26 00:00:00',1,X'965f18db3fb17037c7513cfcf8220b4c5c3bad7c11228b4017828f271ca90cb41f98f4d6072f40de6c50cee634f5a0f3',0);
INSERT INTO _sqlx_migrations VALUES(25,'recorded samples','2026-11-26 00:00:00',1,X'84562e240bd162db9e710e9f45273aa00a499144e70c2434d47a41392ecd4468c60a1d6d626e68d1c65179be69684e08',0);
INSERT INTO _sqlx_migrations VALUES(26,'custom losses','2026-11-26 00:00:00',1,X'8005904cbd90d7b02e31e24298fb60cbe97581d663c2ea46ab4cf33776093acee37429147065995fec19cd9c948f96fe',0);
INSERT INTO _sqlx_migrations VALUES(27,'uploads','2026-11-26 00:00:00',1,X'373a16abe30cd70992740077a1e0b5abfc2fe5fb3e1048847f6546114e0c5ef5e2de200075cbabdf795d0ea19c4ff037',0);
INSERT INTO _sqlx_migrations VALUES(28,'row-level security','2026-11-26 00:00:00',1,X'3ee166076a10a1b8bc9ec815ba854043a6ccd4db11ef97be9e320b15e3c56bf591bb06c906f19bf3dcd202065de7d180',0);
INSERT INTO _sqlx_migrations VALUES(29,'organisation limits','2026-11-26 00:00:00',1,X'8626822551a1f89aea0814ac2e506e3bc796be222568067510669d721a82c7d8c2acad69ca01ba2e57e4580c2ad577fa',0);
INSERT INTO _sqlx_migrations VALUES(30,'run_metrics','2026-11-26 00:00:00',1,X'b19cddb47c561dcc65f0241c9b97c2b131f06913ebad99c87608b2b4f9580bee16268018dce8e6700178fb118c860ac5',0);
INSERT INTO _sqlx_migrations VALUES(31,'run samples','2026-11-26 00:00:00',1,X'228c73fd4f94135e7e30572a5b3b8ecf616a7501d0723a822503ec97640996f6ca6850d552f41de818e92d677bbd3f09',0);
CREATE TABLE sessions (
    id              TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    tenant          TEXT    NOT NULL,             -- owner
    idempotency_key TEXT,                         -- a repetition with this key returns this session
    tags            TEXT    NOT NULL,             -- JSON array of strings
    user_metadata   TEXT    NOT NULL,             -- JSON object
    sdk_version     TEXT    NOT NULL,             -- of the client
    project_id      TEXT,                         -- of the client
    display_name    TEXT,                         -- of the client
    status          TEXT    NOT NULL CHECK (status IN ('active', 'finished', 'expired')), -- active -> finished | expired
    finish_reason   TEXT    CHECK (finish_reason IN ('success', 'errored', 'interrupted')), -- given when finished
    finish_detail   TEXT,                         -- what the client said about it
    created_at      INTEGER NOT NULL,             -- ms since the epoch
    ended_at        INTEGER, last_seen_at INTEGER NOT NULL DEFAULT 0, collected INTEGER NOT NULL DEFAULT 0 CHECK (collected IN (0, 1)), user_id TEXT,                      -- ms since the epoch; when it finished or expired
    CHECK ((status = 'active') = (ended_at IS NULL)),
    CHECK ((status = 'finished') = (finish_reason IS NOT NULL))
) STRICT;
INSERT INTO sessions VALUES('018bcfe5-6800-7e1c-89fb-a2c8af688c7b','me',NULL,'["a"]','{"k":1}','0.38.0',NULL,'name','active',NULL,NULL,1700000000000,NULL,1700000000000,0,NULL);
CREATE TABLE runs (
    id              TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:train:<model_seq_id>'
    tenant          TEXT    NOT NULL,             -- owner
    session_id      TEXT    NOT NULL REFERENCES sessions (id), -- where it was created
    model_seq_id    INTEGER NOT NULL,             -- the client's number within the session
    spec            TEXT    NOT NULL,             -- JSON of RunSpec
    state           TEXT    NOT NULL CHECK (state IN ('creating', 'ready', 'failed')), -- creating -> ready -> failed
    failure         TEXT,                         -- JSON of OpError: what later requests of a failed run are told
    corrupted       INTEGER NOT NULL DEFAULT 0 CHECK (corrupted IN (0, 1)), -- 1: could not be restored after a restart
    user_metadata   TEXT    NOT NULL,             -- JSON object of strings
    created_at      INTEGER NOT NULL,             -- ms since the epoch
    last_request_at INTEGER NOT NULL, base_model TEXT NOT NULL DEFAULT '', worker_id TEXT, epoch INTEGER NOT NULL DEFAULT 0, snapshot_seq INTEGER, snapshot_dir TEXT, memory_wait TEXT, weights TEXT, arithmetic TEXT, numerics_changes TEXT, listed INTEGER NOT NULL DEFAULT 1 CHECK (listed IN (0, 1)), imported_from TEXT,             -- ms since the epoch; of the last submission
    UNIQUE (session_id, model_seq_id)
) STRICT;
INSERT INTO runs VALUES('018bcfe5-6800-7e1c-89fb-a2c8af688c7b:train:0','me','018bcfe5-6800-7e1c-89fb-a2c8af688c7b',0,'{"base_model":"base","lora":{"rank":8,"seed":1,"train_unembed":true,"train_mlp":true,"train_attn":true},"optimizer":{"type":"adamw"}}','ready',NULL,0,'{"k":"v"}',1700000000000,1700000000000,'base',NULL,1,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL);
CREATE TABLE sampling_sessions (
    id             TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:sample:<seq_id>'
    tenant         TEXT    NOT NULL,             -- owner
    session_id     TEXT    NOT NULL REFERENCES sessions (id), -- where it was created
    seq_id         INTEGER NOT NULL,             -- the client's number within the session
    base_model     TEXT    NOT NULL,             -- name
    model_path     TEXT,                         -- tinker:// path of a sampler checkpoint
    checkpoint_dir TEXT,                         -- folder of that checkpoint when this was created
    snapshot       TEXT,                         -- key of an in-memory snapshot
    run_id         TEXT    REFERENCES runs (id), -- whose snapshot it is
    request_id     TEXT,                         -- the save that made the snapshot, repeated after a restart
    created_at     INTEGER NOT NULL, snapshot_dir TEXT, collected INTEGER NOT NULL DEFAULT 0 CHECK (collected IN (0, 1)), clones INTEGER NOT NULL DEFAULT 0, weights_of TEXT,             -- ms since the epoch
    UNIQUE (session_id, seq_id)
) STRICT;
INSERT INTO sampling_sessions VALUES('018bcfe5-6800-7e1c-89fb-a2c8af688c7b:sample:7','me','018bcfe5-6800-7e1c-89fb-a2c8af688c7b',7,'base',NULL,NULL,NULL,NULL,NULL,1700000000000,NULL,0,0,NULL);
CREATE TABLE requests (
    arrival             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, -- order of acceptance
    id                  TEXT    NOT NULL UNIQUE,      -- the future
    tenant              TEXT    NOT NULL,             -- owner
    session_id          TEXT    NOT NULL REFERENCES sessions (id), -- of the run or sampling session
    run_id              TEXT    REFERENCES runs (id), -- set unless it is a sample
    sampling_session_id TEXT    REFERENCES sampling_sessions (id), -- set when it is a sample
    seq_id              INTEGER NOT NULL,             -- place in the run's order (0 creates it), or the sample's number
    kind                TEXT    NOT NULL,             -- RequestKind
    num_samples         INTEGER NOT NULL DEFAULT 0,   -- completions that a sample asks for
    fingerprint         BLOB    NOT NULL,             -- SHA-256 of kind and identity bytes; a retry must have the same
    state               TEXT    NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')), -- RequestState
    payload             BLOB,                         -- what the worker gets, when small and still needed
    payload_file        TEXT,                         -- name of its file among the blobs, when large and still needed
    encoding            TEXT    CHECK (encoding IN ('json', 'protobuf')), -- of the result
    result              BLOB,                         -- when small and not dropped
    result_file         TEXT,                         -- name of its file among the blobs, when large and not dropped
    result_size         INTEGER NOT NULL DEFAULT 0,   -- bytes
    error               TEXT,                         -- JSON of OpError, when failed
    replays             INTEGER NOT NULL DEFAULT 0 CHECK (replays IN (0, 1)), -- 1: changed the run's memory, executed again after a restart
    event               INTEGER,                      -- place among the finished samples of (sampling_session_id, clone)
    clone               INTEGER,                      -- seq_id div 10^9 of a sample
    dropped             INTEGER NOT NULL DEFAULT 0 CHECK (dropped IN (0, 1)), -- 1: the result was dropped
    acknowledged_at     INTEGER,                      -- ms since the epoch; the client has the result
    created_at          INTEGER NOT NULL,             -- ms since the epoch
    finished_at         INTEGER, worker_id TEXT, claim INTEGER NOT NULL DEFAULT 0, tokens INTEGER NOT NULL DEFAULT 0, crash_count INTEGER NOT NULL DEFAULT 0, isolated_starts INTEGER NOT NULL DEFAULT 0, stores TEXT, payload_bytes INTEGER NOT NULL DEFAULT 0, recorded_at INTEGER,                      -- ms since the epoch
    CHECK ((run_id IS NULL) <> (sampling_session_id IS NULL)),
    CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
) STRICT;
INSERT INTO requests VALUES(1,'018bcfe5-6800-7760-be71-128c689d9f78','me','018bcfe5-6800-7e1c-89fb-a2c8af688c7b','018bcfe5-6800-7e1c-89fb-a2c8af688c7b:train:0',NULL,0,'create_model',0,X'8bd75fb6c9767e06e897679f66faa698c5a35c9de25c3b0eefeb54a037612a2b','succeeded',X'637265617465',NULL,'json',X'726573756c742030',NULL,8,NULL,1,NULL,NULL,0,NULL,1700000000000,1700000000000,NULL,0,0,0,0,NULL,6,NULL);
INSERT INTO requests VALUES(2,'018bcfe5-6800-76d3-9872-10a3055a165c','me','018bcfe5-6800-7e1c-89fb-a2c8af688c7b','018bcfe5-6800-7e1c-89fb-a2c8af688c7b:train:0',NULL,1,'forward',0,X'e9a3bc1ad67b2191b3e0072b0cb343b8817209b731299e8dbc20e8eace2a17d5','succeeded',NULL,NULL,'json',X'726573756c742031',NULL,8,NULL,0,NULL,NULL,0,NULL,1700000000000,1700000000000,NULL,0,10,0,0,NULL,9,NULL);
INSERT INTO requests VALUES(3,'018bcfe5-6800-70f2-bc4e-33c51b4af369','me','018bcfe5-6800-7e1c-89fb-a2c8af688c7b','018bcfe5-6800-7e1c-89fb-a2c8af688c7b:train:0',NULL,2,'forward_backward',0,X'8c959778639d2dd86325c59076255c56b00352cd890e292d89dae63855798978','queued',X'7061796c6f61642032',NULL,NULL,NULL,NULL,0,NULL,0,NULL,NULL,0,NULL,1700000000000,NULL,NULL,0,10,0,0,NULL,9,NULL);
INSERT INTO requests VALUES(4,'018bcfe5-6800-7254-93b9-3754a6958d1d','me','018bcfe5-6800-7e1c-89fb-a2c8af688c7b',NULL,'018bcfe5-6800-7e1c-89fb-a2c8af688c7b:sample:7',1,'sample',2,X'6225d5ee4f7fab9b2628b11965d02e15d4941fe51b7aad78f91d556e047fc5a9','queued',X'73616d706c652031',NULL,NULL,NULL,NULL,0,NULL,0,NULL,NULL,0,NULL,1700000000000,NULL,NULL,1,10,0,0,NULL,8,NULL);
CREATE TABLE checkpoints (
    run_id        TEXT    NOT NULL REFERENCES runs (id), -- first part of its path
    kind          TEXT    NOT NULL CHECK (kind IN ('weights', 'sampler_weights', 'external_weights')), -- second part
    name          TEXT    NOT NULL,             -- third part
    tenant        TEXT    NOT NULL,             -- owner
    spec          TEXT    NOT NULL,             -- JSON of RunSpec
    dir           TEXT    NOT NULL,             -- its folder
    size_bytes    INTEGER NOT NULL,             -- of all its files
    public        INTEGER NOT NULL DEFAULT 0 CHECK (public IN (0, 1)), -- 1: every tenant may read it
    user_metadata TEXT    NOT NULL,             -- JSON object of strings
    created_at    INTEGER NOT NULL,             -- ms since the epoch
    expires_at    INTEGER,                      -- ms since the epoch; NULL is never
    PRIMARY KEY (run_id, kind, name)
) STRICT;
CREATE TABLE workers (
    id            TEXT    NOT NULL PRIMARY KEY, -- kept in the worker's data folder, so that a restart is known to be one
    incarnation   INTEGER NOT NULL,             -- counts its starts; a heartbeat of an older one is refused
    models        TEXT    NOT NULL,             -- JSON array of the names of its base models
    devices       TEXT    NOT NULL,             -- JSON array of descriptions
    registered_at INTEGER NOT NULL,             -- ms since the epoch
    expires_at    INTEGER NOT NULL              -- ms since the epoch; without a heartbeat until then it is taken for dead
, engine TEXT) STRICT;
CREATE TABLE base_models (
    name        TEXT NOT NULL PRIMARY KEY, -- that clients use
    description TEXT NOT NULL              -- JSON of BaseModel
) STRICT;
CREATE TABLE base_model_files (
    model   TEXT NOT NULL REFERENCES base_models (name), -- whose tokenizer or configuration it is
    name    TEXT NOT NULL,                               -- of the file
    content BLOB NOT NULL,                               -- of the file
    PRIMARY KEY (model, name)
) STRICT;
CREATE TABLE loads (
    request_id TEXT    NOT NULL PRIMARY KEY REFERENCES requests (id) ON DELETE CASCADE, -- the load
    dir        TEXT    NOT NULL                                                         -- the folder, in the storage
) STRICT;
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY, -- what it is for
    value BLOB NOT NULL              -- random bytes
) STRICT;
CREATE TABLE IF NOT EXISTS "rate_limits" (
    tenant TEXT   NOT NULL PRIMARY KEY, -- whose
    units  INTEGER NOT NULL,             -- 60,000 are a token; below zero is a debt
    at     INTEGER NOT NULL              -- ms since the epoch; when that was so
) STRICT;
CREATE TABLE worker_numerics (
    worker_id  TEXT NOT NULL REFERENCES workers (id) ON DELETE CASCADE, -- whose registration it belongs to
    model      TEXT NOT NULL, -- name of the base model
    weights    TEXT NOT NULL, -- digest of its weights
    arithmetic TEXT NOT NULL, -- how it computes: type, kernels, layout and version
    PRIMARY KEY (worker_id, model)
) STRICT;
CREATE TABLE schema_compatibility (
    oldest_program INTEGER NOT NULL -- the schema version of the oldest one; a later migration that only adds leaves it alone
) STRICT;
INSERT INTO schema_compatibility VALUES(20);
CREATE TABLE backup_holds (
    id         TEXT    NOT NULL PRIMARY KEY, -- random UUID
    expires_at INTEGER NOT NULL              -- ms since the epoch, by the database's clock; a backup extends it as long as it copies
) STRICT;
CREATE TABLE organisations (
    name        TEXT    NOT NULL PRIMARY KEY, -- the tenant
    operator    INTEGER NOT NULL DEFAULT 0 CHECK (operator IN (0, 1)), -- 1: its admins manage all organisations
    created_at  INTEGER NOT NULL              -- ms since the epoch
, display_name TEXT NOT NULL DEFAULT '', disabled_at INTEGER, weight INTEGER CHECK (weight BETWEEN 1 AND 1000), max_runs INTEGER CHECK (max_runs >= 1), max_queued_tokens INTEGER CHECK (max_queued_tokens >= 1), tokens_per_minute INTEGER CHECK (tokens_per_minute >= 1), max_storage_bytes INTEGER CHECK (max_storage_bytes >= 1), max_queued_requests INTEGER CHECK (max_queued_requests >= 1), max_queued_bytes INTEGER CHECK (max_queued_bytes >= 1)) STRICT;
CREATE TABLE projects (
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- whose
    id           TEXT    NOT NULL,            -- as sessions name it
    name         TEXT    NOT NULL,            -- for people
    created_at   INTEGER NOT NULL,            -- ms since the epoch
    PRIMARY KEY (organisation, id)
) STRICT;
CREATE TABLE users (
    id           TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- whose
    email        TEXT    NOT NULL,            -- names the user within the organisation
    name         TEXT    NOT NULL,            -- for people
    role         TEXT    NOT NULL CHECK (role IN ('admin', 'member', 'read-only')), -- the most that the user's keys allow
    created_at   INTEGER NOT NULL,            -- ms since the epoch
    disabled_at  INTEGER,                     -- ms since the epoch; none of the user's keys is accepted while it is set
    UNIQUE (organisation, email)
) STRICT;
CREATE TABLE api_keys (
    id           INTEGER NOT NULL PRIMARY KEY, -- random, below 2^53
    digest       BLOB    NOT NULL UNIQUE,     -- SHA-256 of the key, which is stored nowhere
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- the tenant of its requests
    user_id      TEXT    REFERENCES users (id), -- whose it is; NULL for one of the organisation's programs
    name         TEXT    NOT NULL,            -- for people
    note         TEXT    NOT NULL,            -- for people
    hint         TEXT    NOT NULL,            -- its first characters
    role         TEXT    NOT NULL CHECK (role IN ('admin', 'member', 'read-only')), -- the most that it allows
    scopes       TEXT,                        -- JSON array of the scopes that it is cut to; NULL for all of its role
    created_at   INTEGER NOT NULL,            -- ms since the epoch
    expires_at   INTEGER,                     -- ms since the epoch; NULL is never
    revoked_at   INTEGER                      -- ms since the epoch
) STRICT;
CREATE TABLE audit_log (
    id           TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    at           INTEGER NOT NULL,            -- ms since the epoch
    organisation TEXT    NOT NULL,            -- whose objects were concerned
    category     TEXT    NOT NULL CHECK (category IN ('checkpoints', 'projects', 'teams', 'organizations')), -- kind of object
    event        TEXT    NOT NULL,            -- such as 'checkpoint_delete'
    subject      TEXT    NOT NULL,            -- id, name or path of the object
    details      TEXT    NOT NULL,            -- JSON object
    actor        TEXT    NOT NULL,            -- who did it, in words
    key_id       INTEGER,                     -- the API key that was used, where the store has it
    request_id   TEXT,                        -- x-request-id of the call
    address      TEXT                         -- where the call came from
) STRICT;
CREATE TABLE usage (
    request_id  TEXT    NOT NULL PRIMARY KEY, -- the request, which succeeded
    tenant      TEXT    NOT NULL,             -- owner
    at          INTEGER NOT NULL,             -- ms since the epoch; when it ended
    kind        TEXT    NOT NULL,             -- RequestKind
    base_model  TEXT    NOT NULL,             -- name
    session_id  TEXT    NOT NULL,             -- of the run or sampling session
    project_id  TEXT,                         -- of the session, at that time
    user_id     TEXT,                         -- of the session
    trained     INTEGER NOT NULL,             -- tokens of the examples of a forward or backward pass
    prefill     INTEGER NOT NULL,             -- tokens of a prompt that were computed
    cached      INTEGER NOT NULL,             -- tokens of a prompt that the prefix cache had
    sampled     INTEGER NOT NULL              -- tokens that were generated
) STRICT;
CREATE TABLE stored_checkpoints (
    run_id     TEXT    NOT NULL,              -- first part of the checkpoint's path
    kind       TEXT    NOT NULL,              -- second part
    name       TEXT    NOT NULL,              -- third part
    from_at    INTEGER NOT NULL,              -- ms since the epoch; when it was registered
    to_at      INTEGER,                       -- ms since the epoch; when it was deleted or replaced
    tenant     TEXT    NOT NULL,              -- owner
    base_model TEXT    NOT NULL,              -- name
    session_id TEXT    NOT NULL,              -- of the run
    project_id TEXT,                          -- of the session, at that time
    user_id    TEXT,                          -- of the session
    size_bytes INTEGER NOT NULL,              -- of all its files
    PRIMARY KEY (run_id, kind, name, from_at)
) STRICT;
CREATE TABLE custom_losses (
    id         TEXT    NOT NULL PRIMARY KEY, -- '<session_id>:loss:<seq_id>'
    tenant     TEXT    NOT NULL,             -- owner
    session_id TEXT    NOT NULL REFERENCES sessions (id), -- where it can be used
    seq_id     INTEGER NOT NULL,             -- the client's number within the session
    definition BLOB    NOT NULL,             -- JSON: name, inputs and graph, as they were checked
    created_at INTEGER NOT NULL,             -- ms since the epoch
    UNIQUE (session_id, seq_id)
) STRICT;
CREATE TABLE uploads (
    id         TEXT    NOT NULL PRIMARY KEY, -- a time-ordered UUID
    tenant     TEXT    NOT NULL,             -- owner
    spec       TEXT    NOT NULL,             -- JSON of RunSpec: what the adapter has to be
    project_id TEXT,                         -- of the checkpoint's session
    dir        TEXT    NOT NULL UNIQUE,      -- the folder of its pieces
    totals     TEXT    NOT NULL,             -- JSON object: bytes of each file whose size is known
    bytes      INTEGER NOT NULL,             -- of all files, as far as they are known; counts against the storage quota while it is open
    run_id     TEXT,                         -- the run that checks it; its files can't be changed any more
    path       TEXT,                         -- the checkpoint that it became
    failure    TEXT,                         -- JSON of OpError: why it was refused
    created_at INTEGER NOT NULL,             -- ms since the epoch
    expires_at INTEGER NOT NULL              -- ms since the epoch: it is deleted then, with what arrived
, checked_by TEXT) STRICT;
CREATE TABLE upload_pieces (
    upload_id TEXT    NOT NULL REFERENCES uploads (id), -- its upload
    file      TEXT    NOT NULL,             -- the file that it is a part of
    start     INTEGER NOT NULL,             -- offset of its first byte in the file
    length    INTEGER NOT NULL,             -- bytes
    name      TEXT    NOT NULL,             -- its file in the upload's folder
    PRIMARY KEY (upload_id, file, start)
) STRICT;
CREATE TABLE run_metrics (
    run_id  TEXT    NOT NULL REFERENCES runs (id), -- the run
    step    INTEGER NOT NULL,                      -- optimizer steps of the run before this request
    seq_id  INTEGER NOT NULL,                      -- of the request
    tenant  TEXT    NOT NULL,                      -- owner
    kind    TEXT    NOT NULL,                      -- RequestKind
    at      INTEGER NOT NULL,                      -- ms since the epoch; when it ended
    metrics TEXT    NOT NULL,                      -- JSON: numbers by name, null for what is not finite
    PRIMARY KEY (run_id, step, seq_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE run_samples (
    run_id              TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE, -- whose weights sampled it
    at                  INTEGER NOT NULL, -- ms since the epoch; when it ended
    request_id          TEXT    NOT NULL, -- the sample
    tenant              TEXT    NOT NULL, -- owner
    sampling_session_id TEXT    NOT NULL, -- where it was sampled
    size_bytes          INTEGER NOT NULL, -- of the content
    content             BLOB    NOT NULL, -- prompt, tokens and log-probabilities; see server/src/wire/run_samples.rs
    PRIMARY KEY (run_id, at, request_id)
) STRICT;
CREATE TABLE ended_browser_sessions (
    token_id   TEXT    NOT NULL PRIMARY KEY, -- of the session's token
    expires_at INTEGER NOT NULL              -- ms since the epoch; when the token ends by itself
) STRICT, WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('requests',4);
CREATE UNIQUE INDEX sessions_idempotency ON sessions (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX sessions_by_tenant ON sessions (tenant, created_at, id);
CREATE INDEX runs_by_tenant ON runs (tenant, created_at, id);
CREATE INDEX sampling_sessions_by_request ON sampling_sessions (request_id) WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX requests_of_run ON requests (run_id, seq_id) WHERE run_id IS NOT NULL;
CREATE UNIQUE INDEX requests_of_sampling_session ON requests (sampling_session_id, seq_id) WHERE sampling_session_id IS NOT NULL;
CREATE UNIQUE INDEX requests_events ON requests (sampling_session_id, clone, event) WHERE event IS NOT NULL;
CREATE INDEX requests_of_session ON requests (session_id, finished_at);
CREATE INDEX checkpoints_expiring ON checkpoints (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX runs_by_worker ON runs (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX runs_unowned ON runs (base_model) WHERE worker_id IS NULL;
CREATE INDEX requests_by_worker ON requests (worker_id) WHERE worker_id IS NOT NULL AND finished_at IS NULL;
CREATE INDEX requests_unfinished ON requests (run_id, sampling_session_id) WHERE finished_at IS NULL;
CREATE INDEX requests_droppable ON requests (finished_at) WHERE finished_at IS NOT NULL AND NOT dropped;
CREATE INDEX requests_acknowledged ON requests (acknowledged_at) WHERE acknowledged_at IS NOT NULL AND NOT dropped;
CREATE INDEX sessions_silent ON sessions (last_seen_at) WHERE status = 'active';
CREATE INDEX loads_by_dir ON loads (dir);
CREATE INDEX checkpoints_by_dir ON checkpoints (dir);
CREATE INDEX sampling_sessions_by_dir ON sampling_sessions (checkpoint_dir) WHERE checkpoint_dir IS NOT NULL;
CREATE INDEX sampling_sessions_by_snapshot ON sampling_sessions (snapshot_dir) WHERE snapshot_dir IS NOT NULL;
CREATE INDEX runs_by_snapshot ON runs (snapshot_dir) WHERE snapshot_dir IS NOT NULL;
CREATE INDEX requests_open_tokens ON requests (tenant, tokens) WHERE finished_at IS NULL;
CREATE INDEX sessions_uncollected ON sessions (ended_at) WHERE ended_at IS NOT NULL AND NOT collected;
CREATE INDEX sessions_active ON sessions (tenant) WHERE status = 'active';
CREATE INDEX sampling_sessions_by_key ON sampling_sessions (session_id, snapshot, seq_id) WHERE snapshot IS NOT NULL;
CREATE INDEX requests_storing ON requests (tenant) WHERE finished_at IS NULL AND stores IS NOT NULL;
CREATE INDEX requests_queued_training ON requests (tenant, run_id, seq_id, payload_bytes) WHERE finished_at IS NULL AND run_id IS NOT NULL;
CREATE INDEX sampling_sessions_of_run ON sampling_sessions (run_id, collected, snapshot_dir) WHERE run_id IS NOT NULL;
CREATE INDEX requests_sampled ON requests (sampling_session_id, finished_at) WHERE event IS NOT NULL;
CREATE INDEX api_keys_of_organisation ON api_keys (organisation, created_at);
CREATE INDEX api_keys_of_user ON api_keys (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX audit_log_of_organisation ON audit_log (organisation, at, id);
CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is appended only');
END;
CREATE TRIGGER audit_log_is_not_deleted BEFORE DELETE ON audit_log
BEGIN
    SELECT RAISE(ABORT, 'the audit log is appended only');
END;
CREATE INDEX usage_of_tenant ON usage (tenant, at, request_id);
CREATE INDEX stored_checkpoints_of_tenant ON stored_checkpoints (tenant, to_at);
CREATE INDEX sessions_by_project ON sessions (tenant, project_id, created_at, id) WHERE project_id IS NOT NULL;
CREATE INDEX requests_recorded ON requests (recorded_at) WHERE recorded_at IS NOT NULL AND NOT dropped;
CREATE INDEX uploads_by_tenant ON uploads (tenant, created_at);
CREATE INDEX uploads_expiring ON uploads (expires_at);
CREATE INDEX checkpoints_by_tenant ON checkpoints (tenant, created_at, run_id, kind, name);
CREATE INDEX checkpoints_public ON checkpoints (created_at, run_id, kind, name) WHERE public;
CREATE INDEX uploads_by_run ON uploads (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX requests_failed ON requests (tenant, finished_at) WHERE state = 'failed';
CREATE INDEX run_samples_by_tenant ON run_samples (tenant, size_bytes);
CREATE INDEX ended_browser_sessions_by_end ON ended_browser_sessions (expires_at);
COMMIT;

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = on;
CREATE FUNCTION public.required_scope() RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    AS $$
DECLARE
    scope text := current_setting('trainyard.scope', true);
BEGIN
    IF coalesce(scope, '') = '' THEN
        -- A program from before this migration takes this code for an outage, and changes nothing until it stops.
        RAISE EXCEPTION 'trainyard.scope is not set: rows of tenants are not accessible' USING ERRCODE = '58000';
    END IF;
    RETURN scope;
END
$$;
CREATE FUNCTION public.is_system_scope() RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (public.required_scope() = 'system'::text);
CREATE FUNCTION public.refuse_change_of_audit_log() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is appended only';
END
$$;
CREATE FUNCTION public.tenants_in_scope() RETURNS text[]
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN starts_with(current_setting('trainyard.scope'::text, true), '{'::text) THEN (current_setting('trainyard.scope'::text, true))::text[] ELSE NULL::text[] END;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public._sqlx_migrations (
    version bigint NOT NULL,
    description text NOT NULL,
    installed_on timestamp with time zone DEFAULT now() NOT NULL,
    success boolean NOT NULL,
    checksum bytea NOT NULL,
    execution_time bigint NOT NULL
);
CREATE TABLE public.api_keys (
    id bigint NOT NULL,
    digest bytea NOT NULL,
    organisation text NOT NULL,
    user_id text,
    name text NOT NULL,
    note text NOT NULL,
    hint text NOT NULL,
    role text NOT NULL,
    scopes text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    CONSTRAINT api_keys_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text, 'read-only'::text])))
);
ALTER TABLE ONLY public.api_keys FORCE ROW LEVEL SECURITY;
CREATE TABLE public.audit_log (
    id text NOT NULL,
    at bigint NOT NULL,
    organisation text NOT NULL,
    category text NOT NULL,
    event text NOT NULL,
    subject text NOT NULL,
    details text NOT NULL,
    actor text NOT NULL,
    key_id bigint,
    request_id text,
    address text,
    CONSTRAINT audit_log_category_check CHECK ((category = ANY (ARRAY['checkpoints'::text, 'projects'::text, 'teams'::text, 'organizations'::text])))
);
ALTER TABLE ONLY public.audit_log FORCE ROW LEVEL SECURITY;
CREATE TABLE public.backup_holds (
    id text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.base_model_files (
    model text NOT NULL,
    name text NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE public.base_models (
    name text NOT NULL,
    description text NOT NULL
);
CREATE TABLE public.checkpoints (
    run_id text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    tenant text NOT NULL,
    spec text NOT NULL,
    dir text NOT NULL,
    size_bytes bigint NOT NULL,
    public boolean DEFAULT false NOT NULL,
    user_metadata text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    CONSTRAINT checkpoints_kind_check CHECK ((kind = ANY (ARRAY['weights'::text, 'sampler_weights'::text, 'external_weights'::text])))
);
ALTER TABLE ONLY public.checkpoints FORCE ROW LEVEL SECURITY;
CREATE TABLE public.custom_losses (
    id text NOT NULL,
    tenant text NOT NULL,
    session_id text NOT NULL,
    seq_id bigint NOT NULL,
    definition bytea NOT NULL,
    created_at bigint NOT NULL
);
ALTER TABLE ONLY public.custom_losses FORCE ROW LEVEL SECURITY;
CREATE TABLE public.ended_browser_sessions (
    token_id text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE public.loads (
    request_id text NOT NULL,
    dir text NOT NULL
);
ALTER TABLE ONLY public.loads FORCE ROW LEVEL SECURITY;
CREATE TABLE public.organisations (
    name text NOT NULL,
    operator boolean DEFAULT false NOT NULL,
    created_at bigint NOT NULL,
    display_name text DEFAULT ''::text NOT NULL,
    disabled_at bigint,
    weight bigint,
    max_runs bigint,
    max_queued_tokens bigint,
    tokens_per_minute bigint,
    max_storage_bytes bigint,
    max_queued_requests bigint,
    max_queued_bytes bigint,
    CONSTRAINT organisations_max_queued_bytes_check CHECK ((max_queued_bytes >= 1)),
    CONSTRAINT organisations_max_queued_requests_check CHECK ((max_queued_requests >= 1)),
    CONSTRAINT organisations_max_queued_tokens_check CHECK ((max_queued_tokens >= 1)),
    CONSTRAINT organisations_max_runs_check CHECK ((max_runs >= 1)),
    CONSTRAINT organisations_max_storage_bytes_check CHECK ((max_storage_bytes >= 1)),
    CONSTRAINT organisations_tokens_per_minute_check CHECK ((tokens_per_minute >= 1)),
    CONSTRAINT organisations_weight_check CHECK (((weight >= 1) AND (weight <= 1000)))
);
ALTER TABLE ONLY public.organisations FORCE ROW LEVEL SECURITY;
CREATE TABLE public.projects (
    organisation text NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    created_at bigint NOT NULL
);
ALTER TABLE ONLY public.projects FORCE ROW LEVEL SECURITY;
CREATE TABLE public.rate_limits (
    tenant text NOT NULL,
    units bigint NOT NULL,
    at bigint NOT NULL
);
ALTER TABLE ONLY public.rate_limits FORCE ROW LEVEL SECURITY;
CREATE TABLE public.requests (
    arrival bigint NOT NULL,
    id text NOT NULL,
    tenant text NOT NULL,
    session_id text NOT NULL,
    run_id text,
    sampling_session_id text,
    seq_id bigint NOT NULL,
    kind text NOT NULL,
    num_samples bigint DEFAULT 0 NOT NULL,
    fingerprint bytea NOT NULL,
    state text NOT NULL,
    payload bytea,
    payload_file text,
    encoding text,
    result bytea,
    result_file text,
    result_size bigint DEFAULT 0 NOT NULL,
    error text,
    replays boolean DEFAULT false NOT NULL,
    event bigint,
    clone bigint,
    dropped boolean DEFAULT false NOT NULL,
    acknowledged_at bigint,
    created_at bigint NOT NULL,
    finished_at bigint,
    worker_id text,
    claim bigint DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL,
    crash_count bigint DEFAULT 0 NOT NULL,
    isolated_starts bigint DEFAULT 0 NOT NULL,
    stores text,
    payload_bytes bigint DEFAULT 0 NOT NULL,
    recorded_at bigint,
    CONSTRAINT requests_check CHECK (((run_id IS NULL) <> (sampling_session_id IS NULL))),
    CONSTRAINT requests_check1 CHECK (((state = ANY (ARRAY['queued'::text, 'running'::text])) = (finished_at IS NULL))),
    CONSTRAINT requests_encoding_check CHECK ((encoding = ANY (ARRAY['json'::text, 'protobuf'::text]))),
    CONSTRAINT requests_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'succeeded'::text, 'failed'::text, 'cancelled'::text])))
);
ALTER TABLE ONLY public.requests FORCE ROW LEVEL SECURITY;
ALTER TABLE public.requests ALTER COLUMN arrival ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.requests_arrival_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.run_metrics (
    run_id text NOT NULL,
    step bigint NOT NULL,
    seq_id bigint NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    at bigint NOT NULL,
    metrics text NOT NULL
);
ALTER TABLE ONLY public.run_metrics FORCE ROW LEVEL SECURITY;
CREATE TABLE public.run_samples (
    run_id text NOT NULL,
    at bigint NOT NULL,
    request_id text NOT NULL,
    tenant text NOT NULL,
    sampling_session_id text NOT NULL,
    size_bytes bigint NOT NULL,
    content bytea NOT NULL
);
ALTER TABLE ONLY public.run_samples FORCE ROW LEVEL SECURITY;
CREATE TABLE public.runs (
    id text NOT NULL,
    tenant text NOT NULL,
    session_id text NOT NULL,
    model_seq_id bigint NOT NULL,
    spec text NOT NULL,
    state text NOT NULL,
    failure text,
    corrupted boolean DEFAULT false NOT NULL,
    user_metadata text NOT NULL,
    created_at bigint NOT NULL,
    last_request_at bigint NOT NULL,
    base_model text DEFAULT ''::text NOT NULL,
    worker_id text,
    epoch bigint DEFAULT 0 NOT NULL,
    snapshot_seq bigint,
    snapshot_dir text,
    memory_wait text,
    weights text,
    arithmetic text,
    numerics_changes text,
    listed boolean DEFAULT true NOT NULL,
    imported_from text,
    CONSTRAINT runs_state_check CHECK ((state = ANY (ARRAY['creating'::text, 'ready'::text, 'failed'::text])))
);
ALTER TABLE ONLY public.runs FORCE ROW LEVEL SECURITY;
CREATE TABLE public.sampling_sessions (
    id text NOT NULL,
    tenant text NOT NULL,
    session_id text NOT NULL,
    seq_id bigint NOT NULL,
    base_model text NOT NULL,
    model_path text,
    checkpoint_dir text,
    snapshot text,
    run_id text,
    request_id text,
    created_at bigint NOT NULL,
    snapshot_dir text,
    collected boolean DEFAULT false NOT NULL,
    clones bigint DEFAULT 0 NOT NULL,
    weights_of text
);
ALTER TABLE ONLY public.sampling_sessions FORCE ROW LEVEL SECURITY;
CREATE TABLE public.schema_compatibility (
    oldest_program bigint NOT NULL
);
CREATE TABLE public.secrets (
    name text NOT NULL,
    value bytea NOT NULL
);
CREATE TABLE public.sessions (
    id text NOT NULL,
    tenant text NOT NULL,
    idempotency_key text,
    tags text NOT NULL,
    user_metadata text NOT NULL,
    sdk_version text NOT NULL,
    project_id text,
    display_name text,
    status text NOT NULL,
    finish_reason text,
    finish_detail text,
    created_at bigint NOT NULL,
    ended_at bigint,
    last_seen_at bigint DEFAULT 0 NOT NULL,
    collected boolean DEFAULT false NOT NULL,
    user_id text,
    CONSTRAINT sessions_check CHECK (((status = 'active'::text) = (ended_at IS NULL))),
    CONSTRAINT sessions_check1 CHECK (((status = 'finished'::text) = (finish_reason IS NOT NULL))),
    CONSTRAINT sessions_finish_reason_check CHECK ((finish_reason = ANY (ARRAY['success'::text, 'errored'::text, 'interrupted'::text]))),
    CONSTRAINT sessions_status_check CHECK ((status = ANY (ARRAY['active'::text, 'finished'::text, 'expired'::text])))
);
ALTER TABLE ONLY public.sessions FORCE ROW LEVEL SECURITY;
CREATE TABLE public.stored_checkpoints (
    run_id text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    from_at bigint NOT NULL,
    to_at bigint,
    tenant text NOT NULL,
    base_model text NOT NULL,
    session_id text NOT NULL,
    project_id text,
    user_id text,
    size_bytes bigint NOT NULL
);
ALTER TABLE ONLY public.stored_checkpoints FORCE ROW LEVEL SECURITY;
CREATE TABLE public.upload_pieces (
    upload_id text NOT NULL,
    file text NOT NULL,
    start bigint NOT NULL,
    length bigint NOT NULL,
    name text NOT NULL
);
ALTER TABLE ONLY public.upload_pieces FORCE ROW LEVEL SECURITY;
CREATE TABLE public.uploads (
    id text NOT NULL,
    tenant text NOT NULL,
    spec text NOT NULL,
    project_id text,
    dir text NOT NULL,
    totals text NOT NULL,
    bytes bigint NOT NULL,
    run_id text,
    path text,
    failure text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    checked_by text
);
ALTER TABLE ONLY public.uploads FORCE ROW LEVEL SECURITY;
CREATE TABLE public.usage (
    request_id text NOT NULL,
    tenant text NOT NULL,
    at bigint NOT NULL,
    kind text NOT NULL,
    base_model text NOT NULL,
    session_id text NOT NULL,
    project_id text,
    user_id text,
    trained bigint NOT NULL,
    prefill bigint NOT NULL,
    cached bigint NOT NULL,
    sampled bigint NOT NULL
);
ALTER TABLE ONLY public.usage FORCE ROW LEVEL SECURITY;
CREATE TABLE public.users (
    id text NOT NULL,
    organisation text NOT NULL,
    email text NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    created_at bigint NOT NULL,
    disabled_at bigint,
    CONSTRAINT users_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'member'::text, 'read-only'::text])))
);
ALTER TABLE ONLY public.users FORCE ROW LEVEL SECURITY;
CREATE TABLE public.worker_numerics (
    worker_id text NOT NULL,
    model text NOT NULL,
    weights text NOT NULL,
    arithmetic text NOT NULL
);
CREATE TABLE public.workers (
    id text NOT NULL,
    incarnation bigint NOT NULL,
    models text NOT NULL,
    devices text NOT NULL,
    registered_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    engine text
);
INSERT INTO public._sqlx_migrations VALUES (1, 'sessions', '2026-11-26 00:00:00+00', true, '\xe009010c1caaf6141e0ad5fc2f518c37ca967e3b57ac96d174623a92666f9caa420e4d590a85e12d7be82f0bfd66e51b', 0);
INSERT INTO public._sqlx_migrations VALUES (2, 'runs', '2026-11-26 00:00:00+00', true, '\xe0f4894b3f23fb9f876a8cda899fc8f350647881aa79cbd51509d4c5b592f4288a789b0212f2b3c6bf1b624c1709b3fd', 0);
INSERT INTO public._sqlx_migrations VALUES (3, 'sampling sessions', '2026-11-26 00:00:00+00', true, '\x0a5b94beace543801de1f9f4ee7d9865cbedf492994530f3cc5bf898cda547b9b7e1cf0d28e0bd3f539dc5a26ea40fdf', 0);
INSERT INTO public._sqlx_migrations VALUES (4, 'requests', '2026-11-26 00:00:00+00', true, '\x0d5f85cbd7a38142b1743ad0fc7c605e482c20cdc930763ee2e76ff0b2d57dafb4c66b67ea29ac27ef5fec7b9a179b61', 0);
INSERT INTO public._sqlx_migrations VALUES (5, 'checkpoints', '2026-11-26 00:00:00+00', true, '\x99ce751e4b21116bce13a686619e3913d46c63f11e55e2e86f913dd87d8f71de2a96de41b555d6d7cb6e422910f8e6c3', 0);
INSERT INTO public._sqlx_migrations VALUES (6, 'workers', '2026-11-26 00:00:00+00', true, '\x1e40c8943025266b91c32b6ad8234ac7e614e8906e244bf56d7ee3cbbb297986a328eac61bbc5442caf2a32fe3dde9dd', 0);
INSERT INTO public._sqlx_migrations VALUES (7, 'leases', '2026-11-26 00:00:00+00', true, '\xadb63b2c62aaa4a4fe8cb4d9df32f15da4c51349bfa414e342bcf1e7433b4543ef9e4294fd0c212ded56d52beff865b1', 0);
INSERT INTO public._sqlx_migrations VALUES (8, 'storage', '2026-11-26 00:00:00+00', true, '\xabc0eff8c02d3384fb79291e1ca60ace51b6187272561a518fe60a4e994c2e95473864d01df133b738e04bd1d2ab5f40', 0);
INSERT INTO public._sqlx_migrations VALUES (9, 'quotas', '2026-11-26 00:00:00+00', true, '\x3a6f18e88b9a50f8541c782dd4d70ff3cc4731f5c94b797e78c6bd318b4428637b1c17dfc8778d6393d9c14e1eff528b', 0);
INSERT INTO public._sqlx_migrations VALUES (10, 'secrets', '2026-11-26 00:00:00+00', true, '\xf0d340b4b7e03b53a6285f70b293ae73d7525662daac0a07dc9e6e0b039d5eef713d8e528b66a70fa805f28fed7e13c7', 0);
INSERT INTO public._sqlx_migrations VALUES (11, 'paces', '2026-11-26 00:00:00+00', true, '\xe760aefb8c94a1a812426a0f8806c182c48790e53a0ed4097c1edb63494813e00c78e6c7cb7385fcd9e3bf3de63cf7a8', 0);
INSERT INTO public._sqlx_migrations VALUES (12, 'suspects', '2026-11-26 00:00:00+00', true, '\x1629a0c8e0f538d9ab79541a3c195589fab96c8701a78ff1680ac9b3e7b73dca3c64c85c6926e9311d478e3bb68a2b5c', 0);
INSERT INTO public._sqlx_migrations VALUES (13, 'rate limits and crash counts', '2026-11-26 00:00:00+00', true, '\x27396eaed3429f7b61c3a99c3513c219657a55b751de0c9b06180773ddb30794415316972fa70836773323bc87d1a897', 0);
INSERT INTO public._sqlx_migrations VALUES (14, 'row retention', '2026-11-26 00:00:00+00', true, '\x9588158957e68a59097f8110c9ae3f7595b301427e340ac9b77a29088685eed3f4b0e6e7382a5a4b98a62c0df190ba98', 0);
INSERT INTO public._sqlx_migrations VALUES (15, 'pending saves', '2026-11-26 00:00:00+00', true, '\xe296dab02ddcf0ffe4ec9e6b2abfab737ffa10964f4572e0ccd0e803db066506b1b2a901d7dc3dbc84c03e5c38e53004', 0);
INSERT INTO public._sqlx_migrations VALUES (16, 'memory waits', '2026-11-26 00:00:00+00', true, '\xaa42820e964ffbd4715997ca10ec9d4990df68bfac111da398464e5d22e51dc1139469e6c650c360626c933eb58c32fb', 0);
INSERT INTO public._sqlx_migrations VALUES (17, 'training queue', '2026-11-26 00:00:00+00', true, '\x109433af8310574ca4217aaeb9e93cd442927e6c8d01ee1037ffa53916764937937c5ed3a058941f53d0eb4730c678f7', 0);
INSERT INTO public._sqlx_migrations VALUES (18, 'collected snapshots', '2026-11-26 00:00:00+00', true, '\x1ad3a8dd9c27b7f00c6f34e621d62ed7ff519e4ec0340542990b733293197e20bd68d921336907717b0aef38a2598c1e', 0);
INSERT INTO public._sqlx_migrations VALUES (19, 'numerics', '2026-11-26 00:00:00+00', true, '\x7df33b3b8e949733db07a10e0842ef9b8c07360e28176554ac8c68d479c062120631d56eb1b2783c31cd5413e03b6098', 0);
INSERT INTO public._sqlx_migrations VALUES (20, 'schema compatibility', '2026-11-26 00:00:00+00', true, '\x2a3f4d37fdeea5cc251bb4340577d2c96838bf42772fd032a26635c01c87d0ee7e71ef167f52d96b39991e47310ce373', 0);
INSERT INTO public._sqlx_migrations VALUES (21, 'backup holds', '2026-11-26 00:00:00+00', true, '\x385665825ff3fa013d54bdbd3844f87a786e0b318ccc8e05ec2ac1bf7d9b206347cedfed9fec295df397920e0ab0f13b', 0);
INSERT INTO public._sqlx_migrations VALUES (22, 'tenants', '2026-11-26 00:00:00+00', true, '\xeca912e79b49e722aa1c100ec39d6a14de041d5c0a789d839b40e1492e34aaea951668cff377bef7910cc6dd51fb2964', 0);
INSERT INTO public._sqlx_migrations VALUES (23, 'usage', '2026-11-26 00:00:00+00', true, '\x91bb476ec7e1a5eba1c80d23fa71ec5a0c36b4132b59e4a8519e8c0b116c8d3e96f32b398f2cfa36f8a51d1c8b2f2b80', 0);
INSERT INTO public._sqlx_migrations VALUES (24, 'copies and scopes', '2026-11-26 00:00:00+00', true, '\x57abb60e95ef20807cc61b122982a40e3bc1cde3c26b5637c9e713f1cce1fff3902f39b11c6e96ae34cb58588907cb99', 0);
INSERT INTO public._sqlx_migrations VALUES (25, 'recorded samples', '2026-11-26 00:00:00+00', true, '\x285f95dff92531a3f6317ebd051dab9107b19ca779fcfd93291343102c80006769c321719d10e1546373074b3d36a7db', 0);
INSERT INTO public._sqlx_migrations VALUES (26, 'custom losses', '2026-11-26 00:00:00+00', true, '\xf124ceb7d9ae4875194b9cccce6d510cf4d7a8adf0e3a47bd2ac8eb578755d040ab5c3a04be3be3ba9b6598a417a9eb7', 0);
INSERT INTO public._sqlx_migrations VALUES (27, 'uploads', '2026-11-26 00:00:00+00', true, '\xb503822f55d81718877403671c4a6981539f34a2d234841d9388f4698ecc1d74e93f38b6c18043611b3217cb1f15f143', 0);
INSERT INTO public._sqlx_migrations VALUES (28, 'row-level security', '2026-11-26 00:00:00+00', true, '\x58f4de79da1c00b2b9e65360ccece138fb5dfb3943caa9d7e091b75f0322b84cdd63ecb9325ac3c65a60b1d326111dfd', 0);
INSERT INTO public._sqlx_migrations VALUES (29, 'organisation limits', '2026-11-26 00:00:00+00', true, '\xcd45bff76adbcfbc56b923055659e7c33cbfe6de51233a0e66866ce1c67346ca6a505c670c6ef722ede2f5688e1adbfe', 0);
INSERT INTO public._sqlx_migrations VALUES (30, 'run_metrics', '2026-11-26 00:00:00+00', true, '\x6eb76a4de17f7c55ed23a2b1f8d1d1513dec02371b1d4ecaedeb69cc5f5c9b7250d6ce9cf6ff54e27e2c028ecedcd6b9', 0);
INSERT INTO public._sqlx_migrations VALUES (31, 'run samples', '2026-11-26 00:00:00+00', true, '\x8073d826f97bd7cc41ce809e5fe95c979f2e6e46bd5a966084e678ed9fe4e969c191e922d01bbf1e902390cb3a184d3a', 0);
INSERT INTO public.requests OVERRIDING SYSTEM VALUE VALUES (1, '018bcfe5-6800-7a40-9bb1-f75ab0e3cfa9', 'me', '018bcfe5-6800-7c22-b3db-42096cf57201', '018bcfe5-6800-7c22-b3db-42096cf57201:train:0', NULL, 0, 'create_model', 0, '\x8bd75fb6c9767e06e897679f66faa698c5a35c9de25c3b0eefeb54a037612a2b', 'succeeded', '\x637265617465', NULL, 'json', '\x726573756c742030', NULL, 8, NULL, true, NULL, NULL, false, NULL, 1700000000000, 1700000000000, NULL, 0, 0, 0, 0, NULL, 6, NULL);
INSERT INTO public.requests OVERRIDING SYSTEM VALUE VALUES (2, '018bcfe5-6800-7588-b6a0-837c37ddd445', 'me', '018bcfe5-6800-7c22-b3db-42096cf57201', '018bcfe5-6800-7c22-b3db-42096cf57201:train:0', NULL, 1, 'forward', 0, '\xe9a3bc1ad67b2191b3e0072b0cb343b8817209b731299e8dbc20e8eace2a17d5', 'succeeded', NULL, NULL, 'json', '\x726573756c742031', NULL, 8, NULL, false, NULL, NULL, false, NULL, 1700000000000, 1700000000000, NULL, 0, 10, 0, 0, NULL, 9, NULL);
INSERT INTO public.requests OVERRIDING SYSTEM VALUE VALUES (3, '018bcfe5-6800-7479-ab56-3562e3717f13', 'me', '018bcfe5-6800-7c22-b3db-42096cf57201', '018bcfe5-6800-7c22-b3db-42096cf57201:train:0', NULL, 2, 'forward_backward', 0, '\x8c959778639d2dd86325c59076255c56b00352cd890e292d89dae63855798978', 'queued', '\x7061796c6f61642032', NULL, NULL, NULL, NULL, 0, NULL, false, NULL, NULL, false, NULL, 1700000000000, NULL, NULL, 0, 10, 0, 0, NULL, 9, NULL);
INSERT INTO public.requests OVERRIDING SYSTEM VALUE VALUES (4, '018bcfe5-6800-7507-9682-a5b12b0d2a0c', 'me', '018bcfe5-6800-7c22-b3db-42096cf57201', NULL, '018bcfe5-6800-7c22-b3db-42096cf57201:sample:7', 1, 'sample', 2, '\x6225d5ee4f7fab9b2628b11965d02e15d4941fe51b7aad78f91d556e047fc5a9', 'queued', '\x73616d706c652031', NULL, NULL, NULL, NULL, 0, NULL, false, NULL, NULL, false, NULL, 1700000000000, NULL, NULL, 1, 10, 0, 0, NULL, 8, NULL);
INSERT INTO public.runs VALUES ('018bcfe5-6800-7c22-b3db-42096cf57201:train:0', 'me', '018bcfe5-6800-7c22-b3db-42096cf57201', 0, '{"base_model":"base","lora":{"rank":8,"seed":1,"train_unembed":true,"train_mlp":true,"train_attn":true},"optimizer":{"type":"adamw"}}', 'ready', NULL, false, '{"k":"v"}', 1700000000000, 1700000000000, 'base', NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL);
INSERT INTO public.sampling_sessions VALUES ('018bcfe5-6800-7c22-b3db-42096cf57201:sample:7', 'me', '018bcfe5-6800-7c22-b3db-42096cf57201', 7, 'base', NULL, NULL, NULL, NULL, NULL, 1700000000000, NULL, false, 0, NULL);
INSERT INTO public.schema_compatibility VALUES (31);
INSERT INTO public.sessions VALUES ('018bcfe5-6800-7c22-b3db-42096cf57201', 'me', NULL, '["a"]', '{"k":1}', '0.38.0', NULL, 'name', 'active', NULL, NULL, 1700000000000, NULL, 1700000000000, false, NULL);
SELECT pg_catalog.setval('public.requests_arrival_seq', 4, true);
ALTER TABLE ONLY public._sqlx_migrations
    ADD CONSTRAINT _sqlx_migrations_pkey PRIMARY KEY (version);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.backup_holds
    ADD CONSTRAINT backup_holds_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.base_model_files
    ADD CONSTRAINT base_model_files_pkey PRIMARY KEY (model, name);
ALTER TABLE ONLY public.base_models
    ADD CONSTRAINT base_models_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (run_id, kind, name);
ALTER TABLE ONLY public.custom_losses
    ADD CONSTRAINT custom_losses_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.custom_losses
    ADD CONSTRAINT custom_losses_session_id_seq_id_key UNIQUE (session_id, seq_id);
ALTER TABLE ONLY public.ended_browser_sessions
    ADD CONSTRAINT ended_browser_sessions_pkey PRIMARY KEY (token_id);
ALTER TABLE ONLY public.loads
    ADD CONSTRAINT loads_pkey PRIMARY KEY (request_id);
ALTER TABLE ONLY public.organisations
    ADD CONSTRAINT organisations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (organisation, id);
ALTER TABLE ONLY public.rate_limits
    ADD CONSTRAINT rate_limits_pkey PRIMARY KEY (tenant);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_id_key UNIQUE (id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_pkey PRIMARY KEY (arrival);
ALTER TABLE ONLY public.run_metrics
    ADD CONSTRAINT run_metrics_pkey PRIMARY KEY (run_id, step, seq_id);
ALTER TABLE ONLY public.run_samples
    ADD CONSTRAINT run_samples_pkey PRIMARY KEY (run_id, at, request_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_id_model_seq_id_key UNIQUE (session_id, model_seq_id);
ALTER TABLE ONLY public.sampling_sessions
    ADD CONSTRAINT sampling_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.sampling_sessions
    ADD CONSTRAINT sampling_sessions_session_id_seq_id_key UNIQUE (session_id, seq_id);
ALTER TABLE ONLY public.secrets
    ADD CONSTRAINT secrets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.stored_checkpoints
    ADD CONSTRAINT stored_checkpoints_pkey PRIMARY KEY (run_id, kind, name, from_at);
ALTER TABLE ONLY public.upload_pieces
    ADD CONSTRAINT upload_pieces_pkey PRIMARY KEY (upload_id, file, start);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_dir_key UNIQUE (dir);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (request_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_organisation_email_key UNIQUE (organisation, email);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.worker_numerics
    ADD CONSTRAINT worker_numerics_pkey PRIMARY KEY (worker_id, model);
ALTER TABLE ONLY public.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);
CREATE INDEX api_keys_of_organisation ON public.api_keys USING btree (organisation, created_at);
CREATE INDEX api_keys_of_user ON public.api_keys USING btree (user_id) WHERE (user_id IS NOT NULL);
CREATE INDEX audit_log_of_organisation ON public.audit_log USING btree (organisation, at, id);
CREATE INDEX checkpoints_by_dir ON public.checkpoints USING btree (dir);
CREATE INDEX checkpoints_by_tenant ON public.checkpoints USING btree (tenant, created_at, run_id, kind, name);
CREATE INDEX checkpoints_expiring ON public.checkpoints USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX checkpoints_public ON public.checkpoints USING btree (created_at, run_id, kind, name) WHERE public;
CREATE INDEX ended_browser_sessions_by_end ON public.ended_browser_sessions USING btree (expires_at);
CREATE INDEX loads_by_dir ON public.loads USING btree (dir);
CREATE INDEX requests_acknowledged ON public.requests USING btree (acknowledged_at) WHERE ((acknowledged_at IS NOT NULL) AND (NOT dropped));
CREATE INDEX requests_by_worker ON public.requests USING btree (worker_id) WHERE ((worker_id IS NOT NULL) AND (finished_at IS NULL));
CREATE INDEX requests_droppable ON public.requests USING btree (finished_at) WHERE ((finished_at IS NOT NULL) AND (NOT dropped));
CREATE UNIQUE INDEX requests_events ON public.requests USING btree (sampling_session_id, clone, event) WHERE (event IS NOT NULL);
CREATE INDEX requests_failed ON public.requests USING btree (tenant, finished_at) WHERE (state = 'failed'::text);
CREATE UNIQUE INDEX requests_of_run ON public.requests USING btree (run_id, seq_id) WHERE (run_id IS NOT NULL);
CREATE UNIQUE INDEX requests_of_sampling_session ON public.requests USING btree (sampling_session_id, seq_id) WHERE (sampling_session_id IS NOT NULL);
CREATE INDEX requests_of_session ON public.requests USING btree (session_id, finished_at);
CREATE INDEX requests_open_tokens ON public.requests USING btree (tenant, tokens) WHERE (finished_at IS NULL);
CREATE INDEX requests_queued_training ON public.requests USING btree (tenant, run_id, seq_id, payload_bytes) WHERE ((finished_at IS NULL) AND (run_id IS NOT NULL));
CREATE INDEX requests_recorded ON public.requests USING btree (recorded_at) WHERE ((recorded_at IS NOT NULL) AND (NOT dropped));
CREATE INDEX requests_sampled ON public.requests USING btree (sampling_session_id, finished_at) WHERE (event IS NOT NULL);
CREATE INDEX requests_storing ON public.requests USING btree (tenant) WHERE ((finished_at IS NULL) AND (stores IS NOT NULL));
CREATE INDEX requests_unfinished ON public.requests USING btree (run_id, sampling_session_id) WHERE (finished_at IS NULL);
CREATE INDEX run_samples_by_tenant ON public.run_samples USING btree (tenant, size_bytes);
CREATE INDEX runs_by_snapshot ON public.runs USING btree (snapshot_dir) WHERE (snapshot_dir IS NOT NULL);
CREATE INDEX runs_by_tenant ON public.runs USING btree (tenant, created_at, id);
CREATE INDEX runs_by_worker ON public.runs USING btree (worker_id) WHERE (worker_id IS NOT NULL);
CREATE INDEX runs_unowned ON public.runs USING btree (base_model) WHERE (worker_id IS NULL);
CREATE INDEX sampling_sessions_by_dir ON public.sampling_sessions USING btree (checkpoint_dir) WHERE (checkpoint_dir IS NOT NULL);
CREATE INDEX sampling_sessions_by_key ON public.sampling_sessions USING btree (session_id, snapshot, seq_id) WHERE (snapshot IS NOT NULL);
CREATE INDEX sampling_sessions_by_request ON public.sampling_sessions USING btree (request_id) WHERE (request_id IS NOT NULL);
CREATE INDEX sampling_sessions_by_snapshot ON public.sampling_sessions USING btree (snapshot_dir) WHERE (snapshot_dir IS NOT NULL);
CREATE INDEX sampling_sessions_of_run ON public.sampling_sessions USING btree (run_id, collected, snapshot_dir) WHERE (run_id IS NOT NULL);
CREATE INDEX sessions_active ON public.sessions USING btree (tenant) WHERE (status = 'active'::text);
CREATE INDEX sessions_by_project ON public.sessions USING btree (tenant, project_id, created_at, id) WHERE (project_id IS NOT NULL);
CREATE INDEX sessions_by_tenant ON public.sessions USING btree (tenant, created_at, id);
CREATE UNIQUE INDEX sessions_idempotency ON public.sessions USING btree (tenant, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX sessions_silent ON public.sessions USING btree (last_seen_at) WHERE (status = 'active'::text);
CREATE INDEX sessions_uncollected ON public.sessions USING btree (ended_at) WHERE ((ended_at IS NOT NULL) AND (NOT collected));
CREATE INDEX stored_checkpoints_of_tenant ON public.stored_checkpoints USING btree (tenant, to_at);
CREATE INDEX uploads_by_run ON public.uploads USING btree (run_id) WHERE (run_id IS NOT NULL);
CREATE INDEX uploads_by_tenant ON public.uploads USING btree (tenant, created_at);
CREATE INDEX uploads_expiring ON public.uploads USING btree (expires_at);
CREATE INDEX usage_of_tenant ON public.usage USING btree (tenant, at, request_id);
CREATE TRIGGER audit_log_is_not_changed BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit_log FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_change_of_audit_log();
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_organisation_fkey FOREIGN KEY (organisation) REFERENCES public.organisations(name);
ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.base_model_files
    ADD CONSTRAINT base_model_files_model_fkey FOREIGN KEY (model) REFERENCES public.base_models(name);
ALTER TABLE ONLY public.checkpoints
    ADD CONSTRAINT checkpoints_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.custom_losses
    ADD CONSTRAINT custom_losses_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.loads
    ADD CONSTRAINT loads_request_id_fkey FOREIGN KEY (request_id) REFERENCES public.requests(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_organisation_fkey FOREIGN KEY (organisation) REFERENCES public.organisations(name);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_sampling_session_id_fkey FOREIGN KEY (sampling_session_id) REFERENCES public.sampling_sessions(id);
ALTER TABLE ONLY public.requests
    ADD CONSTRAINT requests_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.run_metrics
    ADD CONSTRAINT run_metrics_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.run_samples
    ADD CONSTRAINT run_samples_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.sampling_sessions
    ADD CONSTRAINT sampling_sessions_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.sampling_sessions
    ADD CONSTRAINT sampling_sessions_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.upload_pieces
    ADD CONSTRAINT upload_pieces_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES public.uploads(id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT users_organisation_fkey FOREIGN KEY (organisation) REFERENCES public.organisations(name);
ALTER TABLE ONLY public.worker_numerics
    ADD CONSTRAINT worker_numerics_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES public.workers(id) ON DELETE CASCADE;
ALTER TABLE public.api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.audit_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.custom_losses ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.loads ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_public ON public.checkpoints FOR SELECT USING ((public AND (( SELECT public.required_scope() AS required_scope) <> ''::text)));
CREATE POLICY of_public ON public.runs FOR SELECT USING ((EXISTS ( SELECT 1
   FROM public.checkpoints
  WHERE ((checkpoints.run_id = runs.id) AND checkpoints.public))));
CREATE POLICY of_tenant ON public.api_keys USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (organisation = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.audit_log USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (organisation = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.checkpoints USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.custom_losses USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.loads USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (EXISTS ( SELECT 1
   FROM public.requests
  WHERE (requests.id = loads.request_id)))));
CREATE POLICY of_tenant ON public.organisations USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (name = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.projects USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (organisation = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.rate_limits USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.requests USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.run_metrics USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.run_samples USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.runs USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.sampling_sessions USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.sessions USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.stored_checkpoints USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.upload_pieces USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (EXISTS ( SELECT 1
   FROM public.uploads
  WHERE (uploads.id = upload_pieces.upload_id)))));
CREATE POLICY of_tenant ON public.uploads USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.usage USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (tenant = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
CREATE POLICY of_tenant ON public.users USING ((( SELECT public.is_system_scope() AS is_system_scope) OR (organisation = ANY (( SELECT public.tenants_in_scope() AS tenants_in_scope)::text[]))));
ALTER TABLE public.organisations ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.rate_limits ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.run_metrics ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.run_samples ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.sampling_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.stored_checkpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.upload_pieces ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.uploads ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.usage ENABLE ROW LEVEL SECURITY;
ALTER TABLE public.users ENABLE ROW LEVEL SECURITY;

-- Who may call, and what was done. The owner of every object, its tenant, is an organisation, by its name.
CREATE TABLE organisations (
    name        TEXT    NOT NULL PRIMARY KEY, -- the tenant
    operator    BOOLEAN NOT NULL DEFAULT FALSE, -- true: its admins manage all organisations
    created_at  BIGINT  NOT NULL              -- ms since the epoch
);

CREATE TABLE projects (
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- whose
    id           TEXT    NOT NULL,            -- as sessions name it
    name         TEXT    NOT NULL,            -- for people
    created_at   BIGINT  NOT NULL,            -- ms since the epoch
    PRIMARY KEY (organisation, id)
);

CREATE TABLE users (
    id           TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- whose
    email        TEXT    NOT NULL,            -- names the user within the organisation
    name         TEXT    NOT NULL,            -- for people
    role         TEXT    NOT NULL CHECK (role IN ('admin', 'member', 'read-only')), -- the most that the user's keys allow
    created_at   BIGINT  NOT NULL,            -- ms since the epoch
    disabled_at  BIGINT,                      -- ms since the epoch; none of the user's keys is accepted while it is set
    UNIQUE (organisation, email)
);

CREATE TABLE api_keys (
    id           BIGINT  NOT NULL PRIMARY KEY, -- random, below 2^53
    digest       BYTEA   NOT NULL UNIQUE,     -- SHA-256 of the key, which is stored nowhere
    organisation TEXT    NOT NULL REFERENCES organisations (name), -- the tenant of its requests
    user_id      TEXT    REFERENCES users (id), -- whose it is; NULL for one of the organisation's programs
    name         TEXT    NOT NULL,            -- for people
    note         TEXT    NOT NULL,            -- for people
    hint         TEXT    NOT NULL,            -- its first characters
    role         TEXT    NOT NULL CHECK (role IN ('admin', 'member', 'read-only')), -- the most that it allows
    scopes       TEXT,                        -- JSON array of the scopes that it is cut to; NULL for all of its role
    created_at   BIGINT  NOT NULL,            -- ms since the epoch
    expires_at   BIGINT,                      -- ms since the epoch; NULL is never
    revoked_at   BIGINT                       -- ms since the epoch
);

CREATE INDEX api_keys_of_organisation ON api_keys (organisation, created_at);
CREATE INDEX api_keys_of_user ON api_keys (user_id) WHERE user_id IS NOT NULL;

-- What was done, appended in the transaction that did it; never changed.
CREATE TABLE audit_log (
    id           TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    at           BIGINT  NOT NULL,            -- ms since the epoch
    organisation TEXT    NOT NULL,            -- whose objects were concerned
    category     TEXT    NOT NULL CHECK (category IN ('checkpoints', 'projects', 'teams', 'organizations')), -- kind of object
    event        TEXT    NOT NULL,            -- such as 'checkpoint_delete'
    subject      TEXT    NOT NULL,            -- id, name or path of the object
    details      TEXT    NOT NULL,            -- JSON object
    actor        TEXT    NOT NULL,            -- who did it, in words
    key_id       BIGINT,                      -- the API key that was used, where the store has it
    request_id   TEXT,                        -- x-request-id of the call
    address      TEXT                         -- where the call came from
);

CREATE INDEX audit_log_of_organisation ON audit_log (organisation, at, id);

CREATE FUNCTION refuse_change_of_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is appended only';
END
$$;

CREATE TRIGGER audit_log_is_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit_log();

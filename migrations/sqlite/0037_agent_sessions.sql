-- Sessions of agents. Each has a key of its own, with which programs sample through the OpenAI and Anthropic APIs.
CREATE TABLE agent_sessions (
    id            TEXT    NOT NULL PRIMARY KEY, -- time-ordered UUID
    tenant        TEXT    NOT NULL, -- owner
    key_digest    BLOB    NOT NULL UNIQUE, -- SHA-256 of its key
    base_model    TEXT    NOT NULL, -- base model from which it samples
    model_path    TEXT, -- sampler checkpoint from which it samples, tinker://…
    max_tokens    INTEGER NOT NULL, -- limit: tokens sampled in all turns
    max_turns     INTEGER NOT NULL, -- limit: number of turns
    max_tools     INTEGER, -- limit: tools that a request may offer
    seconds       INTEGER NOT NULL, -- limit: seconds from creation to expiry
    turns         INTEGER NOT NULL DEFAULT 0, -- number of its turns
    tokens        INTEGER NOT NULL DEFAULT 0, -- tokens sampled so far
    prompt_tokens INTEGER NOT NULL DEFAULT 0, -- tokens of prompts that its turns hold
    size_bytes    INTEGER NOT NULL DEFAULT 0, -- size of its turns; counts against the storage quota
    reward        TEXT, -- reward of the whole session, a JSON number
    created_at    INTEGER NOT NULL, -- ms since the epoch
    expires_at    INTEGER NOT NULL, -- ms since the epoch; set to the present when the session is ended
    ended         INTEGER NOT NULL DEFAULT 0 CHECK (ended IN (0, 1)) -- 1: ended by a call, before it expired
) STRICT;

CREATE INDEX agent_sessions_by_tenant ON agent_sessions (tenant, created_at, id);
CREATE INDEX agent_sessions_open ON agent_sessions (tenant, expires_at);
CREATE INDEX agent_sessions_by_expiry ON agent_sessions (expires_at);

-- Replies sampled in sessions of agents. Only rewards change.
CREATE TABLE agent_turns (
    session_id    TEXT    NOT NULL REFERENCES agent_sessions (id), -- session that the turn belongs to
    number        INTEGER NOT NULL, -- position in the session, from 1
    tenant        TEXT    NOT NULL, -- owner
    request_id    TEXT    NOT NULL, -- request that sampled it
    choice        INTEGER NOT NULL, -- position among the request's replies
    parent        INTEGER, -- number of the turn that it continues
    branch_reason TEXT, -- why it continues none, if the session had turns
    digest        TEXT    NOT NULL, -- digest of the conversation with the reply; empty for texts
    messages      INTEGER NOT NULL, -- number of messages with the reply
    weights       TEXT    NOT NULL, -- weights that sampled it: a base model or a path
    finish_reason TEXT    NOT NULL, -- stop, length or tool_calls
    content       TEXT    NOT NULL, -- JSON: the reply as it was returned, and how it was sampled
    prompt        BLOB    NOT NULL, -- tokens between the parent's last token and the reply; little-endian, 32 bits each
    sampled       BLOB    NOT NULL, -- sampled tokens; little-endian, 32 bits each
    logprobs      BLOB    NOT NULL, -- their log-probabilities; little-endian, 32-bit floats
    reward        TEXT, -- reward of the turn, a JSON number
    branch_reward TEXT, -- reward of the branch that ends with it, a JSON number
    created_at    INTEGER NOT NULL, -- ms since the epoch
    PRIMARY KEY (session_id, number),
    UNIQUE (session_id, request_id, choice)
) STRICT;

CREATE INDEX agent_turns_by_digest ON agent_turns (session_id, digest);

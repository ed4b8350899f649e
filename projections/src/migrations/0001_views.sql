-- The views. Kept to what SQLite and PostgreSQL read alike: TEXT, BIGINT, no generated keys. Times are microseconds
-- since 1970-01-01 UTC, truth values 0 and 1, lists and objects JSON in TEXT. Every row can be rebuilt from the log.

CREATE TABLE projection_checkpoint (
    name    TEXT PRIMARY KEY,
    version BIGINT NOT NULL,
    pos     BIGINT NOT NULL
);

CREATE TABLE space (
    space_id             TEXT PRIMARY KEY,
    workspace_id         TEXT NOT NULL,
    browser_instance_id  TEXT NOT NULL,
    binding_id           TEXT,
    owner_type           TEXT NOT NULL,
    owner_id             TEXT NOT NULL,
    status               TEXT NOT NULL,
    granted_capabilities TEXT NOT NULL,
    active_task          TEXT,
    revision             BIGINT NOT NULL,
    last_error_code      TEXT,
    close_reason         TEXT,
    idle_timeout_seconds BIGINT NOT NULL,
    created_at           BIGINT NOT NULL,
    updated_at           BIGINT NOT NULL,
    place                BIGINT NOT NULL
);
CREATE INDEX space_by_place ON space (place);
CREATE INDEX space_by_workspace ON space (workspace_id, place);

CREATE TABLE task (
    task_id          TEXT PRIMARY KEY,
    space_id         TEXT NOT NULL,
    operation_id     TEXT NOT NULL,
    request_id       TEXT NOT NULL,
    capability       TEXT NOT NULL,
    arg_keys         TEXT NOT NULL,
    status           TEXT NOT NULL,
    cancel_requested BIGINT NOT NULL,
    result           TEXT,
    error            TEXT,
    timeout_seconds  BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    started_at       BIGINT,
    finished_at      BIGINT,
    place            BIGINT NOT NULL
);
CREATE INDEX task_by_space ON task (space_id, place);

CREATE TABLE artifact (
    artifact_id TEXT PRIMARY KEY,
    space_id    TEXT NOT NULL,
    task_id     TEXT NOT NULL,
    kind        TEXT NOT NULL,
    media_type  TEXT NOT NULL,
    bytes       BIGINT NOT NULL,
    sha256      TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    place       BIGINT NOT NULL
);
CREATE INDEX artifact_by_space ON artifact (space_id, place);

CREATE TABLE instance (
    browser_instance_id TEXT PRIMARY KEY,
    kind                TEXT NOT NULL,
    name                TEXT,
    bundle              TEXT NOT NULL,
    health              TEXT NOT NULL,
    reserved_by         TEXT,
    network_policy      TEXT NOT NULL,
    workspaces          TEXT NOT NULL,
    headless            BIGINT NOT NULL,
    created_at          BIGINT NOT NULL,
    place               BIGINT NOT NULL
);

-- Who may reserve an instance without a binding: what `instance.workspaces` says, so that it can be searched.
CREATE TABLE instance_workspace (
    link_id             TEXT PRIMARY KEY,
    browser_instance_id TEXT NOT NULL,
    workspace_id        TEXT NOT NULL
);
CREATE INDEX instance_workspace_by_instance ON instance_workspace (browser_instance_id, workspace_id);

CREATE TABLE workspace (
    workspace_id TEXT PRIMARY KEY,
    created_at   BIGINT NOT NULL,
    place        BIGINT NOT NULL
);

CREATE TABLE binding (
    binding_id          TEXT PRIMARY KEY,
    workspace_id        TEXT NOT NULL,
    browser_instance_id TEXT NOT NULL,
    owner_id            TEXT,
    capabilities        TEXT,
    created_at          BIGINT NOT NULL,
    revoked_at          BIGINT,
    place               BIGINT NOT NULL
);
CREATE INDEX binding_by_workspace ON binding (workspace_id, place);
CREATE INDEX binding_by_instance ON binding (browser_instance_id, workspace_id);

-- Never the token's hash: who reads the views must not be able to test guesses against it.
CREATE TABLE token (
    token_id       TEXT PRIMARY KEY,
    workspace_id   TEXT NOT NULL,
    role           TEXT NOT NULL,
    owner_id       TEXT NOT NULL,
    all_workspaces BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT,
    revoked_at     BIGINT,
    place          BIGINT NOT NULL
);
CREATE INDEX token_by_workspace ON token (workspace_id, place);

-- Who did what, when, under which authority, to what, with what outcome. One row for a task, from its submit to its end;
-- one for anything else that somebody did or that happened to an instance. Names that auditors may rely on: this table
-- and the views below it.

CREATE TABLE audit_trail (
    entry_id            TEXT PRIMARY KEY, -- the task's id, or the position of the event
    recorded_at         BIGINT NOT NULL,  -- microseconds since 1970-01-01 UTC
    workspace_id        TEXT,             -- NULL for what belongs to the server alone
    role                TEXT,             -- NULL for the server itself
    owner_id            TEXT,
    token_id            TEXT,
    action              TEXT NOT NULL,    -- 'task', or the kind of the event
    space_id            TEXT,
    browser_instance_id TEXT,
    subject_id          TEXT,             -- the task, token or binding that it is about
    capability          TEXT,
    outcome             TEXT NOT NULL,    -- 'open' while a task has not ended; 'done', 'completed', 'failed', …
    error_code          TEXT,
    duration_ms         BIGINT,           -- from submit to end
    started_at          BIGINT,           -- when a task was handed to the browser
    browser_ms          BIGINT,           -- from the hand-over to the browser to the end
    site                TEXT,             -- host (and port, where it is not the usual one) that a page was at
    times               BIGINT NOT NULL,  -- more than 1 only for requests that were blocked alike
    artifact_bytes      BIGINT NOT NULL,
    trace_id            TEXT NOT NULL,
    place               BIGINT NOT NULL
);
CREATE INDEX audit_trail_by_workspace ON audit_trail (workspace_id, place);
CREATE INDEX audit_trail_by_space ON audit_trail (space_id, place);

-- Which hosts a Space touched, and which it was kept from.
CREATE VIEW site_history AS
SELECT workspace_id, space_id, site,
       CAST(SUM(CASE WHEN action = 'blocked' THEN 0 ELSE 1 END) AS BIGINT) AS tasks,
       CAST(SUM(CASE WHEN action = 'blocked' THEN times ELSE 0 END) AS BIGINT) AS blocked,
       MIN(recorded_at) AS first_at,
       MAX(recorded_at) AS last_at
FROM audit_trail
WHERE site IS NOT NULL AND space_id IS NOT NULL
GROUP BY workspace_id, space_id, site;

-- What an owner used on a day (UTC, counted in days since 1970-01-01).
CREATE VIEW usage_by_day AS
SELECT workspace_id, owner_id, recorded_at / 86400000000 AS day,
       CAST(COUNT(*) AS BIGINT) AS tasks,
       CAST(SUM(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS BIGINT) AS failed,
       CAST(COALESCE(SUM(browser_ms), 0) AS BIGINT) AS browser_ms,
       CAST(SUM(artifact_bytes) AS BIGINT) AS artifact_bytes
FROM audit_trail
WHERE action = 'task'
GROUP BY workspace_id, owner_id, recorded_at / 86400000000;

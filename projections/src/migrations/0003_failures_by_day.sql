-- Why an owner's tasks failed on a day (UTC, counted in days since 1970-01-01), by code. A view is no table of a
-- projection: it needs no rebuild.
CREATE VIEW failures_by_day AS
SELECT workspace_id, owner_id, recorded_at / 86400000000 AS day, capability, error_code,
       CAST(COUNT(*) AS BIGINT) AS tasks
FROM audit_trail
WHERE action = 'task' AND outcome = 'failed'
GROUP BY workspace_id, owner_id, recorded_at / 86400000000, capability, error_code;

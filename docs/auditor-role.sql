-- A role that reads the views and changes nothing, for auditors and for tools that draw charts. Run it once as the role
-- that the server uses (views_url), in its database, after the server's first start; then give the role a password or a
-- login of its own: ALTER ROLE browserspace_auditor LOGIN PASSWORD '…';
CREATE ROLE browserspace_auditor NOLOGIN;
GRANT USAGE ON SCHEMA browserspace TO browserspace_auditor;
GRANT SELECT ON ALL TABLES IN SCHEMA browserspace TO browserspace_auditor;
-- Views are made anew by `browserspace rebuild`, schema and all: what is made later is readable as well.
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO browserspace_auditor;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO browserspace_auditor;

-- The second wall between tenants: a statement sees and changes rows only in the scope that its connection has entered.
-- `trainyard.scope` is either 'system', for what the service does for all tenants, or an array of tenants, for what is done on
-- their behalf. Without it nothing is found: statements fail, so that nobody mistakes what is hidden for what was deleted.
-- Roles that are superusers or have BYPASSRLS see everything, whatever the scope.

CREATE FUNCTION required_scope() RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
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

CREATE FUNCTION is_system_scope() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN required_scope() = 'system';

-- NULL, which is no tenant, in another scope and without one.
CREATE FUNCTION tenants_in_scope() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN starts_with(current_setting('trainyard.scope', true), '{')
    THEN current_setting('trainyard.scope', true)::text[] END;

-- In parentheses with SELECT, the functions are called once for a statement and not for each row.
CREATE POLICY of_tenant ON sessions
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON runs
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON sampling_sessions
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON requests
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON checkpoints
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON custom_losses
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON uploads
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON usage
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON stored_checkpoints
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON rate_limits
    USING ((SELECT is_system_scope()) OR tenant = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON organisations
    USING ((SELECT is_system_scope()) OR name = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON projects
    USING ((SELECT is_system_scope()) OR organisation = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON users
    USING ((SELECT is_system_scope()) OR organisation = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON api_keys
    USING ((SELECT is_system_scope()) OR organisation = ANY ((SELECT tenants_in_scope())::text[]));
CREATE POLICY of_tenant ON audit_log
    USING ((SELECT is_system_scope()) OR organisation = ANY ((SELECT tenants_in_scope())::text[]));

-- Rows of these belong to a row of another table, whose policies hold for them too.
CREATE POLICY of_tenant ON loads
    USING ((SELECT is_system_scope()) OR EXISTS (SELECT 1 FROM requests WHERE requests.id = loads.request_id));
CREATE POLICY of_tenant ON upload_pieces
    USING ((SELECT is_system_scope()) OR EXISTS (SELECT 1 FROM uploads WHERE uploads.id = upload_pieces.upload_id));

-- What a tenant has made public, all tenants may read: the checkpoint, and the run that it is of.
CREATE POLICY of_public ON checkpoints FOR SELECT
    USING (public AND (SELECT required_scope()) <> '');
CREATE POLICY of_public ON runs FOR SELECT
    USING (EXISTS (SELECT 1 FROM checkpoints WHERE checkpoints.run_id = runs.id AND checkpoints.public));

-- FORCE: for the owner of the tables too, which is the role that the service uses.
ALTER TABLE sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE runs ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE sampling_sessions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE checkpoints ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE custom_losses ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE uploads ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE usage ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE stored_checkpoints ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE rate_limits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE organisations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE projects ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE users ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_log ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE loads ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE upload_pieces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

-- Older programs enter no scope.
UPDATE schema_compatibility SET oldest_program = 28;

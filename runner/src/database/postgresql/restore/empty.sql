-- Empties the database, as a dump drops nothing before it makes it anew. What extensions made stays,
-- but for the rows of theirs that a dump holds.
SET LOCAL client_min_messages = warning;
DO $restore$
DECLARE
  item record;
  command text;
  path text := pg_catalog.current_setting('search_path');
BEGIN
  PERFORM pg_catalog.set_config('search_path', '', true);
  -- In their order: event triggers first, which would be told of the rest.
  FOR item IN SELECT * FROM (@OWN@) AS own ORDER BY place, id DESC LOOP
    command := CASE item.kind
      WHEN 'large object' THEN pg_catalog.format('SELECT pg_catalog.lo_unlink(%s) FROM pg_catalog.pg_largeobject_metadata WHERE oid = %s', item.id, item.id)
      WHEN 'function' THEN 'DROP ROUTINE IF EXISTS ' || item.identity || ' CASCADE'
      WHEN 'procedure' THEN 'DROP ROUTINE IF EXISTS ' || item.identity || ' CASCADE'
      WHEN 'aggregate' THEN 'DROP ROUTINE IF EXISTS ' || item.identity || ' CASCADE'
      WHEN 'foreign-data wrapper' THEN 'DROP FOREIGN DATA WRAPPER IF EXISTS ' || item.identity || ' CASCADE'
      WHEN 'statistics object' THEN 'DROP STATISTICS IF EXISTS ' || item.identity
      WHEN 'transform' THEN 'DROP TRANSFORM IF EXISTS ' || pg_catalog.replace(pg_catalog.replace(item.identity, ' on language ', ' LANGUAGE '), 'for ', 'FOR ') || ' CASCADE'
      ELSE 'DROP ' || pg_catalog.upper(item.kind) || ' IF EXISTS ' || item.identity || ' CASCADE'
    END;
    EXECUTE command;
  END LOOP;
  -- A subscription's slot is at another server, which need not be there: it is left to its owner.
  FOR item IN SELECT s.subname FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid
            WHERE d.datname = pg_catalog.current_database() LOOP
    EXECUTE pg_catalog.format('ALTER SUBSCRIPTION %I DISABLE', item.subname);
    EXECUTE pg_catalog.format('ALTER SUBSCRIPTION %I SET (slot_name = NONE)', item.subname);
    EXECUTE pg_catalog.format('DROP SUBSCRIPTION %I', item.subname);
  END LOOP;
  FOR item IN SELECT d.defaclrole::regrole AS role, n.nspname, a.grantee::oid::regrole AS grantee, a.grantee = 0 AS everybody, d.defaclnamespace = 0 AS global,
                  CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'ROUTINES' WHEN 'T' THEN 'TYPES' ELSE 'SCHEMAS' END AS what
             FROM pg_catalog.pg_default_acl d LEFT JOIN pg_catalog.pg_namespace n ON n.oid = d.defaclnamespace,
                  LATERAL (SELECT DISTINCT grantee FROM pg_catalog.aclexplode(d.defaclacl)) a LOOP
    command := 'ALTER DEFAULT PRIVILEGES FOR ROLE ' || item.role || coalesce(' IN SCHEMA ' || pg_catalog.quote_ident(item.nspname), '');
    EXECUTE command || ' REVOKE ALL ON ' || item.what || ' FROM ' || CASE WHEN item.everybody THEN 'PUBLIC' ELSE item.grantee::text END;
    IF item.global THEN
      EXECUTE command || ' GRANT ALL ON ' || item.what || ' TO ' || item.role;
      IF item.what IN ('ROUTINES', 'TYPES') THEN
        EXECUTE command || ' GRANT ALL ON ' || item.what || ' TO PUBLIC';
      END IF;
    END IF;
  END LOOP;
  FOR item IN SELECT c.id::regclass AS name, e.extcondition[c.n] AS condition
             FROM pg_catalog.pg_extension e, LATERAL pg_catalog.unnest(e.extconfig) WITH ORDINALITY AS c(id, n)
             JOIN pg_catalog.pg_class k ON k.oid = c.id AND k.relkind = 'r'
            ORDER BY c.n DESC LOOP
    BEGIN
      EXECUTE 'DELETE FROM ' || item.name || ' ' || coalesce(item.condition, '');
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
  END LOOP;
  PERFORM pg_catalog.set_config('search_path', path, true);
END
$restore$;

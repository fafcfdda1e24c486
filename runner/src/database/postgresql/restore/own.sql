-- What a database holds that is its users' own: no part of the server, nor of an extension.
  WITH own(place, class, id) AS (
    SELECT 1, 'pg_catalog.pg_event_trigger'::regclass, oid FROM pg_catalog.pg_event_trigger
    UNION ALL SELECT 2, 'pg_catalog.pg_publication'::regclass, oid FROM pg_catalog.pg_publication
    UNION ALL SELECT 4, 'pg_catalog.pg_class'::regclass, oid FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND relpersistence <> 't'
    UNION ALL SELECT 5, 'pg_catalog.pg_proc'::regclass, oid FROM pg_catalog.pg_proc
    UNION ALL SELECT 6, 'pg_catalog.pg_operator'::regclass, oid FROM pg_catalog.pg_operator
    UNION ALL SELECT 7, 'pg_catalog.pg_opfamily'::regclass, oid FROM pg_catalog.pg_opfamily
    UNION ALL SELECT 7, 'pg_catalog.pg_opclass'::regclass, oid FROM pg_catalog.pg_opclass
    UNION ALL SELECT 8, 'pg_catalog.pg_cast'::regclass, oid FROM pg_catalog.pg_cast
    UNION ALL SELECT 8, 'pg_catalog.pg_transform'::regclass, oid FROM pg_catalog.pg_transform
    UNION ALL SELECT 9, 'pg_catalog.pg_type'::regclass, t.oid FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_class k ON k.oid = t.typrelid
      WHERE t.typtype IN ('d', 'e', 'r', 'b') AND t.typelem = 0 OR t.typtype = 'c' AND k.relkind = 'c' OR t.typtype = 'b' AND t.typelem <> 0 AND NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray = t.oid)
    UNION ALL SELECT 10, 'pg_catalog.pg_ts_config'::regclass, oid FROM pg_catalog.pg_ts_config
    UNION ALL SELECT 11, 'pg_catalog.pg_ts_dict'::regclass, oid FROM pg_catalog.pg_ts_dict
    UNION ALL SELECT 12, 'pg_catalog.pg_ts_template'::regclass, oid FROM pg_catalog.pg_ts_template
    UNION ALL SELECT 12, 'pg_catalog.pg_ts_parser'::regclass, oid FROM pg_catalog.pg_ts_parser
    UNION ALL SELECT 13, 'pg_catalog.pg_collation'::regclass, oid FROM pg_catalog.pg_collation
    UNION ALL SELECT 13, 'pg_catalog.pg_conversion'::regclass, oid FROM pg_catalog.pg_conversion
    UNION ALL SELECT 13, 'pg_catalog.pg_statistic_ext'::regclass, oid FROM pg_catalog.pg_statistic_ext
    UNION ALL SELECT 14, 'pg_catalog.pg_foreign_server'::regclass, oid FROM pg_catalog.pg_foreign_server
    UNION ALL SELECT 15, 'pg_catalog.pg_foreign_data_wrapper'::regclass, oid FROM pg_catalog.pg_foreign_data_wrapper
    UNION ALL SELECT 16, 'pg_catalog.pg_am'::regclass, oid FROM pg_catalog.pg_am
    UNION ALL SELECT 17, 'pg_catalog.pg_language'::regclass, oid FROM pg_catalog.pg_language
    UNION ALL SELECT 18, 'pg_catalog.pg_namespace'::regclass, oid FROM pg_catalog.pg_namespace WHERE nspname <> 'public' AND nspname !~ '^pg_'
    UNION ALL SELECT 19, 'pg_catalog.pg_largeobject'::regclass, oid FROM pg_catalog.pg_largeobject_metadata
  )
  SELECT o.place, o.id, i.type AS kind, i.identity
  FROM own o, LATERAL pg_catalog.pg_identify_object(o.class, o.id, 0) i
  WHERE (o.id::bigint >= 16384 OR i.type = 'large object') AND i.schema IS DISTINCT FROM 'information_schema' AND coalesce(i.schema, '') !~ '^pg_(toast|temp)'
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = o.class AND d.objid = o.id AND d.deptype IN ('e', 'i') AND d.refobjid <> o.id)

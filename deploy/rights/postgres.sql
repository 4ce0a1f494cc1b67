-- Makes Tallyhook's database, and roles at Postgres that can do what they must and nothing more. Run again, it changes the
-- passwords. It is for psql, as a superuser, or as a role that may make databases and roles:
--
--   export MIGRATE_PASSWORD=… RUN_PASSWORD=… MONITOR_PASSWORD=…
--   psql -d postgres -f deploy/rights/postgres.sql
--
-- Other names: -v database=… -v migrate=… -v run=… -v monitor=…

\set ON_ERROR_STOP on
\if :{?database} \else \set database tallyhook \endif
\if :{?migrate} \else \set migrate tallyhook_migrate \endif
\if :{?run} \else \set run tallyhook_run \endif
\if :{?monitor} \else \set monitor tallyhook_monitor \endif
\getenv migrate_password MIGRATE_PASSWORD
\getenv run_password RUN_PASSWORD
\getenv monitor_password MONITOR_PASSWORD

-- Ends here, with psql's exit code 3, before anything is made.
select format('do $$ begin raise exception %L; end $$', string_agg(name, ', ') || ' must be set')
from (values ('MIGRATE_PASSWORD', :{?migrate_password}), ('RUN_PASSWORD', :{?run_password}),
  ('MONITOR_PASSWORD', :{?monitor_password})) p (name, is_set)
where not is_set having count(*) > 0 \gexec

-- A superuser keeps the passwords out of the server's log.
select count(set_config(name, value, false)) as silenced
from (values ('log_statement', 'none'), ('log_min_duration_statement', '-1'), ('log_min_error_statement', 'panic')) s (name, value)
where (select rolsuper from pg_roles where rolname = current_user) \gset

select format('create role %I', name) from unnest(array[:'migrate', :'run', :'monitor']) name
where not exists (select from pg_roles where rolname = name) \gexec
alter role :"migrate" login password :'migrate_password';
alter role :"run" login password :'run_password';
alter role :"monitor" login password :'monitor_password';

-- The service needs UTF-8, whatever the server's default is.
select format('create database %I template template0 encoding ''UTF8''', :'database')
where not exists (select from pg_database where datname = :'database') \gexec
\connect :"database"

-- Nothing for everybody: neither a connection, nor temporary tables, nor the schema.
revoke all on database :"database" from public;
revoke all on schema public from public;
grant connect on database :"database" to :"migrate", :"run", :"monitor";

-- Migrates: makes tables, which it owns. It cannot drop the database.
grant usage, create on schema public to :"migrate";

-- Runs the service. `tallyhook migrate` grants it the tables, as docs/database-roles.md lists them.
grant usage on schema public to :"run";

-- Watches the server: sessions, waits, replication, WAL, sizes. It reads no table of Tallyhook, and no setting with a password.
grant pg_read_all_stats to :"monitor";

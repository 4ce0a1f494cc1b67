-- The accounts of compose.yaml in a new Postgres, which psql runs before anybody can connect: one that owns the tables and migrates,
-- and one that runs the service. The superuser has made these and is not used again.
\getenv migration_password MIGRATION_PASSWORD
\getenv run_password RUN_PASSWORD
create role tallyhook_migrate login password :'migration_password';
create role tallyhook_run login password :'run_password';
create database tallyhook owner tallyhook_migrate;

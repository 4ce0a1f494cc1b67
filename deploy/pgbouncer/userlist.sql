-- A line of PgBouncer's auth_file for a role: its name, and what Postgres keeps of its password. As a superuser, since no other role reads
-- pg_authid. After a change of the password, make it again.
select format('"%s" "%s"', rolname, rolpassword) from pg_authid where rolname = :'role';

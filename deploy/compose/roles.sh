#!/bin/sh
# Run once by PostgreSQL's image, in an empty database server: the two roles of docs/database.md#a-postgresql-of-your-own.
set -eu
psql --quiet --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres --set=owner="$OWNER_PASSWORD" --set=app="$APP_PASSWORD" <<'SQL'
create role latchkey_owner login password :'owner';
create role latchkey_app login password :'app';
create database latchkey owner latchkey_owner;
revoke all on database latchkey from public;
grant connect on database latchkey to latchkey_app;
SQL

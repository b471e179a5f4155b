#!/bin/sh
# Runs once, when the database is made: the role of the URL and its database. The image's own role is a superuser, and
# row-level security does not hold that.
set -eu
psql --set ON_ERROR_STOP=1 --set password="$(cat /run/secrets/database-password)" <<'SQL'
CREATE ROLE trainyard LOGIN PASSWORD :'password';
CREATE DATABASE trainyard OWNER trainyard;
SQL

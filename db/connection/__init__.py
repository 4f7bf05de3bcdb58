"""The connection to Postgres: where it is, how it is opened, and how values reach it."""

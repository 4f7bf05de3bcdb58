"""The embedded stack: PostgreSQL, Valkey, workers, beat and Flower on one machine, under a supervisor."""

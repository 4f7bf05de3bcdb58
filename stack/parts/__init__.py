"""The parts of the embedded stack: Postgres, Valkey, Envoy, workers and other processes."""

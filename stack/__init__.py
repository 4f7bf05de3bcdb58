"""The embedded stack: servers, workers and proxy on one machine, under a supervisor."""

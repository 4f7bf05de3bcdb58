"""Facts of one installation: its contract, servers, settings, limits of logs, retention."""

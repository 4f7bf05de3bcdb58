"""Facts of one installation: its contract, tokens, settings, limits of logs, retention."""

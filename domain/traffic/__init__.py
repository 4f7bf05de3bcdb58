"""Traffic: where a deployment is reached, and what proxies are told."""

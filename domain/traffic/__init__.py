"""Traffic: the entrances of deployments, and the data for proxies."""

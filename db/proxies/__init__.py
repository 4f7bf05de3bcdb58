"""What proxies should know, and what they have acknowledged."""

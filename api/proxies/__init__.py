"""What proxies ask: Envoy's polls, the table in other forms, and who has acknowledged what."""

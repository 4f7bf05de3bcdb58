"""What proxies ask over HTTP."""

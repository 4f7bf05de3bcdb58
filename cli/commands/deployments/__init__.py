"""Commands about one deployment."""

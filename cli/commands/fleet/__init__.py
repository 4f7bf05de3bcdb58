"""Commands about the whole fleet."""

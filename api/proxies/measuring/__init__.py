"""What live proxies are asked: what they count, and what is under way."""

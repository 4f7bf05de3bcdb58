"""The host name of the page, and the cookie of its sessions: no deployment gets either."""

SESSION_COOKIE = "__Host-rollway_session"
"""The cookie of a session of the page. Our proxies pass it to no replica, and take it from none.

By the beginning of its name browsers take it from the page's own host alone: no other name's cookies count for it.
"""
PAGE_HOST = "rollway.localhost"
"""The page's own host name on its own machine, which every browser finds there: no proxy of ours answers by it."""


def is_of_the_page(host: str) -> bool:
    """Whether a host name is the page's own, or below it, where a script may set cookies for the page's own."""
    bare = host.removesuffix(".")
    return bare == PAGE_HOST or bare.endswith(f".{PAGE_HOST}")

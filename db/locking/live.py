"""Which proxies live: a condition on a proxy `p`.

Silence counts only while there is a server that the proxy could talk to. A server's time that lies ahead is from before
the database's clock was set back.
"""

_HEARD = "(SELECT max(least(seen_at, clock_timestamp())) FROM publishers)"

IS_LIVE = f"p.last_seen_at > {_HEARD} - make_interval(secs => p.silence_seconds)"

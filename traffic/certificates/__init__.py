"""Certificates: what is in one, how its key is kept, and how an authority gives one."""

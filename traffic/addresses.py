"""Addresses of replicas, as proxies take them: an IP address and a port."""

from functools import lru_cache
from ipaddress import ip_address


@lru_cache(maxsize=65_536)
def read_address(address: str) -> tuple[str, int]:
    """The IP address and port of "10.0.0.1:80" or "[::1]:80". Raises ValueError for anything else, names included."""
    host, _, port = address.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not 0 < number < 65536:  # noqa: PLR2004  (the ports there are)
        raise ValueError(address)
    return str(ip_address(host.removeprefix("[").removesuffix("]"))), number

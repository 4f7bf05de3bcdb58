"""The address of a replica that another system reports: valid targets of proxies and probes."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

_LONGEST_NAME = 253


_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*")


_NUMERIC = re.compile(r"(.*\.)?(\d+|0[xX][0-9a-fA-F]*)")


_PORT = re.compile(r"[1-9][0-9]{0,4}")


_LAST_PORT = 65_535


def plausible_address(address: str) -> str:
    """10.0.0.7:80, [fd00::7]:80 or gpu-7.internal:80, as it is. Raises ValueError saying what would be right.

    An address that reaches no replica but something else is refused: every interface, many machines at once, and
    link-local ones, where clouds keep the credentials of the machine that asks.
    """
    host, _, port = address.rpartition(":")
    if not _PORT.fullmatch(port) or int(port) > _LAST_PORT:
        raise ValueError(f"{address!r} must be host:port, such as 10.0.0.7:8080, with a port from 1 to {_LAST_PORT}")
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        ip = ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        if len(host) > _LONGEST_NAME or not _NAME.fullmatch(host) or _NUMERIC.fullmatch(host):
            raise ValueError(f"{address!r} must be host:port, such as 10.0.0.7:8080, and {host!r} is no host") from None
        return address
    if bracketed != isinstance(ip, IPv6Address):
        raise ValueError(f"{address!r} must have an IPv6 address in brackets, and nothing else: [fd00::7]:8080")
    if why := why_no_replica(ip):
        raise ValueError(f"{address!r} is {why}, where no replica can be; report the replica's own address")
    return address


def why_no_replica(ip: IPv4Address | IPv6Address) -> str:
    """The thing that is no replica which an address reaches; empty for every other address."""
    mapped = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    address = mapped or ip
    if address.is_link_local:
        return "link-local"
    if address.is_unspecified:
        return "every interface of a machine"
    if address.is_multicast or address == IPv4Address("255.255.255.255"):
        return "many machines at once"
    return ""

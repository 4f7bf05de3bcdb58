"""TLS to replicas: whom a probe believes, and why it does not."""

import ssl
from functools import lru_cache

from domain.traffic.tls import ReplicaTls


class UnknownAuthoritiesError(OSError):
    """Nobody has read yet whom to believe."""


@lru_cache(256)
def context_of(tls: ReplicaTls, protocol: str) -> ssl.SSLContext:
    """Make the context of a connection. Raises UnknownAuthoritiesError, and what OpenSSL says of authorities."""
    if tls.ca == "":
        raise UnknownAuthoritiesError
    context = ssl.create_default_context(cadata=tls.ca)
    context.set_alpn_protocols(["http/1.1"] if protocol == "http1" else ["h2"])
    return context


def why_no_tls(tls: ReplicaTls, error: OSError) -> str:
    """Say why there is no TLS to a replica; nothing where that is not what failed."""
    match error:
        case UnknownAuthoritiesError():
            return "is not asked: nobody has read the file of upstream_tls.ca yet"
        case ssl.SSLCertVerificationError():
            why = error.verify_message.rstrip(".")
            return f"shows a certificate that is not believed for {tls.name}, as traffic.upstream_tls wants it: {why}"
        case ssl.SSLError() | ConnectionResetError():
            return "answers no TLS, which traffic.upstream_tls says that it speaks"
    return ""

"""What proxies show to callers who come by TLS: certificates, and answers to challenges."""

from collections.abc import Sequence
from dataclasses import dataclass, field

ANY_HOST = "*."
"""What a host name begins with that stands for every name below it. There is no preview by such a name."""


@dataclass(frozen=True, slots=True)
class ShownCertificate:
    """A certificate that proxies show. `key`: as Postgres keeps it, sealed, until a server for proxies has opened it.

    `name`: the name of the secret that it is among proxies. `names`: those that it was made out to. `chain`: PEM, the
    certificate itself first.
    """

    name: str
    names: tuple[str, ...]
    chain: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The answer by which a certificate authority sees that a host name leads here."""

    token: str
    answer: str


@dataclass(frozen=True, slots=True)
class Secured:
    """What a deployment that is reached by TLS has for it.

    `callers_ca`: the authorities of which callers must show a certificate, in PEM; empty while they are not known.
    `proofs`: certificates by which an authority sees, within a handshake, that a host name leads here.
    """

    callers_ca: str = ""
    certificates: tuple[ShownCertificate, ...] = ()
    challenges: tuple[Challenge, ...] = ()
    proofs: tuple[ShownCertificate, ...] = ()


def is_for(names: Sequence[str], host: str) -> bool:
    """Whether a certificate of these names is good for a host name, or for all names below it (`*.example.com`)."""
    first, _, rest = host.partition(".")
    return host in names or (first != "*" and bool(rest) and f"{ANY_HOST}{rest}" in names)

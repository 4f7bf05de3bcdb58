"""The proxies' material for TLS: certificates, and answers to challenges."""

from collections.abc import Sequence
from dataclasses import dataclass, field

ANY_HOST = "*."
"""The beginning of a host name that matches every name below it. Such a name has no preview."""


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
    """The TLS material of a deployment.

    `callers_ca`: the authorities of which callers must show a certificate, in PEM; empty while they are not known.
    `proofs`: certificates by which an authority sees, within a handshake, that a host name leads here.
    """

    callers_ca: str = ""
    certificates: tuple[ShownCertificate, ...] = ()
    challenges: tuple[Challenge, ...] = ()
    proofs: tuple[ShownCertificate, ...] = ()


def why_unfit(names: Sequence[str], presented: Sequence[str], hosts: Sequence[str]) -> str | None:
    """Why a certificate of these names must not replace the one that is `presented`, while that is good.

    it is for none of the hosts                    -> none of them would have one
    a host has the one that is shown, and not it   -> that one would have none any more
    otherwise                                      -> it takes its place
    """
    covered = [host for host in hosts if is_for(names, host)]
    lost = [host for host in hosts if is_for(presented, host) and host not in covered]
    if hosts and not covered:
        return f"it is for {some_of(names)}, and not for {some_of(hosts)}"
    if lost:
        return f"it is not for {some_of(lost)}, for which the one is that is shown"
    return None


def some_of(names: Sequence[str]) -> str:
    """a, b, c and 4 more."""
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


_MOST_NAMED = 3


def is_for(names: Sequence[str], host: str) -> bool:
    """Whether a certificate of these names is good for a host name, or for all names below it (`*.example.com`)."""
    first, _, rest = host.partition(".")
    return host in names or (first != "*" and bool(rest) and f"{ANY_HOST}{rest}" in names)

"""Whether any host can have the secrets that a revision refers to, by what the hosts have answered."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.words.errors import MissingSecretError

_MOST_HOSTS = 5
_NOT_ANSWERED = "it has not answered yet"


@dataclass(frozen=True, slots=True)
class SecretCheck:
    """What a host that is up says of one reference. `fault`: why it cannot have that secret; None: it can.

    `is_answered`: whether the host has looked since it was asked.
    """

    host: str
    reference: str
    is_answered: bool
    fault: str | None = None


def passed_over(revision: str, checks: Iterable[SecretCheck]) -> Mapping[str, str]:
    """The hosts that get no replicas of the revision, each with the reason. Raises MissingSecretError if all do.

    the revision refers to nothing, or no host is up   -> nobody is asked; a start that fails says why
    a host can have all that it refers to              -> the others are passed over
    no host can                                        -> refused, with what each of them lacks
    """
    lacking: dict[str, list[str]] = defaultdict(list)
    hosts = set()
    for check in checks:
        hosts.add(check.host)
        if not check.is_answered or check.fault is not None:
            lacking[check.host].append(f"{check.reference} ({check.fault if check.is_answered else _NOT_ANSWERED})")
    reasons = {host: ", ".join(faults) for host, faults in sorted(lacking.items())}
    if hosts and hosts == reasons.keys():
        told = [f"host {host} lacks {reason}" for host, reason in list(reasons.items())[:_MOST_HOSTS]]
        if len(reasons) > _MOST_HOSTS:
            told.append(f"and so {len(reasons) - _MOST_HOSTS} more")
        raise MissingSecretError(
            f"no host can run {revision}: {'; '.join(told)}", revision=revision, hosts=", ".join(reasons)
        )
    return reasons
